//! A small curve in Braille dots, both axes logarithmic.

use std::fmt::Write;

/// Columns of a curve: `most` where lines of `width` characters have space for them.
pub(crate) fn columns(most: usize, width: usize) -> usize {
    most.min(width.saturating_sub(LABELS)).max(8)
}

/// What stands before the curve in each line.
const LABELS: usize = 11;

/// Draws points (both coordinates positive) into `columns` × `rows` characters, with a scale at the
/// left and below.
pub(crate) fn log_log(
    points: &[(f64, f64)],
    columns: usize,
    rows: usize,
    x_label: impl Fn(f64) -> String,
    y_label: impl Fn(f64) -> String,
) -> String {
    let usable: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|p| p.0 > 0.0 && p.1 > 0.0)
        .map(|(x, y)| (x.log2(), y.log2()))
        .collect();
    if usable.len() < 2 {
        return String::new();
    }
    let range = |f: fn(&(f64, f64)) -> f64| {
        let (lo, hi) = usable.iter().map(f).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        (lo, (hi - lo).max(1e-9))
    };
    let ((x0, dx), (y0, dy)) = (range(|p| p.0), range(|p| p.1));
    let (width, height) = (columns * 2, rows * 4);
    let mut dots = vec![false; width * height];
    // Every column of dots gets the curve's height there, so that the line has no holes.
    for column in 0..width {
        let x = x0 + dx * column as f64 / (width - 1) as f64;
        let after = usable.iter().position(|p| p.0 >= x).unwrap_or(usable.len() - 1);
        let (a, b) = (usable[after.saturating_sub(1)], usable[after]);
        let share = if b.0 > a.0 { ((x - a.0) / (b.0 - a.0)).clamp(0.0, 1.0) } else { 1.0 };
        let y = a.1 + (b.1 - a.1) * share;
        let row = ((y - y0) / dy * (height - 1) as f64).round() as usize;
        dots[(height - 1 - row.min(height - 1)) * width + column] = true;
    }
    let mut text = String::new();
    for row in 0..rows {
        let label = match row {
            0 => y_label((y0 + dy).exp2()),
            r if r == rows - 1 => y_label(y0.exp2()),
            _ => String::new(),
        };
        let cells: String = (0..columns).map(|c| cell(&dots, width, c * 2, row * 4)).collect();
        let _ = writeln!(text, "  {label:>8} {}", cells.trim_end_matches('\u{2800}'));
    }
    let (left, right) = (x_label(x0.exp2()), x_label((x0 + dx).exp2()));
    let gap = columns.saturating_sub(left.chars().count() + right.chars().count());
    let _ = writeln!(text, "  {:>8} {left}{}{right}", "", " ".repeat(gap));
    text
}

/// The Braille character of the 2 × 4 dots at (x, y).
fn cell(dots: &[bool], width: usize, x: usize, y: usize) -> char {
    // Dot numbers as Unicode orders them: left column 1-2-3-7, right column 4-5-6-8.
    const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
    let mut code = 0x2800;
    for (dy, row) in BITS.iter().enumerate() {
        for (dx, bit) in row.iter().enumerate() {
            if dots[(y + dy) * width + x + dx] {
                code += bit;
            }
        }
    }
    char::from_u32(code).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_line_goes_from_corner_to_corner() {
        let points = [(1.0, 1.0), (16.0, 16.0)];
        let text = log_log(&points, 4, 4, |x| format!("{x:.0}"), |y| format!("{y:.0}"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[0].trim_start().starts_with("16") && lines[3].trim_start().starts_with('1'));
        for (row, line) in lines[..4].iter().enumerate() {
            // Behind the scale: blanks, then one character with dots, further left the further
            // down.
            let cells: Vec<char> = line.chars().skip(11).collect();
            let dotted: Vec<usize> = (0..cells.len()).filter(|&i| cells[i] != '\u{2800}').collect();
            assert_eq!(dotted, [3 - row], "{text}");
        }
        assert!(lines[4].trim().starts_with('1') && lines[4].ends_with("16"));
        assert_eq!(log_log(&points[..1], 4, 4, |_| String::new(), |_| String::new()), "");
    }
}
