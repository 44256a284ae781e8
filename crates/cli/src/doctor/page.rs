//! The page that doctor prints: sections of marked lines, wrapped to the terminal.

use crate::plain::{escaped, escaped_lines};
use records::host::{Ability, Fact};
use std::fmt::{Display, Write as _};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) colour: bool,
    pub(crate) width: usize,
}

/// Width of the column of labels.
const LABEL: usize = 15;
/// Where text starts: two spaces, the mark, a space, the label, a space.
const INDENT: usize = 4 + LABEL + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// So it is, and it is well.
    Yes,
    /// Not possible, or not well; a help follows.
    No,
    Unknown,
    /// Cannot be as claimed.
    Odd,
    /// So it is, neither good nor bad.
    Plain,
}

impl Mark {
    fn glyph(self) -> (&'static str, &'static str) {
        match self {
            Self::Yes => ("✓", "\x1b[32m"),
            Self::No => ("✗", "\x1b[31m"),
            Self::Unknown => ("?", "\x1b[33m"),
            Self::Odd => ("!", "\x1b[35m"),
            Self::Plain => ("·", "\x1b[2m"),
        }
    }
}

pub(crate) struct Page {
    style: Style,
    text: String,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn paint(&self, text: &str, colour: &str) -> String {
        if self.style.colour { format!("{colour}{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn section(&mut self, title: &str) {
        let title = self.paint(title, "\x1b[1m");
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.text, "{gap}{title}");
    }

    pub(crate) fn line(&mut self, mark: Mark, label: &str, text: &str) {
        let (glyph, colour) = mark.glyph();
        let glyph = self.paint(glyph, colour);
        let label = escaped(label);
        let mut lines = wrap(text, self.style.width - INDENT).into_iter();
        let first = lines.next().unwrap_or_default();
        let head = format!("  {glyph} {label:<LABEL$} {first}");
        let _ = writeln!(self.text, "{}", head.trim_end());
        for line in lines {
            let _ = writeln!(self.text, "{:INDENT$}{line}", "");
        }
    }

    fn more(&mut self, text: &str) {
        for line in wrap(text, self.style.width - INDENT) {
            let line = self.paint(&line, "\x1b[2m");
            let _ = writeln!(self.text, "{:INDENT$}{line}", "");
        }
    }

    pub(crate) fn no(&mut self, label: &str, why: &str, would_help: &str) {
        self.line(Mark::No, label, why);
        self.more(&format!("would help: {would_help}"));
    }

    pub(crate) fn ability(&mut self, label: &str, ability: &Ability) {
        match ability {
            Ability::Yes { detail } => self.line(Mark::Yes, label, detail),
            Ability::No { why, would_help } => self.no(label, why, would_help),
            Ability::Unknown { why } => self.line(Mark::Unknown, label, why),
        }
    }

    pub(crate) fn fact<T: Display>(&mut self, mark: Mark, label: &str, fact: &Fact<T>) {
        match fact {
            Fact::Known(value) => self.line(mark, label, &value.to_string()),
            Fact::Unknown { unknown } => self.line(Mark::Unknown, label, unknown),
        }
    }
}

/// What is shown may come from a record of another machine: control characters are escaped.
///
/// Breaks between words, but not inside `commands` that fit on a line, so that they can be copied.
/// A word longer than the line stands alone.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in words(&escaped_lines(text), width) {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

fn words(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(command) if open && command.chars().count() + 1 + word.chars().count() <= width => {
                command.push(' ');
                command.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_whole() {
        assert_eq!(wrap("as root: `echo 1 > /x`, or so", 14), ["as root:", "`echo 1 > /x`,", "or so"]);
        assert_eq!(wrap("`a much longer command`", 8), ["`a much", "longer", "command`"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(wrap("a\u{1b}[2J b", 20), ["a\\u{1b}[2J b"]);
    }
}
