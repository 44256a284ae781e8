//! How a run ends: the exit codes, and one line for each thing that could not be done.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use units::WouldHelp;

/// The exit codes that scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    /// An experiment, a program, a rewrite or a check failed.
    Failed = 1,
    WrongUse = 2,
    NotPossibleHere = 3,
    /// A comparison found what it was asked to fail on: something became worse.
    Regressed = 4,
    /// The same: of something it is not known.
    Inconclusive = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Something that will not be done: what, why, and what would help, told in one line.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Exit,
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) would_help: Option<String>,
}

impl Refusal {
    /// Exit 2: the command itself makes no sense here.
    pub(crate) fn wrong_use(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { code: Exit::WrongUse, what: what.into(), why: why.into(), would_help: None }
    }

    /// Exit 3: a sensible command that this host cannot do.
    pub(crate) fn not_possible_here(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { code: Exit::NotPossibleHere, what: what.into(), why: why.into(), would_help: None }
    }

    /// Exit 1: it was tried, and failed.
    pub(crate) fn failed(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { code: Exit::Failed, what: what.into(), why: why.into(), would_help: None }
    }

    #[must_use]
    pub(crate) fn would_help(mut self, what: impl Into<String>) -> Self {
        self.would_help = Some(what.into());
        self
    }

    /// What would help, as far as this knows it.
    #[must_use]
    pub(crate) fn helped_by(mut self, from: &dyn WouldHelp) -> Self {
        self.would_help = from.would_help().map(str::to_owned);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        if let Some(help) = &self.would_help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// Standard output took no more.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {}", records::plain(.0))]
pub(crate) struct OutputError(pub(crate) io::Error); // no `source`: the text above tells it already

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

/// Tells the error in one line and gives the exit code that belongs to it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let output = error.downcast_ref::<OutputError>();
    if output.is_some_and(|e| e.0.kind() == io::ErrorKind::BrokenPipe) {
        // The reader of our output has seen enough (`gleaner … | head`).
        return Exit::Done.into();
    }
    let code = if let Some(refusal) = error.downcast_ref::<Refusal>() {
        refusal.code
    } else if let Some(OutputError(why)) = output {
        unwritable("standard output", why).code
    } else if error.is::<records::ReadError>() {
        Exit::WrongUse // the wrong file was named
    } else {
        Exit::Failed
    };
    tell(&format!("{error:#}"));
    code.into()
}

/// As [`report`], where there is little stack: any other error may look for how it came about
/// (`RUST_BACKTRACE`), which takes more.
pub(crate) fn refused(refusal: &Refusal) -> ExitCode {
    tell(&refusal.to_string());
    refusal.code.into()
}

/// Exit 2 or 3: a file that could not be written. It was the wrong one, or this host has no space
/// for it.
pub(crate) fn unwritable(what: impl Into<String>, why: &io::Error) -> Refusal {
    use io::ErrorKind as Kind;
    let host = matches!(
        why.kind(),
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge | Kind::ReadOnlyFilesystem
    ) || why.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    let refuse = if host { Refusal::not_possible_here } else { Refusal::wrong_use };
    refuse(what.into(), records::plain(why))
}

/// What stands in several lines, as arguments of programs may, in one.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `gleaner: …` on standard error, in one line whatever stands in the text.
pub(crate) fn tell(text: &str) {
    let line = crate::plain::escaped(&one_line(text));
    let line = if crate::plain::only_ascii() { crate::plain::ascii(&line) } else { line };
    // Where standard error is gone too, the exit code is all that is left to say.
    let _ = writeln!(io::stderr(), "gleaner: {line}");
}
