//! A bar a row, each made of parts one behind the other: where each program spent its time.

use super::axis::{Axis, Numbers, Scale};
use super::{SERIES, label, svg, upright_grid};
use crate::text::{cut, escape};
use units::Estimate;

const WIDTH: f64 = 600.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 586.0;
const ROW: f64 = 26.0;

/// A part of a row: which name of the legend it has, and how long it is.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) class: usize,
    pub(crate) length: Estimate,
    pub(crate) says: String,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) pieces: Vec<Piece>,
}

/// `whole` is the length of the axis, at least; `legend` has a name for each class.
pub(crate) fn rows(title: &str, unit: &str, whole: f64, rows: &[Row], legend: &[&str]) -> String {
    let sound = |e: &Estimate| e.value.is_finite() && e.value > 0.0 && e.lo.is_finite() && e.hi.is_finite();
    let length = |row: &Row| {
        row.pieces.iter().map(|piece| &piece.length).filter(|e| sound(e)).map(|e| e.value).sum::<f64>()
    };
    let most = rows.iter().map(length).chain([whole]).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let high = if most > 0.0 { most } else { 1.0 };
    let x = Axis { scale: Scale::Linear, numbers: Numbers::Plain, low: 0.0, high, from: LEFT, to: RIGHT };
    let bottom = 6.0 + ROW * rows.len() as f64;
    let mut inside = upright_grid(&x, bottom);
    inside.push_str(&label(f64::midpoint(LEFT, RIGHT), bottom + 32.0, "middle", unit));
    for (n, row) in rows.iter().enumerate() {
        let top = 8.0 + ROW * n as f64;
        let middle = top + ROW / 2.0 - 3.0;
        inside.push_str(&label(LEFT - 6.0, middle + 4.0, "end", &cut(&row.name, 21)));
        let mut from = 0.0;
        for piece in row.pieces.iter().filter(|piece| sound(&piece.length)) {
            let (begin, end) = (x.at(from), x.at(from + piece.length.value));
            inside.push_str(&format!(
                "<g class=\"s{}\"><title>{}</title><rect class=\"part\" x=\"{begin:.1}\" y=\"{top:.1}\" \
                 width=\"{:.1}\" height=\"{}\"/></g>",
                piece.class % SERIES,
                escape(&piece.says),
                (end - begin - 0.6).max(0.4),
                ROW - 6.0,
            ));
            if piece.length.lo < piece.length.hi {
                let [lo, hi] = [piece.length.lo, piece.length.hi].map(|v| x.at((from + v).max(0.0)));
                inside.push_str(&format!(
                    "<path class=\"whisker interval\" d=\"M{lo:.1} {middle:.1}H{hi:.1}M{lo:.1} {0:.1}v8M{hi:.1} {0:.1}v8\"/>",
                    middle - 4.0
                ));
            }
            if end - begin > 16.0 {
                let text = label(
                    f64::midpoint(begin, end),
                    middle + 4.0,
                    "middle",
                    &letter(piece.class).to_string(),
                );
                let class = format!("<text class=\"on on{}\"", piece.class % SERIES);
                inside.push_str(&text.replacen("<text", &class, 1));
            }
            from += piece.length.value;
        }
    }
    let mut y = bottom + 40.0;
    for (class, name) in legend.iter().enumerate() {
        y += 20.0;
        inside.push_str(&format!(
            "<g class=\"s{}\"><rect class=\"part\" x=\"{LEFT}\" y=\"{:.0}\" width=\"14\" height=\"14\"/></g>",
            class % SERIES,
            y - 11.0
        ));
        inside.push_str(&label(LEFT + 22.0, y, "start", &format!("{}  {name}", letter(class))));
    }
    svg("rows", WIDTH, y + 10.0, title, &inside)
}

/// A second channel beside the colour.
fn letter(class: usize) -> char {
    super::scatter::letter(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_one_behind_the_other() {
        let piece =
            |class, seconds| Piece { class, length: Estimate::exact(seconds), says: "<s>".to_owned() };
        let row = Row { name: "<p>".to_owned(), pieces: vec![piece(0, 1.0), piece(1, 3.0)] };
        let text = rows("t", "s", 4.0, &[row], &["aboard", "at home"]);
        // A quarter of 436 pixels from 150, then the rest.
        assert!(text.contains("x=\"150.0\" y=\"8.0\" width=\"108.4\""), "{text}");
        assert!(text.contains("x=\"259.0\" y=\"8.0\" width=\"326.4\""), "{text}");
        assert!(text.contains("A  aboard") && text.contains("B  at home") && text.contains("&lt;s&gt;"));
    }

    #[test]
    fn absurd_lengths_do_no_harm() {
        let lengths = [f64::NAN, f64::INFINITY, -1.0, 1e308, 1e308];
        let pieces = lengths.map(|v| Piece {
            class: 0,
            length: Estimate { value: v, lo: v, hi: v },
            says: String::new(),
        });
        let row = Row { name: String::new(), pieces: pieces.into() };
        let text = rows("t", "s", f64::NAN, &[row], &[]);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
