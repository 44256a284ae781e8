//! The live view: one line on the terminal while a harvest runs.
//!
//! ```text
//! gleaner: 2 guests aboard of 3 scavengers (at most 4); recently 1.6 aboard, 5 boardings; …
//! ```
//!
//! It is drawn on the controlling terminal itself, so that redirections of the primary stay as they
//! are. Where the primary's output or errors go to a terminal, only the window's title is set: a
//! line would get mixed with them.

use crate::plain::escaped;
use ::harvest::launch::{Recent, RecentFigures, Snapshot, Starved};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use units::{Quantity, Unit};

pub(super) struct Live {
    terminal: Option<File>,
    in_title: bool,
    recent: Recent,
    starved: Starved,
}

impl Live {
    /// Draws nothing unless asked to, and where there is no terminal.
    pub(super) fn open(asked: bool) -> Self {
        let terminal = if asked { OpenOptions::new().write(true).open("/dev/tty").ok() } else { None };
        let in_title = io::stdout().is_terminal() || io::stderr().is_terminal();
        Self { terminal, in_title, recent: Recent::default(), starved: Starved::default() }
    }

    pub(super) fn show(&mut self, now: &Snapshot) {
        if self.terminal.is_none() {
            return;
        }
        self.recent.add(now);
        let at_home = now.scavengers.iter().filter(|scavenger| scavenger.running && scavenger.aboard == 0);
        let starved = self.starved.sample(at_home.map(|scavenger| scavenger.pid));
        let text = line(now, self.recent.figures(), starved);
        self.draw(&text);
    }

    pub(super) fn close(&mut self) {
        self.draw("");
    }

    fn draw(&mut self, text: &str) {
        let Some(terminal) = &mut self.terminal else { return };
        let text = escaped(text);
        let drawn = if self.in_title {
            format!("\x1b]2;{text}\x07")
        } else {
            // As wide as it is now: what does not fit would go on in the next line, which nothing
            // takes away again.
            let width = terminal_size::terminal_size_of(&*terminal).map(|(width, _)| usize::from(width.0));
            format!("\r\x1b[K{}", cut(&text, width.unwrap_or(usize::MAX)))
        };
        // A terminal that went away is no reason to stop.
        let _ = terminal.write_all(drawn.as_bytes()).and_then(|()| terminal.flush());
    }
}

/// As much of a text as leaves the last column free: some terminals begin a new line when that is
/// written.
fn cut(text: &str, width: usize) -> &str {
    let end = text.char_indices().nth(width.saturating_sub(1)).map(|(end, _)| end);
    &text[..end.unwrap_or(text.len())]
}

/// What happens now, and what did recently. `starved`: scavengers off the primary that wait for a
/// processor.
fn line(now: &Snapshot, recent: Option<RecentFigures>, starved: usize) -> String {
    if !now.harvesting {
        return "gleaner: the primary runs alone".to_owned();
    }
    if let Some(other) = &now.executed {
        return format!(
            "gleaner: the primary replaced itself with {} (exec), which runs alone",
            other.display()
        );
    }
    let running = now.scavengers.iter().filter(|scavenger| scavenger.running).count();
    let guests = now.guests_running();
    let most: u32 = now.threads.iter().map(|thread| thread.ring).sum();
    let plural = if guests == 1 { "" } else { "s" };
    let mut text = format!("gleaner: {guests} guest{plural} aboard of {running} scavengers (at most {most}");
    match now.aboard().saturating_sub(guests) {
        0 => text.push(')'),
        waiting => {
            let _ = write!(text, ", {waiting} waiting)");
        }
    }
    if starved > 0 {
        let _ = write!(text, ", {starved} off the primary without CPU time");
    }
    if let Some(RecentFigures { guests, boardings }) = recent {
        let _ = write!(text, "; recently {guests:.1} aboard, {boardings} boardings");
    }
    match now.paces.slowdown() {
        Ok(slower) if now.paces.samples > 1 => {
            let _ = write!(
                text,
                "; primary {:+.1}% [{:+.1}, {:+.1}]",
                100.0 * slower.value,
                100.0 * slower.lo,
                100.0 * slower.hi
            );
        }
        _ => text.push_str("; its slowdown is not known yet"),
    }
    if let Some(away) = now.paces.absence(0.99) {
        let _ = write!(text, "; 99% of absences below {}", Quantity::claimed(away, Unit::Nanos).brief());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::harvest::launch::{Paces, ScavengerNow, ThreadPace};

    #[test]
    fn a_line_stays_one() {
        assert_eq!(cut("gleaner: 2 of", 10), "gleaner: ");
        assert_eq!(cut("gleaner", 8), "gleaner");
        assert_eq!((cut("gleaner", 7), cut("é?", 2), cut("é", 1), cut("é", 0)), ("gleane", "é", "", ""));
        assert_eq!(cut("gleaner", usize::MAX), "gleaner");
    }

    #[test]
    fn a_line_says_what_runs_and_what_it_costs() {
        let scavenger = ScavengerNow { running: true, aboard: 1, boardings: 5, ..ScavengerNow::default() };
        let thread = ThreadPace { guests: 2, ring: 4, with_guests: true, slower: None };
        let mut now = Snapshot {
            harvesting: true,
            scavengers: vec![scavenger; 2],
            threads: vec![thread],
            ..Snapshot::default()
        };
        assert_eq!(
            line(&now, None, 0),
            "gleaner: 2 guests aboard of 2 scavengers (at most 4); its slowdown is not known yet"
        );
        let mut recent = Recent::default();
        recent.add(&now);
        assert_eq!(recent.figures(), None);
        now.paces = Paces {
            watched: 11e6,
            with_guests: 2e6,
            lost: 1e6,
            squares: [2e12, 1e12, 0.5e12],
            samples: 2,
            phases: 2,
            absences: vec![(400.0, 1000)],
            ..Paces::default()
        };
        // Its guests are left out for a moment, while it is timed alone: none runs.
        now.threads[0].with_guests = false;
        now.scavengers[0].boardings = 15;
        recent.add(&now);
        assert_eq!(
            line(&now, recent.figures(), 1),
            "gleaner: 0 guests aboard of 2 scavengers (at most 4, 2 waiting), 1 off the primary without CPU time; \
             recently 1.0 aboard, 10 boardings; primary +10.0% [+10.0, +10.0]; 99% of absences below 400 ns"
        );
        assert_eq!(line(&Snapshot::default(), None, 0), "gleaner: the primary runs alone");
        now.executed = Some("/bin/other".into());
        assert_eq!(
            line(&now, None, 0),
            "gleaner: the primary replaced itself with /bin/other (exec), which runs alone"
        );
    }
}
