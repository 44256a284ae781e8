//! The live view: a line on the terminal while a harvest runs, where it disturbs nobody.
//!
//! It is drawn on the controlling terminal itself, so that redirections of the primary stay as they are. Where the
//! primary's output or errors go to a terminal, only the window's title is set: a line would get mixed with them.

use ::harvest::launch::Snapshot;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};

pub(super) struct Live {
    terminal: Option<File>,
    in_title: bool,
    ring: u32,
}

impl Live {
    /// Draws nothing unless asked to, and where there is no terminal.
    pub(super) fn open(asked: bool, ring: u32) -> Self {
        let terminal = if asked { OpenOptions::new().write(true).open("/dev/tty").ok() } else { None };
        let in_title = io::stdout().is_terminal() || io::stderr().is_terminal();
        Self { terminal, in_title, ring }
    }

    pub(super) fn show(&mut self, now: &Snapshot) {
        let text = line(now, self.ring);
        self.draw(&text);
    }

    pub(super) fn close(&mut self) {
        self.draw("");
    }

    fn draw(&mut self, text: &str) {
        let Some(terminal) = &mut self.terminal else { return };
        let drawn = if self.in_title { format!("\x1b]2;{text}\x07") } else { format!("\r\x1b[K{text}") };
        // A terminal that went away is no reason to stop.
        let _ = terminal.write_all(drawn.as_bytes()).and_then(|()| terminal.flush());
    }
}

fn line(now: &Snapshot, ring: u32) -> String {
    if !now.harvesting {
        return "gleaner: the primary runs alone".to_owned();
    }
    let running = now.scavengers.iter().filter(|scavenger| scavenger.running).count();
    let boardings: u64 = now.scavengers.iter().map(|scavenger| scavenger.boardings).sum();
    let home: u64 = now.scavengers.iter().map(|scavenger| scavenger.trips.iter().sum::<u64>()).sum();
    format!(
        "gleaner: {} aboard (ring {ring}), {running} scavengers running, {boardings} boardings, {home} trips home",
        now.aboard()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::harvest::launch::ScavengerNow;

    #[test]
    fn a_line_says_who_is_where() {
        let scavenger = ScavengerNow { running: true, aboard: 1, boardings: 5, ..ScavengerNow::default() };
        let now = Snapshot { harvesting: true, scavengers: vec![scavenger; 2], ..Snapshot::default() };
        assert_eq!(
            line(&now, 4),
            "gleaner: 2 aboard (ring 4), 2 scavengers running, 10 boardings, 0 trips home"
        );
        assert_eq!(line(&Snapshot::default(), 4), "gleaner: the primary runs alone");
    }
}
