//! The tour as text for a terminal.

use crate::plain::escaped_lines;
use crate::wrap;
use records::machine::Machine;
use records::tour::{StepOutcome, Tour, TourStep};
use std::path::Path;

/// Lines are no longer than people like to read.
const WIDEST: usize = 100;

pub(super) fn beginning(program: &[&str], width: usize) -> String {
    let mut text =
        String::from("A program that waits for memory: why, and what can be done. Two to three minutes.\n\n");
    for sentence in program {
        text.push_str(&paragraph(sentence, "", width));
    }
    text
}

pub(super) fn question(number: usize, title: &str, command: &str, width: usize) -> String {
    fitted(&format!("\n{number}. {title}\n   $ {command}\n"), width)
}

pub(super) fn answer(step: &TourStep, width: usize) -> String {
    let mut text = String::new();
    for sentence in &step.says {
        // What is code stands further in, and is not filled.
        match sentence.strip_prefix("  ") {
            Some(code) => text.push_str(&format!("       {}\n", escaped_lines(code))),
            None => text.push_str(&paragraph(&escaped_lines(sentence), "   ", width)),
        }
    }
    if let StepOutcome::NotRun { why, would_help } = &step.outcome {
        let help = would_help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        let line = escaped_lines(&format!("not possible here: {why}{help}"));
        text.push_str(&paragraph(&line, "   ", width));
    }
    text
}

pub(super) fn end(page: &Path, story: &Tour, width: usize) -> String {
    let mut text = String::from("\nNext, with a program of your own\n");
    let widest = story.next.iter().map(|next| next.command.len()).max().unwrap_or(0);
    for next in &story.next {
        text.push_str(&format!("  {:widest$}  {}\n", next.command, next.what_for));
    }
    let page = page.display();
    let stopped =
        if story.interrupted { "stopped before the end; what was found until then" } else { "all of it" };
    text.push_str(&format!(
        "\nThe report, {stopped} with pictures: {page}\n  open it in a browser: xdg-open {page}; it is one file and needs \
         no network\n"
    ));
    fitted(&escaped_lines(&text), width)
}

/// Words in lines that fit, all of them this far in.
fn paragraph(text: &str, indent: &str, width: usize) -> String {
    let most = width.min(WIDEST);
    let mut filled = String::from(indent);
    let mut taken = indent.len();
    for (n, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if n > 0 && taken + 1 + length > most {
            filled.push('\n');
            filled.push_str(indent);
            taken = indent.len();
        } else if n > 0 {
            filled.push(' ');
            taken += 1;
        }
        filled.push_str(word);
        taken += length;
    }
    filled.push('\n');
    filled
}

fn fitted(text: &str, width: usize) -> String {
    wrap::lines(text, width.min(WIDEST))
}

/// What the processor is called.
pub(super) fn processor(machine: &Machine) -> String {
    let processor = &machine.host.processor;
    let name = processor.name.get().map_or("unknown", String::as_str);
    match processor.microarchitecture.get() {
        Some(kind) => format!("{name}, {kind}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_fill_lines_that_fit() {
        assert_eq!(paragraph("one two three", "  ", 9), "  one two\n  three\n");
        assert_eq!(paragraph("one two", "", usize::MAX), "one two\n");
        assert_eq!(paragraph("unbreakable", " ", 4), " unbreakable\n");
    }

    #[test]
    fn a_step_that_was_not_run_says_why_and_what_helps() {
        let step = TourStep {
            title: "Q?".to_owned(),
            command: "gleaner".to_owned(),
            outcome: StepOutcome::NotRun {
                why: "no perf events".to_owned(),
                would_help: Some("root".to_owned()),
            },
            says: vec!["Found:".to_owned(), "  while (x) y;".to_owned()],
            figures: Vec::new(),
            figures_show: String::new(),
            record: None,
        };
        assert_eq!(
            answer(&step, 80),
            "   Found:\n       while (x) y;\n   not possible here: no perf events; root\n"
        );
    }
}
