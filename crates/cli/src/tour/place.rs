//! The tour's directory: the program, which is a part of this binary, and how it and this binary's
//! own verbs are run there.

use super::NotRun;
use crate::children::{self, NoEnd};
use crate::failure::Refusal;
use crate::save;
use lab::stop::Stop;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::NamedTempFile;

pub(super) const STORY: &str = "tour.json";
pub(super) const PAGE: &str = "report.html";
pub(super) const MACHINE: &str = "machine.json";
pub(super) const PROFILE: &str = "profile.json";
pub(super) const RUN: &str = "run.json";

/// What the program is compiled from; lines of it are shown.
pub(super) const JOIN_SOURCE: &str = include_str!("../../../../programs/tour/join.c");
const JOIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/join"));

/// No program here takes half a minute on a machine of its own; a busy one takes longer.
const LIMIT: Duration = Duration::from_secs(300);

pub(super) struct Place {
    /// As the user named it.
    shown: PathBuf,
    directory: PathBuf,
}

impl Place {
    pub(super) fn new(shown: &Path) -> Result<Self, Refusal> {
        let directory = std::fs::canonicalize(save::directory(shown)?)
            .map_err(|error| crate::failure::unwritable(shown.display().to_string(), &error))?;
        let place = Self { shown: shown.to_owned(), directory };
        save::program(&place.at("join"), JOIN, 0o755)?;
        save::bytes(&place.at("join.c"), JOIN_SOURCE.as_bytes())?;
        Ok(place)
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The same as the user may type it.
    pub(super) fn shown(&self, name: &str) -> PathBuf {
        self.shown.join(name)
    }

    /// Runs one of this binary's own verbs there, and gives what it printed; where it failed, what
    /// it said last of itself.
    pub(super) fn verb<S: AsRef<OsStr>>(&self, words: &[S], stop: Stop) -> Result<String, NotRun> {
        let own = std::env::current_exe().map_err(|error| NotRun::because(records::plain(&error)))?;
        let mut command = Command::new(own);
        let ran = self.run(command.args(words), stop)?;
        if ran.status.success() {
            return Ok(ran.printed);
        }
        Err(cause(&ran.messages, &ran.status.to_string()))
    }

    /// Runs the program there, and gives what it printed.
    pub(super) fn join(&self, words: &[&str], stop: Stop) -> Result<String, NotRun> {
        let mut command = Command::new(self.at("join"));
        let ran = self.run(command.args(words), stop)?;
        if ran.status.success() {
            Ok(ran.printed)
        } else {
            Err(NotRun::because(format!("join ended with {}", ran.status)))
        }
    }

    fn run(&self, command: &mut Command, stop: Stop) -> Result<Ran, NotRun> {
        let name = Path::new(command.get_program()).file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let temporary = |error: std::io::Error| {
            NotRun::because(format!(
                "temporary files: {}: {}",
                std::env::temp_dir().display(),
                records::plain(&error)
            ))
        };
        let (printed, messages) =
            (NamedTempFile::new().map_err(temporary)?, NamedTempFile::new().map_err(temporary)?);
        command
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(printed.reopen().map_err(temporary)?)
            .stderr(messages.reopen().map_err(temporary)?);
        let status = children::run(command, LIMIT, stop, &mut || {}).map_err(|why| match why {
            NoEnd::Stopped => NotRun::because("it was stopped"),
            NoEnd::TooLong(limit) => NotRun::because(format!("{name} took longer than {limit:?}")),
            NoEnd::NotRun(why) => NotRun::because(format!("{name}: {why}")),
        })?;
        let read = |file: &NamedTempFile| std::fs::read_to_string(file.path()).unwrap_or_default();
        Ok(Ran { status, printed: read(&printed), messages: read(&messages) })
    }
}

struct Ran {
    status: ExitStatus,
    printed: String,
    messages: String,
}

/// What a verb that failed says is the cause. How scavengers ended follows from that.
fn cause(messages: &str, status: &str) -> NotRun {
    let mut own = messages.lines().filter_map(|line| line.strip_prefix("gleaner: "));
    let Some(line) = own.rfind(|line| !line.starts_with("scavenger ")) else {
        // The program's own words stand before the summary, whose first line is not indented.
        let said = messages.lines().find(|line| !line.trim().is_empty());
        let said = said.filter(|line| !line.starts_with("harvest: "));
        return NotRun::because(said.map_or_else(|| status.to_owned(), |said| format!("{said} ({status})")));
    };
    match line.split_once("; ") {
        Some((why, help)) => NotRun { why: why.to_owned(), would_help: Some(help.to_owned()) },
        None => NotRun::because(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_and_not_what_follows_from_it() {
        let messages = "harvest: 3 s with a ring of 4\n\
                        gleaner: harvesting: the primary ran alone: no FSGSBASE; Linux 5.9\n\
                        gleaner: scavenger ./join endless others-1 (1): killed by signal 9; its output was discarded\n";
        let found = cause(messages, "exit status: 1");
        assert_eq!(found.why, "harvesting: the primary ran alone: no FSGSBASE");
        assert_eq!(found.would_help.as_deref(), Some("Linux 5.9"));
        let own = "join: no such file: beside\nharvest: 1 ms with a ring of 4\n  next: x\n";
        assert_eq!(cause(own, "exit status: 2").why, "join: no such file: beside (exit status: 2)");
        let silent = "gleaner: scavenger ./join (1): killed by signal 9\n";
        assert_eq!(cause("", "signal: 11").why, "signal: 11");
        assert!(cause(silent, "signal: 11").why.contains("signal: 11"));
    }
}
