//! What is run, and how it is started.

use crate::settings::prepared::Start;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
