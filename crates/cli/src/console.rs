//! Where output goes: text for people, the record for programs, remarks beside both.

use crate::failure::OutputError;
use crate::plain;
use crate::progress;
use records::{Document, Record};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use units::Progress;

/// Text is not wrapped for narrower terminals, in columns.
const NARROWEST: usize = 40;

/// How this run talks.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four settings that do not hang together")]
pub(crate) struct Console {
    json: bool,
    quiet: bool,
    colour: bool,
    /// Text for people has ASCII characters alone.
    ascii: bool,
}

impl Console {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let text_on_terminal = if json { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        // https://no-color.org: any value but the empty one means no.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) || plain::is_dumb();
        Self { json, quiet, colour: text_on_terminal && !refused, ascii: plain::only_ascii() }
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

    /// Whether only the answer and errors are wanted.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether text for people may have colours.
    pub(crate) fn colour(&self) -> bool {
        self.colour
    }

    /// How wide text for people may be: as wide as the terminal; in files and pipes as `COLUMNS`
    /// says, or as it likes.
    pub(crate) fn width(&self) -> usize {
        let size = if self.json {
            terminal_size::terminal_size_of(io::stderr())
        } else {
            terminal_size::terminal_size_of(io::stdout())
        };
        let asked = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok().filter(|&columns| columns > 0);
        let width = size.map(|(width, _)| usize::from(width.0)).or_else(asked);
        width.map_or(usize::MAX, |width| width.max(NARROWEST))
    }

    /// The verb's answer as text for people. It makes way for the record: with `--json` it goes to
    /// standard error.
    pub(crate) fn text(&self, text: &str) -> Result<(), OutputError> {
        let text = &*self.shown(text);
        if !self.json {
            return self.stdout(text);
        }
        if !self.quiet {
            let _ = io::stderr().write_all(text.as_bytes()); // the record is what matters now
        }
        Ok(())
    }

    /// In the characters that this terminal has.
    fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.ascii { plain::ascii(text).into() } else { text.into() }
    }

    /// The verb's record, on standard output if `--json` was given.
    pub(crate) fn document<R: Record>(&self, document: &Document<R>) -> Result<(), OutputError> {
        if self.json { self.stdout(&plain::escaped_json(&document.to_json())) } else { Ok(()) }
    }

    /// Something of a record, on standard output.
    pub(crate) fn value(&self, value: &serde_json::Value) -> Result<(), OutputError> {
        self.stdout(&plain::escaped_json(&format!("{value:#}\n")))
    }

    /// Something for standard output whatever the options: JSON that was asked for, or a format
    /// other tools read.
    pub(crate) fn stdout(&self, text: &str) -> Result<(), OutputError> {
        self.stdout_bytes(text.as_bytes())
    }

    /// The same for a format that need not be text.
    #[expect(clippy::unused_self, reason = "asked of the console like all output, so that it can be found")]
    pub(crate) fn stdout_bytes(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// A remark beside the answer: a line on standard error, none with `--quiet`. It may name files
    /// and programs, and so hold control characters.
    pub(crate) fn remark(&self, line: &str) {
        if !self.quiet {
            let line = plain::escaped_lines(line);
            let _ = writeln!(io::stderr(), "{}", self.shown(&line)); // one that cannot be told is no reason to stop
        }
    }

    /// Progress on standard error: one line with the time left on a terminal, plain lines
    /// elsewhere, nothing if quiet.
    pub(crate) fn progress(&self) -> Box<dyn Progress + Send> {
        progress::on_stderr(self.quiet, io::stderr().is_terminal() && !plain::is_dumb(), self.ascii)
    }
}
