//! Columns that line up.

/// Rows of cells, left-aligned, two blanks between columns; empty columns vanish.
pub(super) fn draw(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(&widths) {
            if *width > 0 {
                line.push_str(&format!("{cell:width$}  "));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A row from anything that can be shown.
pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.iter().map(|&c| c.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let text = draw(&[row(["a", "", "c"]), row(["long", "", "d"])]);
        assert_eq!(text, "  a     c\n  long  d\n");
        assert_eq!(draw(&[]), "");
    }
}
