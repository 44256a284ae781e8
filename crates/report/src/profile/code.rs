//! The code of functions that took time, with the samples of each instruction.

use crate::parts::{Cell, Out, Table};
use crate::text::{base, escape, number};
use records::profile::{AnnotatedFunction, Profile};

pub(super) fn code(profile: &Profile, out: &mut Out) {
    out.section("code", "Code, with what each instruction cost");
    if profile.code.is_empty() {
        out.missing("The record holds no code.");
        return;
    }
    for function in &profile.code {
        let shown = function.function.clone().unwrap_or_else(|| format!("{:#x}", function.address));
        let title = format!("{shown} in {}: {} samples", base(&function.module), function.samples);
        out.details(&title, &listing(&shown, function));
    }
}

fn listing(shown: &str, function: &AnnotatedFunction) -> String {
    let mut table = Table::with_head(
        &format!("Code of {shown}"),
        &["%", "samples", "waits", "address", "instruction", "source"],
    );
    let all = function.samples.max(1) as f64;
    let mut expected = None;
    let mut line = (None, None);
    for instruction in &function.instructions {
        if expected.is_some_and(|e| e != instruction.address) {
            table.row(vec![Cell::text(""), Cell::text(""), Cell::text(""), Cell::text("…")]);
        }
        expected = Some(instruction.address.saturating_add(u64::from(instruction.bytes)));
        let here = (instruction.file.as_deref(), instruction.line);
        let source = match here {
            (Some(file), Some(number)) if here != line => format!("{}:{number}", base(file)),
            _ => String::new(),
        };
        line = here;
        let samples = instruction.samples;
        let text = escape(&instruction.text);
        let text = if samples > 0 { format!("<strong>{text}</strong>") } else { text };
        table.row(vec![
            if samples > 0 { Cell::plain(number(100.0 * samples as f64 / all)) } else { Cell::text("") },
            if samples > 0 { Cell::count(samples) } else { Cell::text("") },
            Cell::text(if instruction.is_waited_for { "for memory" } else { "" }),
            Cell::sorted(format!("{:x}", instruction.address), instruction.address as f64),
            Cell::html(format!("<code>{text}</code>")),
            Cell::text(&source),
        ]);
    }
    table.html(false)
}
