//! One run of a program: its time, and what it printed.

use crate::prepared::Prepared;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// What is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// Why nothing was tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("standard input: it is not a file, so it cannot be read once more for each run")]
    Input,
    #[error("{what}: {why}")]
    NotRun { what: String, why: String },
}

/// What a run printed on its standard output: its length and a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    bytes: u64,
    hash: u64,
    end: i32,
}

pub(crate) struct Run {
    pub seconds: f64,
    pub printed: Printed,
    /// How it failed, if it did.
    pub failed: Option<String>,
}

impl Program {
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

    /// Runs it once, as it is prepared.
    pub(crate) fn run(&self, prepared: &Prepared) -> Result<Run, TrialError> {
        let first = self.command.first().cloned().unwrap_or_default();
        let not_run = |e: io::Error| TrialError::NotRun {
            what: records::text_of(Path::new(&first)),
            why: records::plain(&e),
        };
        let mut output = tempfile::tempfile().map_err(not_run)?;
        let file = prepared.program.as_ref().map_or(first.as_os_str(), |path| path.as_os_str());
        let mut command = Command::new(file);
        command
            .arg0(&first)
            .args(self.command.iter().skip(1))
            .args(&prepared.arguments)
            .envs(prepared.environment.iter().map(|(name, value)| (name, value)))
            .stdin(input())
            .stdout(output.try_clone().map_err(not_run)?)
            .stderr(Stdio::null());
        let began = Instant::now();
        let status = command.status().map_err(not_run)?;
        let seconds = began.elapsed().as_secs_f64();
        let printed = printed(&mut output, status).map_err(not_run)?;
        let failed = match (status.code(), status.signal()) {
            (_, Some(signal)) => Some(format!("it was killed by signal {signal}")),
            _ => None,
        };
        Ok(Run { seconds, printed, failed })
    }
}

/// Standard input of one of several runs: a file is read from its beginning again; of anything
/// else, runs find the end at once.
pub fn input() -> Stdio {
    let is_file = std::fs::metadata("/proc/self/fd/0").is_ok_and(|about| about.is_file());
    let again = if is_file { File::open("/proc/self/fd/0").ok() } else { None };
    again.map_or_else(Stdio::null, Stdio::from)
}

fn printed(output: &mut File, status: ExitStatus) -> io::Result<Printed> {
    output.seek(SeekFrom::Start(0))?;
    // FNV-1a, by words of eight bytes.
    let (mut hash, mut bytes) = (0xcbf2_9ce4_8422_2325_u64, 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match output.read(&mut buffer[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        if filled == 0 {
            break;
        }
        bytes += filled as u64;
        for word in buffer[..filled].chunks(8) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            hash = (hash ^ u64::from_le_bytes(whole)).wrapping_mul(0x0000_0100_0000_01b3);
            hash ^= hash >> 29;
        }
    }
    Ok(Printed { bytes, hash, end: status.into_raw() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Program {
        Program { command: words.iter().map(OsString::from).collect() }
    }

    #[test]
    fn what_it_prints_and_how_it_ends_is_known() {
        let run = |words: &[&str]| program(words).run(&Prepared::default()).unwrap();
        let (one, two) = (run(&["echo", "one"]), run(&["echo", "two"]));
        assert_eq!((one.printed.bytes, one.failed), (4, None));
        assert!(one.printed != two.printed && one.printed == run(&["echo", "one"]).printed);
        assert_ne!(run(&["true"]).printed, run(&["false"]).printed, "they end otherwise");
        let killed = run(&["sh", "-c", "kill -9 $$"]);
        assert_eq!(killed.failed.as_deref(), Some("it was killed by signal 9"));
        assert!(program(&["/no/such/program"]).run(&Prepared::default()).is_err());
    }

    #[test]
    fn what_is_prepared_is_there() {
        let prepared = Prepared {
            program: Some("/bin/sh".into()),
            environment: vec![("GLEANER_TRIED".into(), "yes".into())],
            ..Prepared::default()
        };
        let run = program(&["anything", "-c", "echo $0 $GLEANER_TRIED"]).run(&prepared).unwrap();
        assert_eq!(run.printed.bytes, "anything yes\n".len() as u64);
        let more = Prepared { arguments: vec!["two".into()], ..Prepared::default() };
        assert_eq!(program(&["echo", "one"]).run(&more).unwrap().printed.bytes, "one two\n".len() as u64);
    }
}
