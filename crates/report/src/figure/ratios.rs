//! Ratios on a logarithmic axis, a row each: a figure here over that of a document, whose own range
//! stands at 1.

use super::axis::{Axis, Numbers, Scale};
use super::plot::marker;
use super::{SERIES, label, svg, upright_grid};
use crate::text::{cut, escape};
use units::Estimate;

const WIDTH: f64 = 600.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 430.0;
const ROW: f64 = 22.0;
/// The class of the document's ranges.
pub(crate) const PAPER: usize = 6;

#[derive(Debug)]
pub(crate) struct Ratio {
    pub(crate) name: String,
    pub(crate) value: Estimate,
    /// The document's own range around its middle, which is 1.
    pub(crate) paper: (f64, f64),
    /// As it is written behind the row.
    pub(crate) shown: String,
    pub(crate) class: usize,
}

/// `legend` names classes.
pub(crate) fn ratios(title: &str, unit: &str, all: &[Ratio], legend: &[(usize, &str)]) -> String {
    let x = axis(all);
    let bottom = 6.0 + ROW * all.len() as f64;
    let mut inside = upright_grid(&x, bottom);
    inside.push_str(&format!("<path class=\"mark\" d=\"M{0:.1} 4V{bottom}\"/>", x.at(1.0)));
    inside.push_str(&label(f64::midpoint(LEFT, RIGHT), bottom + 32.0, "middle", unit));
    for (n, ratio) in all.iter().enumerate() {
        let middle = 6.0 + ROW * (n as f64 + 0.5) - 2.0;
        let cap = middle - 4.0;
        let (from, to) = (x.at(ratio.paper.0), x.at(ratio.paper.1));
        let (at, lo, hi) = (x.at(ratio.value.value), x.at(ratio.value.lo), x.at(ratio.value.hi));
        inside.push_str(&format!(
            "<g class=\"s{PAPER}\"><rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\"/></g>\
             <g class=\"s{}\"><title>{}</title><path class=\"whisker interval\" d=\"M{lo:.1} {middle}H{hi:.1}\
             M{lo:.1} {cap}v8M{hi:.1} {cap}v8\"/>{}</g>",
            from - 1.5,
            middle - 6.0,
            (to - from).max(0.0) + 3.0,
            ratio.class % SERIES,
            escape(&format!("{}: {}", ratio.name, ratio.shown)),
            marker(ratio.class, at, middle),
        ));
        inside.push_str(&label(LEFT - 6.0, middle + 4.0, "end", &cut(&ratio.name, 28)));
        inside.push_str(&label(RIGHT + 12.0, middle + 4.0, "start", &cut(&ratio.shown, 26)));
    }
    let mut y = bottom + 40.0;
    for (class, name) in legend {
        y += 18.0;
        let shape = if *class == PAPER {
            format!("<rect class=\"bar\" x=\"{LEFT}\" y=\"{:.0}\" width=\"12\" height=\"12\"/>", y - 10.0)
        } else {
            marker(*class, LEFT + 6.0, y - 4.0)
        };
        inside.push_str(&format!("<g class=\"s{}\">{shape}</g>", class % SERIES));
        inside.push_str(&label(LEFT + 20.0, y, "start", name));
    }
    svg("ratios", WIDTH, y + 10.0, title, &inside)
}

/// All values, and intervals as far as they do not make the rest small.
fn axis(all: &[Ratio]) -> Axis {
    let sound = |v: &f64| v.is_finite() && *v > 0.0;
    let ends = all.iter().flat_map(|ratio| {
        let e = &ratio.value;
        [e.value, e.lo.max(e.value / 4.0), e.hi.min(e.value * 4.0), ratio.paper.0, ratio.paper.1]
    });
    let ends: Vec<f64> = ends.filter(sound).collect();
    let low = ends.iter().copied().fold(1.0, f64::min) * 0.8;
    let high = ends.iter().copied().fold(1.0, f64::max) * 1.25;
    Axis { scale: Scale::Log, numbers: Numbers::Plain, low, high, from: LEFT, to: RIGHT }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64, lo: f64, hi: f64) -> Ratio {
        let value = Estimate { value, lo, hi };
        Ratio { name: "<c>".to_owned(), value, paper: (0.9, 1.1), shown: "s".to_owned(), class: 1 }
    }

    #[test]
    fn twice_and_half_are_as_far_from_the_document() {
        let all = [of(2.0, 1.9, 2.1), of(0.5, 0.4, 0.6)];
        let x = axis(&all);
        let (half, one, twice) = (x.at(0.5), x.at(1.0), x.at(2.0));
        assert!((twice - one - (one - half)).abs() < 1e-9 && half < one);
        let text = ratios("t", "ratio", &all, &[(1, "differs"), (6, "the document")]);
        assert_eq!(text.matches("whisker interval").count(), 2);
        assert!(text.contains("&lt;c&gt;: s") && text.contains("the document"));
    }

    #[test]
    fn absurd_ratios_do_no_harm() {
        let text = ratios("t", "r", &[of(1e308, -1.0, f64::INFINITY), of(0.0, 0.0, 0.0)], &[]);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
