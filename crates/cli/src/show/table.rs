//! A list of like things as a table: a line each, a column for each field.

use super::line::one_line;
use crate::plain::escaped;
use serde_json::Value;

/// Wider tables are harder to read than what they stand for.
const WIDEST: usize = 120;

/// The lines of the table, a head first; nothing unless all rows have the same fields, each short
/// enough, and fit into `width` together.
pub(super) fn rows(elements: &[Value], width: usize) -> Option<Vec<String>> {
    let first = elements.first()?.as_object()?;
    if elements.len() < 2 {
        return None;
    }
    let mut table =
        vec![std::iter::once(String::new()).chain(first.keys().map(|k| escaped(k))).collect::<Vec<_>>()];
    for (index, element) in elements.iter().enumerate() {
        let fields = element.as_object().filter(|fields| fields.keys().eq(first.keys()))?;
        let mut row = vec![format!("[{index}]")];
        for value in fields.values() {
            row.push(one_line(value)?);
        }
        table.push(row);
    }
    let widths: Vec<usize> = (0..=first.len())
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    if widths.iter().map(|w| w + 2).sum::<usize>() > WIDEST.min(width.saturating_add(2)) {
        return None;
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    Some(table.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn like_things_stand_in_columns() {
        let like = [json!({"kind": "data", "ways": 8}), json!({"kind": "unified", "ways": 16})];
        assert_eq!(rows(&like, 18).unwrap(), ["     kind     ways", "[0]  data     8", "[1]  unified  16"]);
        assert_eq!(rows(&like, 17), None);
    }

    #[test]
    fn unlike_nested_or_wide_things_do_not() {
        let rows = |elements: &[Value]| rows(elements, usize::MAX);
        assert_eq!(rows(&[json!({"a": 1}), json!({"b": 1})]), None);
        assert_eq!(rows(&[json!({"a": [{"x": [1]}]}), json!({"a": 1})]), None);
        assert_eq!(rows(&[json!({"a": "x".repeat(200)}), json!({"a": 1})]), None);
        assert_eq!(rows(&[json!({"a": 1})]), None);
    }
}
