//! Maps of cache lines: a row for each thread, a column for each byte, and what the thread does
//! there. What is written has a border as well as a colour of its own.

use super::{label, svg};
use crate::text::{cut, escape};

const WIDTH: f64 = 600.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 592.0;
const ROW: f64 = 18.0;
/// What is hardly waited for can still be seen.
const FAINTEST: f64 = 0.3;

/// Bytes that one row's thread uses.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) row: usize,
    pub(crate) from: u32,
    pub(crate) bytes: u32,
    /// From 0 to 1: the more, the stronger.
    pub(crate) weight: f64,
    pub(crate) is_written: bool,
    pub(crate) says: String,
}

/// One line, or two side by side.
#[derive(Debug)]
pub(crate) struct ByteMap {
    pub(crate) title: String,
    pub(crate) rows: Vec<String>,
    pub(crate) bytes: u32,
    pub(crate) spans: Vec<Span>,
}

pub(crate) fn byte_map(title: &str, maps: &[ByteMap]) -> String {
    let mut inside = String::new();
    let mut top = 4.0;
    for map in maps {
        top = one(map, top, &mut inside);
    }
    for (at, class, text) in [(LEFT, 1, "written"), (LEFT + 110.0, 0, "read")] {
        inside.push_str(&format!(
            "<g class=\"s{class}\"><rect class=\"part\" x=\"{at:.1}\" y=\"{:.1}\" width=\"14\" height=\"12\"/></g>",
            top + 2.0
        ));
        inside.push_str(&label(at + 20.0, top + 12.0, "start", text));
    }
    svg("bytes", WIDTH, top + 22.0, title, &inside)
}

/// Draws one map; where the next one begins.
fn one(map: &ByteMap, top: f64, inside: &mut String) -> f64 {
    let byte = (RIGHT - LEFT) / f64::from(map.bytes.max(1));
    let x = |at: u32| LEFT + byte * f64::from(at.min(map.bytes));
    inside.push_str(&label(4.0, top + 14.0, "start", &cut(&map.title, 86)));
    let first = top + 22.0;
    let bottom = first + ROW * map.rows.len() as f64;
    inside.push_str("<g class=\"grid\">");
    for at in (0..=map.bytes).step_by(if map.bytes > 64 { 16 } else { 8 }) {
        inside.push_str(&format!("<path d=\"M{:.1} {first:.1}V{bottom:.1}\"/>", x(at)));
        inside.push_str(&label(x(at), bottom + 13.0, "middle", &at.to_string()));
    }
    inside.push_str("</g>");
    // Where one line ends and the next begins.
    for at in (64..map.bytes).step_by(64) {
        inside.push_str(&format!("<path class=\"whisker\" d=\"M{:.1} {first:.1}V{bottom:.1}\"/>", x(at)));
    }
    for (row, name) in map.rows.iter().enumerate() {
        inside.push_str(&label(LEFT - 8.0, first + ROW * (row as f64 + 0.5) + 4.0, "end", &cut(name, 15)));
    }
    for span in &map.spans {
        let (from, to) = (x(span.from), x(span.from.saturating_add(span.bytes)));
        let weight = if span.weight.is_finite() { span.weight.clamp(0.0, 1.0) } else { 0.0 };
        inside.push_str(&format!(
            "<g class=\"s{}\"><title>{}</title><rect class=\"part\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"{}\" opacity=\"{:.2}\"/></g>",
            usize::from(span.is_written),
            escape(&span.says),
            first + ROW * span.row as f64 + 2.0,
            (to - from - 0.6).max(1.0),
            ROW - 4.0,
            FAINTEST + (1.0 - FAINTEST) * weight,
        ));
    }
    bottom + 26.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_in_their_columns() {
        let span = |from, weight| Span {
            row: 0,
            from,
            bytes: 8,
            weight,
            is_written: true,
            says: "<writes>".to_owned(),
        };
        let spans = vec![span(0, 1.0), span(56, f64::NAN), span(4_000_000_000, 0.5)];
        let map = ByteMap { title: "pool".to_owned(), rows: vec!["thread 1".to_owned()], bytes: 64, spans };
        let text = byte_map("t", &[map]);
        assert!(
            text.contains("x=\"92.0\"") && text.contains("x=\"529.5\"") && text.contains("&lt;writes&gt;")
        );
        assert!(!text.contains("NaN"), "{text}");
    }
}
