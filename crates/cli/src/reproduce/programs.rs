//! Programs that a document's claims need: compiled from the sources that this binary holds, and
//! run by this binary's own verbs, each with a time limit.

use crate::children::{self, NoEnd};
use ::reproduce::Missing;
use lab::stop::Stop;
use records::Record;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No program here takes a minute on a machine of its own.
const LIMIT: Duration = Duration::from_secs(180);

/// A source file: its name, and what is in it.
pub(super) type Source = (&'static str, &'static str);

/// Where programs are compiled and run; removed at the end.
pub(super) struct Workshop {
    directory: TempDir,
    stop: Stop,
}

impl Workshop {
    pub(super) fn new(sources: &[Source], stop: Stop) -> Result<Self, Missing> {
        let failed = |error: std::io::Error| not_run("temporary files", &error);
        let directory = records::temporary_directory("gleaner-reproduce-").map_err(failed)?;
        for (name, text) in sources {
            std::fs::write(directory.path().join(name), text).map_err(failed)?;
        }
        Ok(Self { directory, stop })
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.asked()
    }

    /// Compiles a source into a program of this name.
    pub(super) fn compile(&self, source: &str, options: &[&str], name: &str) -> Result<(), Missing> {
        let mut command = Command::new("cc");
        command.args(options).args(["-pthread", "-o", name, source]);
        match self.run(&mut command, None, &mut || {}) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Missing::NotRun(format!("the C compiler does not take {source}"))),
            Err(Missing::NotRun(why)) => Err(Missing::NotRun(format!("needs a C compiler: {why}"))),
            Err(other) => Err(other),
        }
    }

    /// Runs one of this binary's own verbs, and reads the record that it writes; its messages are
    /// what is told if there is none.
    pub(super) fn record<R: Record>(&self, verb: &[&str], record: &str) -> Result<R, Missing> {
        self.record_watched(verb, record, &mut || {})
    }

    /// The same; `meanwhile` is called a few times a second.
    pub(super) fn record_watched<R: Record>(
        &self,
        verb: &[&str],
        record: &str,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<R, Missing> {
        let own = std::env::current_exe().map_err(|error| not_run("this program", &error))?;
        let mut command = Command::new(own);
        command.args(verb);
        let messages = self.at("messages");
        let done = self.run(&mut command, Some(&messages), meanwhile)?;
        records::read::<R>(&self.at(record)).map(|document| document.body).map_err(|error| {
            let said = std::fs::read_to_string(&messages).unwrap_or_default();
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            let why = if done || last.is_empty() { error.to_string() } else { last.to_owned() };
            Missing::NotRun(format!("gleaner {}: {why}", verb[0]))
        })
    }

    /// How long a program takes.
    pub(super) fn seconds(&self, program: &str, arguments: &[&str]) -> Result<f64, Missing> {
        let mut command = Command::new(self.at(program));
        command.args(arguments);
        let began = Instant::now();
        if self.run(&mut command, None, &mut || {})? {
            Ok(began.elapsed().as_secs_f64())
        } else {
            Err(Missing::NotRun(format!("{program} failed")))
        }
    }

    /// Whether it ends well. What it prints goes nowhere, its messages to a file, if one is named.
    fn run(
        &self,
        command: &mut Command,
        messages: Option<&Path>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<bool, Missing> {
        let name = command.get_program().to_string_lossy().into_owned();
        if self.stopped() {
            return Err(stopped());
        }
        let messages = match messages {
            Some(path) => File::create(path).map_err(|error| not_run("temporary files", &error))?.into(),
            None => Stdio::null(),
        };
        command
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages);
        children::run(command, LIMIT, self.stop, meanwhile).map(|status| status.success()).map_err(|why| {
            match why {
                NoEnd::Stopped => stopped(),
                NoEnd::TooLong(limit) => Missing::NotRun(format!("{name} took longer than {limit:?}")),
                NoEnd::NotRun(why) => Missing::NotRun(format!("{name}: {why}")),
            }
        })
    }
}

fn stopped() -> Missing {
    Missing::NotRun("stopped before it was complete".to_owned())
}

fn not_run(what: impl AsRef<OsStr>, error: &std::io::Error) -> Missing {
    Missing::NotRun(format!("{}: {}", what.as_ref().to_string_lossy(), records::plain(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_compiled_and_timed() {
        let source = ("three.c", "int main(int n, char **a) { (void)a; return n == 2; }\n");
        let workshop = Workshop::new(&[source], Stop::never()).unwrap();
        match workshop.compile("three.c", &["-O1"], "three") {
            Err(Missing::NotRun(why)) => assert!(why.contains("C compiler"), "{why}"),
            other => {
                other.unwrap();
                assert!(workshop.seconds("three", &[]).unwrap() > 0.0);
                assert!(workshop.seconds("three", &["x"]).is_err(), "it fails with an argument");
            }
        }
    }
}
