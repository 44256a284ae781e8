//! Records within the page: each as a compressed file to save, without any script; small ones as
//! JSON for programs, too.

use crate::Named;
use crate::text::{base, base64, escape, turns_direction};
use flate2::{Compression, GzBuilder};
use serde_json::Value;
use std::io::Write;

/// Larger records stand in the page only once, compressed.
const SMALL: usize = 64 << 10;

/// Digits of numbers in larger records: far more than any interval warrants, and half of the
/// record less than with all. Whole numbers stay as they are.
const DIGITS: usize = 7;

/// The record as its file has it, brought up to date, without indentation.
fn json(named: &Named) -> String {
    Value::Object(named.record.whole()).to_string()
}

/// The record, and whether its numbers are rounded.
fn to_save(named: &Named) -> (String, bool) {
    let whole = json(named);
    if whole.len() <= SMALL {
        return (whole, false);
    }
    let mut rounded = named.clone();
    round(&mut rounded.record.body);
    (json(&rounded), true)
}

fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or_default();
            if exact.fract() == 0.0 {
                return;
            }
            let less: f64 = format!("{exact:.*e}", DIGITS - 1).parse().unwrap_or(exact);
            if let Some(less) = serde_json::Number::from_f64(less) {
                *number = less;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(round),
        Value::Object(all) => all.values_mut().for_each(round),
        _ => {}
    }
}

/// A link that saves the record.
pub(crate) fn link(named: &Named) -> String {
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let (json, rounded) = to_save(named);
    packed.write_all(json.as_bytes()).expect("memory takes all");
    let packed = packed.finish().expect("memory takes all");
    let stem = base(&named.name).trim_end_matches(".json");
    let safe: String = stem
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect();
    let file = format!("{}.json.gz", if safe.is_empty() { &named.record.header.kind } else { &safe });
    let remark =
        if rounded { format!(" Its numbers are rounded to {DIGITS} digits.") } else { String::new() };
    format!(
        "<a class=\"save\" download=\"{0}\" href=\"data:application/gzip;base64,{1}\">Save this record ({0})</a>.{remark}",
        escape(&file),
        base64(&packed)
    )
}

/// A small record as a block of data. `<` and `&` are escaped as JSON does, so no text in it ends
/// the block.
pub(crate) fn block(named: &Named, n: usize) -> String {
    let json = json(named);
    if json.len() > SMALL {
        return String::new();
    }
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe.push_str(&format!("\\u{:04x}", c as u32)),
            c if turns_direction(c) => safe.push_str(&format!("\\u{:04x}", c as u32)),
            c => safe.push(c),
        }
    }
    format!("<script type=\"application/json\" id=\"record-{n}\">{safe}</script>\n")
}
