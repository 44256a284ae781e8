//! One run of a program: its time, what it used, and what it left.

use crate::left::{Before, Left, Printed};
use crate::program::{Program, TrialError, input};
use crate::served::Served;
use crate::settings::prepared::Start;
use lab::child::{self, Ended};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use units::Bytes;

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
    /// Runs it once, as it is prepared; what takes longer than the limit is ended.
    pub(crate) fn run_within(&self, start: &Start, limit: Option<Duration>) -> Result<Run, TrialError> {
        if let Some(load) = &self.load {
            return self.run_under_load(load, start);
        }
        let not_run = |e: io::Error| self.not_run(&e);
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

    /// A server, put under load once. What counts is the CPU time that it takes for that: how long
    /// answers take hangs on the load's own pace, too.
    fn run_under_load(&self, load: &[OsString], start: &Start) -> Result<Run, TrialError> {
        let began = Instant::now();
        let once = || -> io::Result<(Ended, f64, Option<Ended>)> {
            let served = Served::begin(self, load, start)?;
            let before = child::cpu_time_of_tree(served.process());
            let loaded = served.load()?;
            let cpu = child::cpu_time_of_tree(served.process()).saturating_sub(before);
            Ok((loaded, cpu.as_secs_f64(), served.end()?))
        };
        let (end, cpu, ended, failed) = match once() {
            Ok((loaded, cpu, ended)) => (loaded.status.into_raw(), cpu, ended, None),
            // With a change that is the change's fault, and told as such.
            Err(why) if *start != Start::default() => (-1, 0.0, None, Some(records::plain(&why))),
            Err(why) => return Err(self.not_run(&why)),
        };
        let peak = ended.map_or(Bytes(0), |ended| ended.peak);
        let left = Left { end, output: Printed::nothing(), files: None };
        let took = began.elapsed().as_secs_f64();
        Ok(Run { seconds: cpu, cpu_seconds: cpu, took, peak, left, failed })
    }

    fn not_run(&self, why: &io::Error) -> TrialError {
        let first = self.command.first().cloned().unwrap_or_default();
        TrialError::NotRun { what: records::text_of(Path::new(&first)), why: records::plain(why) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Program {
        Program::of(words.iter().map(OsString::from).collect())
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
    fn a_server_is_there_when_its_load_is() {
        let files = tempfile::tempdir().unwrap();
        let (pipe, ready) = (files.path().join("pipe"), files.path().join("ready"));
        // It answers by a file for each line that comes.
        let server = format!(
            "mkfifo {0}; exec 3<>{0}; while read -r line <&3; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; \
             touch {1}; done",
            pipe.display(),
            ready.display()
        );
        let load = format!(
            "[ -p {0} ] || exit 1; rm -f {1}; echo go >{0}; while [ ! -e {1} ]; do sleep 0.01; done",
            pipe.display(),
            ready.display()
        );
        let words = |text: &str| ["bash", "-c", text].map(OsString::from).to_vec();
        let served = Program { command: words(&server), load: Some(words(&load)) };
        let run = served.run(&Start::default()).unwrap();
        assert_eq!((run.failed, run.left.end), (None, 0));
        assert!(run.seconds > 0.0 && run.took > run.seconds, "{} of {}", run.seconds, run.took);
    }
}
