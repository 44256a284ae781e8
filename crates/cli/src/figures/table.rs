//! Columns that line up.

/// Rows of cells, left-aligned, two blanks between columns; empty columns vanish. Where the table
/// is wider than `width`, its columns follow one another in groups that fit, each group behind the
/// first column.
pub(crate) fn draw(rows: &[Vec<String>], width: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let groups: Vec<String> =
        groups(&widths, width).iter().map(|group| lines(rows, group, &widths)).collect();
    groups.join("\n")
}

/// The columns of each group.
fn groups(widths: &[usize], width: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut taken = 0;
    for column in (0..widths.len()).filter(|&c| widths[c] > 0) {
        match groups.last_mut() {
            Some(group) if group.len() < 2 || taken + GAP + widths[column] <= width => group.push(column),
            Some(_) => {
                taken = widths[0];
                groups.push(if widths[0] > 0 { vec![0, column] } else { vec![column] });
            }
            None => groups.push(vec![column]),
        }
        taken += GAP + widths[column];
    }
    groups
}

const GAP: usize = 2;

fn lines(rows: &[Vec<String>], columns: &[usize], widths: &[usize]) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for &column in columns {
            let (cell, width) = (row.get(column).map_or("", String::as_str), widths[column]);
            line.push_str(&format!("{:GAP$}{cell:width$}", ""));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A row from anything that can be shown.
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.iter().map(|&c| c.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let text = draw(&[row(["a", "", "c"]), row(["long", "", "d"])], usize::MAX);
        assert_eq!(text, "  a     c\n  long  d\n");
        assert_eq!(draw(&[], 80), "");
    }

    #[test]
    fn a_table_too_wide_goes_on_below() {
        let rows = [row(["", "size", "ns", "cycles"]), row(["L1", "32 KiB", "0.9", "4.0"])];
        assert_eq!(draw(&rows, 25), "      size    ns   cycles\n  L1  32 KiB  0.9  4.0\n");
        assert_eq!(draw(&rows, 24), "      size    ns\n  L1  32 KiB  0.9\n\n      cycles\n  L1  4.0\n");
        assert_eq!(draw(&rows, 1).lines().count(), 3 * 2 + 2, "one column at least");
    }
}
