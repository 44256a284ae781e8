//! A machine record as text for people: its head, a part for each experiment (`results/`), what is
//! odd, and the grade.

mod grade;
mod head;

use crate::{results, wrap};
use records::machine::Machine;
use std::fmt::Write;

/// The summary, in lines of at most `width` characters where words allow it.
pub(crate) fn of(machine: &Machine, colour: bool, width: usize) -> String {
    let mut text = busy(machine).unwrap_or_default();
    text.push_str(&head::lines(machine));
    for results in results::IN_SUMMARY {
        if let Some(lines) = (results.lines)(machine, width) {
            let _ = write!(text, "\n{}\n{lines}", heading(results.title, colour));
        }
    }
    let odd = experiments::odd::findings(machine);
    if !odd.is_empty() {
        let _ = write!(text, "\n{}\n  {}\n", heading("Odd", colour), odd.join("\n  "));
    }
    let _ = write!(text, "\n{}", grade::lines(machine, colour));
    wrap::lines(&text, width)
}

/// The first line where other work ran: it explains what is wide below, or missing.
pub(crate) fn busy(machine: &Machine) -> Option<String> {
    let (programs, are) = match machine.run.blocks.other_tasks {
        0 => return None,
        1 => ("1 other program".to_owned(), "is"),
        several => (format!("{several} other programs"), "are"),
    };
    Some(format!("{programs} {are} running: intervals are wide, and some figures may be missing\n"))
}

fn heading(title: &str, colour: bool) -> String {
    if colour { format!("\x1b[1m{title}\x1b[0m") } else { title.to_owned() }
}
