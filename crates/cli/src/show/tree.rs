//! Any record as an indented tree: names on the left, figures with their intervals on the right.
//!
//! How small values are shown in one line: `show/line.rs`.

use super::line::one_line;
use super::table;
use crate::plain::escaped;
use serde_json::Value;

pub(super) struct Style {
    pub(super) colour: bool,
    /// Long lists to their end, instead of their beginning.
    pub(super) whole: bool,
    /// Of the terminal: wider tables are shown as what they stand for.
    pub(super) width: usize,
}

/// In a summary, lists longer than this show their beginning only.
const LONG: usize = 12;
/// How much of them.
const BEGINNING: usize = 3;

/// The tree, or the bare value where there is nothing below it. Ends with a newline.
pub(super) fn draw(value: &Value, style: &Style) -> String {
    let mut out = String::new();
    match one_line(value) {
        Some(line) => out += &line,
        None => below(&mut out, value, 0, style),
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn below(out: &mut String, value: &Value, depth: usize, style: &Style) {
    match value {
        Value::Object(fields) => {
            let width = fields
                .iter()
                .filter(|(_, v)| one_line(v).is_some())
                .map(|(k, _)| k.chars().count())
                .max()
                .unwrap_or(0);
            for (name, value) in fields {
                entry(out, &escaped(name), width, value, depth, style);
            }
        }
        Value::Array(elements) => {
            let shown = if style.whole || elements.len() <= LONG { elements.len() } else { BEGINNING };
            let elements_shown = &elements[..shown];
            if let Some(rows) = table::rows(elements_shown, style.width.saturating_sub(2 * depth)) {
                for row in rows {
                    indent(out, depth);
                    *out += &format!("{row}\n");
                }
            } else {
                let width = format!("[{}]", shown.saturating_sub(1)).len();
                for (index, value) in elements_shown.iter().enumerate() {
                    entry(out, &format!("[{index}]"), width, value, depth, style);
                }
            }
            if shown < elements.len() {
                indent(out, depth);
                *out += &format!("… {} more (its path shows all)\n", elements.len() - shown);
            }
        }
        leaf => *out += &one_line(leaf).unwrap_or_default(),
    }
}

fn entry(out: &mut String, name: &str, width: usize, value: &Value, depth: usize, style: &Style) {
    indent(out, depth);
    let padding = " ".repeat(width.saturating_sub(name.chars().count()));
    if let Some(line) = one_line(value) {
        *out += &format!("{}{padding}  {line}\n", paint(name, style));
    } else {
        *out += &paint(name, style);
        if let Value::Array(elements) = value {
            *out += &format!(" ({})", elements.len());
        }
        out.push('\n');
        below(out, value, depth + 1, style);
    }
}

fn indent(out: &mut String, depth: usize) {
    *out += &"  ".repeat(depth);
}

fn paint(name: &str, style: &Style) -> String {
    if style.colour {
        let cyan = anstyle::AnsiColor::Cyan.on_default();
        format!("{cyan}{name}{cyan:#}")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(value: &Value, whole: bool) -> String {
        draw(value, &Style { colour: false, whole, width: usize::MAX })
    }

    #[test]
    fn a_tree_reads_from_left_to_right() {
        let record = json!({
            "host": {"model": "a \u{1b}[31mred\u{7} one", "smt": {"unknown": "not told"}, "cpus": [0, 1], "swap": null},
            "measure": {"can": "no", "why": "no cycles", "would_help": "a clock"},
            "levels": [{
                "name": "L1",
                "latency": {
                    "cycles": {"value": 4.0, "lo": 3.98, "hi": 4.02, "unit": "cycles", "basis": "measured"},
                    "ns": {"unresolved": "clock moved"},
                },
                "note": null,
            }],
        });
        let expected = "\
host
  model  a \\u{1b}[31mred\\u{7} one
  smt    unknown: not told
  cpus   0, 1
  swap   -
measure  no: no cycles; a clock
levels (1)
  [0]
    name     L1
    latency  cycles 4.00 cycles [3.98, 4.02] measured, ns not resolved: clock moved
    note     -
";
        let drawn = text(&record, false);
        assert_eq!(drawn, expected, "{drawn}");
    }

    #[test]
    fn long_lists_show_their_beginning_unless_asked_for() {
        let points: Vec<_> = (0..20).map(|n| json!({ "n": n, "list": [{"x": [n]}] })).collect();
        let summary = text(&json!(points), false);
        assert!(summary.contains("[2]") && !summary.contains("[3]"), "{summary}");
        assert!(summary.ends_with("… 17 more (its path shows all)\n"), "{summary}");
        assert!(text(&json!(points), true).contains("[19]"));
    }

    #[test]
    fn a_leaf_stands_alone() {
        assert_eq!(text(&json!(4.0), true), "4.0\n");
        assert_eq!(text(&json!("L1"), true), "L1\n");
    }

    #[test]
    fn names_are_coloured_only_when_wanted() {
        let value = json!({"a": [{"b": [[1]]}], "c": 1});
        let coloured = draw(&value, &Style { colour: true, whole: true, width: usize::MAX });
        assert!(coloured.contains("\x1b[36mc\x1b[0m"), "{coloured:?}");
        assert!(!text(&value, true).contains('\x1b'));
    }
}
