//! Figures as SVG, written here: no library draws them.
//!
//! Colours are classes of `style.css`, never attributes, so that dark and light apply. To add a
//! kind of figure: a file here with a function that gives its SVG.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod bytes;
pub(crate) mod flame;
pub(crate) mod heat;
pub(crate) mod plot;
pub(crate) mod raster;
pub(crate) mod ratios;
pub(crate) mod rows;
pub(crate) mod scatter;
pub(crate) mod stack;

use crate::text::escape;
use axis::Axis;

/// The number of series that colours and dashes tell apart.
pub(crate) const SERIES: usize = 8;

/// The frame of a figure, with its name for screen readers.
pub(crate) fn svg(class: &str, width: f64, height: f64, title: &str, inside: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\"><title>{}</title>{inside}</svg>",
        escape(title)
    )
}

/// `<text>` at a place.
pub(crate) fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text))
}

/// The lines and names of an axis below rows, which end at `bottom`.
pub(crate) fn upright_grid(x: &Axis, bottom: f64) -> String {
    let mut lines = String::from("<g class=\"grid\">");
    for (value, name) in x.ticks() {
        let at = x.at(value);
        lines.push_str(&format!("<path d=\"M{at:.1} 4V{bottom}\"/>"));
        lines.push_str(&label(at, bottom + 15.0, "middle", &name));
    }
    lines.push_str("</g>");
    lines
}
