//! Horizontal bars with whiskers.

use super::axis::{Axis, Numbers, Scale};
use super::{SERIES, label, svg, upright_grid};
use crate::text::{cut, escape};
use units::Estimate;

const WIDTH: f64 = 600.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 450.0;
const ROW: f64 = 22.0;

#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: Estimate,
    /// As it is written behind the bar.
    pub(crate) shown: String,
    /// Bars of one class look alike.
    pub(crate) class: usize,
}

pub(crate) fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let finite = |e: &Estimate| e.value.is_finite() && e.lo.is_finite() && e.hi.is_finite();
    let bars: Vec<&Bar> = bars.iter().filter(|bar| finite(&bar.value)).collect();
    let most = bars.iter().map(|b| b.value.hi.min(b.value.value * 2.0)).fold(0.0, f64::max);
    let high = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let x = Axis { scale: Scale::Linear, numbers: Numbers::Plain, low: 0.0, high, from: LEFT, to: RIGHT };
    let bottom = 6.0 + ROW * bars.len() as f64;
    let mut inside = upright_grid(&x, bottom);
    inside.push_str(&label(f64::midpoint(LEFT, RIGHT), bottom + 32.0, "middle", unit));
    for (n, bar) in bars.iter().enumerate() {
        let top = 6.0 + ROW * n as f64;
        let middle = top + ROW / 2.0 - 2.0;
        let cap = middle - 4.0;
        let (end, lo, hi) = (x.at(bar.value.value), x.at(bar.value.lo), x.at(bar.value.hi));
        inside.push_str(&format!(
            "<g class=\"s{}\"><title>{}</title><rect class=\"bar\" x=\"{LEFT}\" y=\"{top:.1}\" \
             width=\"{:.1}\" height=\"{}\"/><path class=\"whisker interval\" d=\"M{lo:.1} {middle}H{hi:.1}\
             M{lo:.1} {cap}v8M{hi:.1} {cap}v8\"/></g>",
            bar.class % SERIES,
            escape(&format!("{}: {}", bar.name, bar.shown)),
            (end - LEFT).max(0.5),
            ROW - 6.0,
        ));
        inside.push_str(&label(LEFT - 6.0, middle + 4.0, "end", &cut(&bar.name, 28)));
        inside.push_str(&label(hi.max(end) + 8.0, middle + 4.0, "start", &cut(&bar.shown, 24)));
    }
    svg("bars", WIDTH, bottom + 40.0, title, &inside)
}
