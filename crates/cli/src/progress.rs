//! How far a run has come, and how long it will still take.
//!
//! Drawn by the caller's thread, at most a few times a second: a thread of its own would disturb
//! what is measured.

use crate::plain;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use units::{Progress, Silent};

/// Lines that stay have ASCII characters alone if `ascii`.
pub(crate) fn on_stderr(quiet: bool, terminal: bool, ascii: bool) -> Box<dyn Progress + Send> {
    if quiet {
        Box::new(Silent)
    } else if terminal {
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(w, _)| usize::from(w.0));
        Box::new(Fit { ascii, on: OneLine::new(io::stderr(), width, Instant::now) })
    } else {
        Box::new(Fit { ascii, on: PlainLines::new(io::stderr(), Instant::now) })
    }
}

/// Makes text fit for a console: it may name files and programs, and so hold control characters.
struct Fit<P> {
    ascii: bool,
    on: P,
}

impl<P: Progress> Progress for Fit<P> {
    fn at(&mut self, what: &str, fraction: f64) {
        self.on.at(&plain::escaped(what), fraction);
    }

    fn line(&mut self, text: &str) {
        let text = plain::escaped_lines(text);
        self.on.line(&if self.ascii { plain::ascii(&text) } else { text });
    }

    fn finish(&mut self) {
        self.on.finish();
    }
}

/// For a terminal: one line, redrawn in place.
struct OneLine<W: Write, C> {
    out: W,
    width: usize,
    now: C,
    began: Instant,
    drawn: Option<Instant>,
    what: String,
}

/// Often enough to look alive, seldom enough to cost nothing.
const REDRAW: Duration = Duration::from_millis(200);
/// Before that much of a run is over its end cannot be foretold.
const FORETELL_FROM: f64 = 0.02;

impl<W: Write, C: Fn() -> Instant> OneLine<W, C> {
    fn new(out: W, width: usize, now: C) -> Self {
        let began = now();
        Self { out, width, now, began, drawn: None, what: String::new() }
    }

    fn clear(&mut self) {
        let _ = write!(self.out, "\r\x1b[K");
    }
}

impl<W: Write, C> Drop for OneLine<W, C> {
    /// Where a run ends early, what it says then must not follow on the half-drawn line.
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(self.out, "\r\x1b[K").and_then(|()| self.out.flush());
        }
    }
}

impl<W: Write, C: Fn() -> Instant> Progress for OneLine<W, C> {
    fn at(&mut self, what: &str, fraction: f64) {
        let now = (self.now)();
        let fresh = self.drawn.is_some_and(|drawn| now - drawn < REDRAW);
        if fresh && self.what == what {
            return;
        }
        let fraction = fraction.clamp(0.0, 1.0);
        let left = if fraction >= FORETELL_FROM {
            let spent = now - self.began;
            format!(", {} left", brief(spent.mul_f64((1.0 - fraction) / fraction)))
        } else {
            String::new()
        };
        let text = format!("{:3.0}%  {what}{left}", 100.0 * fraction);
        let text: String = text.chars().take(self.width.saturating_sub(1)).collect();
        self.clear();
        let _ = write!(self.out, "{text}");
        let _ = self.out.flush();
        self.drawn = Some(now);
        what.clone_into(&mut self.what);
    }

    fn line(&mut self, text: &str) {
        self.finish();
        let _ = writeln!(self.out, "{text}");
    }

    /// Clears the line.
    fn finish(&mut self) {
        if self.drawn.take().is_some() {
            self.clear();
            let _ = self.out.flush();
        }
    }
}

/// For files and logs: a line whenever something else begins, and now and then while it goes on, so
/// that a reader sees that it does.
struct PlainLines<W, C> {
    out: W,
    now: C,
    what: String,
    written: Option<Instant>,
}

/// Between two lines of the same thing.
const SAME_AGAIN: Duration = Duration::from_secs(10);

impl<W: Write, C: Fn() -> Instant> PlainLines<W, C> {
    fn new(out: W, now: C) -> Self {
        Self { out, now, what: String::new(), written: None }
    }
}

impl<W: Write, C: Fn() -> Instant> Progress for PlainLines<W, C> {
    fn at(&mut self, what: &str, fraction: f64) {
        let now = (self.now)();
        let fresh = self.written.is_some_and(|written| now - written < SAME_AGAIN);
        if self.what == what && fresh {
            return;
        }
        let _ = writeln!(self.out, "{:3.0}%  {what}", 100.0 * fraction.clamp(0.0, 1.0));
        what.clone_into(&mut self.what);
        self.written = Some(now);
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }

    fn finish(&mut self) {}
}

/// `3 s`, `2 min 10 s`, `1 h 05 min`.
fn brief(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_line_tells_the_time_left_and_keeps_to_the_width() {
        let start = Instant::now();
        let clock = Cell::new(start);
        let mut out = Vec::new();
        let mut line = OneLine::new(&mut out, 31, || clock.get());
        line.at("latency", 0.0);
        clock.set(start + Duration::from_secs(30));
        line.at("latency", 0.25);
        line.at("latency", 0.26); // too soon after: not drawn
        line.at("a name that is longer than this terminal is wide", 0.3);
        line.finish();
        drop(line);
        let text = String::from_utf8(out).unwrap();
        let drawn: Vec<_> = text.split("\r\x1b[K").collect();
        assert_eq!(
            drawn,
            ["", "  0%  latency", " 25%  latency, 1 min 30 s left", " 30%  a name that is longer th", ""]
        );
    }

    #[test]
    fn one_line_goes_away_when_the_run_ends_early() {
        let mut out = Vec::new();
        OneLine::new(&mut out, 80, Instant::now).at("latency", 0.5);
        assert!(out.ends_with(b"\r\x1b[K"), "{}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn what_is_told_of_does_not_steer_the_terminal() {
        let mut out = Vec::new();
        let mut lines = Fit { ascii: true, on: PlainLines::new(&mut out, Instant::now) };
        lines.at("analysing /tmp/\u{1b}[2J", 0.5);
        lines.line("é\u{7}\nand more");
        assert_eq!(String::from_utf8(out).unwrap(), " 50%  analysing /tmp/\\u{1b}[2J\n?\\u{7}\nand more\n");
    }

    #[test]
    fn plain_lines_come_with_a_step_and_while_it_goes_on() {
        let start = Instant::now();
        let clock = Cell::new(start);
        let mut out = Vec::new();
        let mut lines = PlainLines::new(&mut out, || clock.get());
        for (what, fraction) in [("clock", 0.0), ("clock", 0.1), ("latency", 0.2), ("latency", 0.5)] {
            lines.at(what, fraction);
        }
        // A long step shows that it goes on.
        for seconds in [9, 11, 12] {
            clock.set(start + Duration::from_secs(seconds));
            lines.at("latency", 0.6 + seconds as f64 / 100.0);
        }
        lines.line("done");
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "  0%  clock\n 20%  latency\n 71%  latency\ndone\n");
    }

    #[test]
    fn times_are_brief() {
        let text = |s| brief(Duration::from_secs(s));
        assert_eq!([text(5), text(65), text(3725)], ["5 s", "1 min 05 s", "1 h 02 min"]);
    }
}
