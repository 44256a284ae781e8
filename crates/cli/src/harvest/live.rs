//! The live view: a line on the terminal while a harvest runs, where it disturbs nobody.
//!
//! It is drawn on the controlling terminal itself, so that redirections of the primary stay as they are. Where the
//! primary's output or errors go to a terminal, only the window's title is set: a line would get mixed with them.

use ::harvest::launch::{Ready, Snapshot};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

pub(super) struct Live {
    terminal: Option<File>,
    in_title: bool,
    before: Option<(Instant, Snapshot)>,
    ready: Ready,
}

impl Live {
    /// Draws nothing unless asked to, and where there is no terminal.
    pub(super) fn open(asked: bool) -> Self {
        let terminal = if asked { OpenOptions::new().write(true).open("/dev/tty").ok() } else { None };
        let in_title = io::stdout().is_terminal() || io::stderr().is_terminal();
        Self { terminal, in_title, before: None, ready: Ready::default() }
    }

    pub(super) fn show(&mut self, now: &Snapshot) {
        if self.terminal.is_none() {
            return;
        }
        let before = self.before.replace((Instant::now(), now.clone()));
        let before = before.as_ref().map(|(at, snapshot)| (at.elapsed(), snapshot));
        let at_home = now.scavengers.iter().filter(|scavenger| scavenger.running && scavenger.aboard == 0);
        let behind = self.ready.look(at_home.map(|scavenger| scavenger.pid));
        let text = line(now, before, behind);
        self.draw(&text);
    }

    pub(super) fn close(&mut self) {
        self.draw("");
    }

    fn draw(&mut self, text: &str) {
        let Some(terminal) = &mut self.terminal else { return };
        let text = printable(text);
        let drawn = if self.in_title {
            format!("\x1b]2;{text}\x07")
        } else {
            // As wide as it is now: what does not fit would go on in the next line, which nothing takes away again.
            let width = terminal_size::terminal_size_of(&*terminal).map(|(width, _)| usize::from(width.0));
            format!("\r\x1b[K{}", cut(&text, width.unwrap_or(usize::MAX)))
        };
        // A terminal that went away is no reason to stop.
        let _ = terminal.write_all(drawn.as_bytes()).and_then(|()| terminal.flush());
    }
}

/// Names of files may hold what a terminal takes for orders.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// So much of a text that a line of this width is not full: some terminals begin the next one with its last character.
fn cut(text: &str, width: usize) -> &str {
    let end = text.char_indices().nth(width.saturating_sub(1)).map(|(end, _)| end);
    &text[..end.unwrap_or(text.len())]
}

/// What happens now; `before` is what happened so long ago. So many at home wait behind others for a processor.
fn line(now: &Snapshot, before: Option<(Duration, &Snapshot)>, behind: usize) -> String {
    if !now.harvesting {
        return "gleaner: the primary runs alone".to_owned();
    }
    if let Some(other) = &now.executed {
        return format!("gleaner: the primary executed {} in its place, which runs alone", other.display());
    }
    if let Some(siblings) = &now.siblings {
        return format!(
            "gleaner: {} of {} threads aboard others, {} boardings, {} trips home",
            siblings.aboard,
            siblings.threads,
            siblings.boardings,
            siblings.trips.iter().sum::<u64>()
        );
    }
    let running = now.scavengers.iter().filter(|scavenger| scavenger.running).count();
    let room: u32 = now.threads.iter().map(|thread| thread.ring).sum();
    let waiting = match now.threads.iter().filter(|thread| thread.guests > 0 && !thread.with_guests).count() {
        0 => "",
        _ => ", some wait",
    };
    let mut text =
        format!("gleaner: {} of {running} scavengers aboard (room for {room}{waiting})", now.aboard());
    if behind > 0 {
        let _ = write!(text, ", {behind} at home without a processor");
    }
    if let Some((time, before)) = before.filter(|(time, _)| !time.is_zero()) {
        let aboard: Duration = now.scavengers.iter().map(|s| s.aboard_time).sum();
        let was: Duration = before.scavengers.iter().map(|s| s.aboard_time).sum();
        let boardings =
            |snapshot: &Snapshot| -> u64 { snapshot.scavengers.iter().map(|s| s.boardings).sum() };
        let _ = write!(
            text,
            ", {:.1} aboard of late, {} came and went",
            aboard.saturating_sub(was).as_secs_f64() / time.as_secs_f64(),
            boardings(now).saturating_sub(boardings(before))
        );
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
        _ => text.push_str("; the primary's pace is not known yet"),
    }
    if let Some(away) = now.paces.absence(0.99) {
        let _ = write!(text, "; 99% of absences below {away:.0} ns");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::harvest::launch::{Pace, Paces, ScavengerNow};

    #[test]
    fn a_line_stays_one() {
        assert_eq!(cut("gleaner: 2 of", 10), "gleaner: ");
        assert_eq!(cut("gleaner", 8), "gleaner");
        assert_eq!((cut("gleaner", 7), cut("é?", 2), cut("é", 1), cut("é", 0)), ("gleane", "é", "", ""));
        assert_eq!(cut("gleaner", usize::MAX), "gleaner");
        assert_eq!(printable("a\nb\u{1b}]2;c\u{9b}é"), "a?b?]2;c?é");
    }

    #[test]
    fn a_line_says_who_is_where_and_what_it_costs() {
        let scavenger = ScavengerNow { running: true, aboard: 1, boardings: 5, ..ScavengerNow::default() };
        let thread = Pace { guests: 2, ring: 4, with_guests: true, slower: None };
        let mut now = Snapshot {
            harvesting: true,
            scavengers: vec![scavenger; 2],
            threads: vec![thread],
            ..Snapshot::default()
        };
        assert_eq!(
            line(&now, None, 0),
            "gleaner: 2 of 2 scavengers aboard (room for 4); the primary's pace is not known yet"
        );
        now.paces = Paces {
            watched: 11e6,
            with_guests: 2e6,
            lost: 1e6,
            squares: [2e12, 1e12, 0.5e12],
            samples: 2,
            spells: 2,
            absences: vec![(400.0, 1000)],
            ..Paces::default()
        };
        now.threads[0].with_guests = false;
        let before = Snapshot { scavengers: vec![ScavengerNow::default(); 2], ..now.clone() };
        assert_eq!(
            line(&now, Some((Duration::from_secs(1), &before)), 1),
            "gleaner: 2 of 2 scavengers aboard (room for 4, some wait), 1 at home without a processor, 0.0 aboard of late, 10 came and went; primary +10.0% [+10.0, +10.0]; 99% of absences below 400 ns"
        );
        assert_eq!(line(&Snapshot::default(), None, 0), "gleaner: the primary runs alone");
        now.executed = Some("/bin/other".into());
        assert_eq!(
            line(&now, None, 0),
            "gleaner: the primary executed /bin/other in its place, which runs alone"
        );
    }
}
