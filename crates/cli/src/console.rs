//! Where output goes: text for people, the record for programs, remarks beside both.

use crate::failure::OutputError;
use crate::progress::{self, Progress};
use records::{Document, Record};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Narrower terminals are not written for.
const NARROWEST: usize = 40;

/// How this run talks.
#[derive(Debug)]
pub(crate) struct Console {
    json: bool,
    quiet: bool,
    colour: bool,
}

impl Console {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let text_on_terminal = if json { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        // https://no-color.org: any value but the empty one means no.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self { json, quiet, colour: text_on_terminal && !refused }
    }

    /// The console of a run whose record goes to this file: `-` means what `--json` means.
    pub(crate) fn with_output(&self, output: Option<&Path>) -> Self {
        let dash = output.is_some_and(|path| path.as_os_str() == "-");
        Self::new(self.json || dash, self.quiet)
    }

    /// Whether the record goes to standard output.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether text for people may have colours.
    pub(crate) fn colour(&self) -> bool {
        self.colour
    }

    /// How wide text for people may be: as wide as the terminal, and in files and pipes as wide as it likes.
    pub(crate) fn width(&self) -> usize {
        let size = if self.json {
            terminal_size::terminal_size_of(io::stderr())
        } else {
            terminal_size::terminal_size_of(io::stdout())
        };
        size.map_or(usize::MAX, |(width, _)| usize::from(width.0).max(NARROWEST))
    }

    /// The verb's answer as text for people. It makes way for the record: with `--json` it goes to standard error.
    pub(crate) fn text(&self, text: &str) -> Result<(), OutputError> {
        if !self.json {
            return self.stdout(text);
        }
        if !self.quiet {
            let _ = io::stderr().write_all(text.as_bytes()); // the record is what matters now
        }
        Ok(())
    }

    /// The verb's record, on standard output if `--json` was given.
    pub(crate) fn document<R: Record>(&self, document: &Document<R>) -> Result<(), OutputError> {
        if self.json { self.stdout(&document.to_json()) } else { Ok(()) }
    }

    /// Something for standard output whatever the options: JSON that was asked for, or a format other tools read.
    #[expect(clippy::unused_self, reason = "asked of the console like all output, so that it can be found")]
    pub(crate) fn stdout(&self, text: &str) -> Result<(), OutputError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// A remark beside the answer: one line on standard error, none with `--quiet`.
    pub(crate) fn remark(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{line}"); // a remark that cannot be told is no reason to stop
        }
    }

    /// Progress on standard error: one line with the time left on a terminal, plain lines elsewhere, nothing if quiet.
    pub(crate) fn progress(&self) -> Box<dyn Progress> {
        progress::on_stderr(self.quiet, io::stderr().is_terminal())
    }
}
