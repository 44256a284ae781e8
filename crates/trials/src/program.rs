//! One run of a program: its time, what it used, and what it left.

use crate::left::{Before, Left, Printed};
use crate::served;
use crate::settings::prepared::Start;
use lab::child;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use units::Bytes;

/// What is run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// It is a server, and this command puts it under load.
    pub load: Option<Vec<OsString>>,
}

/// Why nothing was tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("standard input: it is not a file, so it cannot be read once more for each run")]
    Input,
    #[error("{what}: {why}")]
    NotRun { what: String, why: String },
}

pub(crate) struct Run {
    /// What counts: the time of the run; of a server, its CPU time for the load.
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// All of it.
    pub took: f64,
    /// The most memory that it had, or one of its children.
    pub peak: Bytes,
    pub left: Left,
    /// How it failed, if it did.
    pub failed: Option<String>,
}

impl Program {
    /// A program that ends by itself.
    pub fn of(command: Vec<OsString>) -> Self {
        Self { command, load: None }
    }

    /// Whether its input is there for each run.
    pub fn can_run_again(&self) -> Result<(), TrialError> {
        let kind = std::fs::metadata("/proc/self/fd/0").map(|about| about.file_type());
        match kind {
            // A terminal's user is not asked again: runs find its end at once.
            Ok(kind) if kind.is_fifo() || kind.is_socket() => Err(TrialError::Input),
            _ => Ok(()),
        }
    }

    /// The file that the command executes.
    pub fn file(&self) -> Option<PathBuf> {
        let first = Path::new(self.command.first()?);
        if first.as_os_str().to_string_lossy().contains('/') {
            return Some(first.to_owned());
        }
        let paths = std::env::var_os("PATH")?;
        std::env::split_paths(&paths).map(|directory| directory.join(first)).find(|path| path.is_file())
    }

    /// The command as it is started so; its streams are left as they are.
    pub fn command(&self, start: &Start) -> Command {
        let first = self.command.first().cloned().unwrap_or_default();
        let file = start.program.as_ref().map_or(first.as_os_str(), |path| path.as_os_str());
        let mut command = Command::new(file);
        command
            .arg0(&first)
            .args(self.command.iter().skip(1))
            .args(&start.arguments)
            .envs(start.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it once, as it is prepared; what takes longer than the limit is ended.
    pub(crate) fn run_within(&self, start: &Start, limit: Option<Duration>) -> Result<Run, TrialError> {
        if let Some(load) = &self.load {
            return served::run(self, load, start);
        }
        let not_run = |e: io::Error| TrialError::NotRun {
            what: records::text_of(Path::new(&self.command.first().cloned().unwrap_or_default())),
            why: records::plain(&e),
        };
        let mut output = tempfile::tempfile().map_err(not_run)?;
        let before = Before::look(&self.command);
        let mut command = self.command(start);
        command.stdin(input()).stdout(output.try_clone().map_err(not_run)?).stderr(Stdio::null());
        let began = Instant::now();
        let ended = child::run(&mut command, limit).map_err(not_run)?;
        let seconds = began.elapsed().as_secs_f64();
        let (end, failed) = match &ended {
            None => (-1, Some(format!("it had not ended after {seconds:.0} s"))),
            Some(ended) => {
                let killed = ended.status.signal().map(|signal| format!("it was killed by signal {signal}"));
                (ended.status.into_raw(), killed)
            }
        };
        let left = Left { end, output: Printed::of(&mut output).map_err(not_run)?, files: before.written() };
        let cpu_seconds = ended.map_or(0.0, |ended| ended.cpu.as_secs_f64());
        let peak = ended.map_or(Bytes(0), |ended| ended.peak);
        Ok(Run { seconds, cpu_seconds, took: seconds, peak, left, failed })
    }

    pub(crate) fn run(&self, start: &Start) -> Result<Run, TrialError> {
        self.run_within(start, None)
    }
}

/// Standard input of one of several runs: a file is read from its beginning again; of anything
/// else, runs find the end at once.
pub fn input() -> Stdio {
    let is_file = std::fs::metadata("/proc/self/fd/0").is_ok_and(|about| about.is_file());
    let again = if is_file { File::open("/proc/self/fd/0").ok() } else { None };
    again.map_or_else(Stdio::null, Stdio::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Program {
        Program { command: words.iter().map(OsString::from).collect(), load: None }
    }

    #[test]
    fn what_it_prints_and_how_it_ends_is_known() {
        let run = |words: &[&str]| program(words).run(&Start::default()).unwrap();
        let (one, two) = (run(&["echo", "one"]), run(&["echo", "two"]));
        assert_eq!(one.failed, None);
        assert!(one.left != two.left && one.left.output == run(&["echo", "one"]).left.output);
        assert_ne!(run(&["true"]).left.end, run(&["false"]).left.end, "they end otherwise");
        let killed = run(&["sh", "-c", "kill -9 $$"]);
        assert_eq!(killed.failed.as_deref(), Some("it was killed by signal 9"));
        assert!(program(&["/no/such/program"]).run(&Start::default()).is_err());
        let slow = program(&["sleep", "60"]).run_within(&Start::default(), Some(Duration::from_millis(10)));
        assert!(slow.unwrap().failed.unwrap().contains("had not ended"));
    }

    #[test]
    fn what_is_prepared_is_there() {
        let start = Start {
            program: Some("/bin/sh".into()),
            environment: vec![("GLEANER_TRIED".into(), "yes".into())],
            ..Start::default()
        };
        let output = |program: Program, start: &Start| {
            let output = program.command(start).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let said = output(program(&["anything", "-c", "echo $0 $GLEANER_TRIED"]), &start);
        assert_eq!(said, "anything yes\n");
        let more = Start { arguments: vec!["two".into()], ..Start::default() };
        assert_eq!(output(program(&["echo", "one"]), &more), "one two\n");
    }
}
