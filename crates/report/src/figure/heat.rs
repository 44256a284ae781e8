//! Heat maps: a raster between two axes of names, with the scale beside it.

use super::{label, raster, svg};
use crate::text::number;

const WIDTH: f64 = 600.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 530.0;
const TOP: f64 = 10.0;

#[derive(Debug)]
pub(crate) struct Heat {
    pub(crate) title: String,
    pub(crate) across: (String, Vec<String>),
    pub(crate) down: (String, Vec<String>),
    /// What the colours stand for, with its unit.
    pub(crate) of: String,
    pub(crate) logarithmic: bool,
    /// Row by row.
    pub(crate) cells: Vec<Option<f64>>,
}

pub(crate) fn heat(map: &Heat) -> String {
    let (columns, rows) = (map.across.1.len().max(1), map.down.1.len().max(1));
    let sound = || map.cells.iter().flatten().copied().filter(|v| v.is_finite());
    let (low, high) = (sound().fold(f64::MAX, f64::min), sound().fold(f64::MIN, f64::max));
    let logarithmic = map.logarithmic && low > 0.0;
    let place = |v: f64| if logarithmic { v.ln() } else { v };
    let share = |v: f64| {
        let span = place(high) - place(low);
        if span > 0.0 && span.is_finite() { (place(v) - place(low)) / span } else { 0.5 }
    };
    let cells: Vec<_> = map.cells.iter().map(|c| c.filter(|v| v.is_finite()).map(share)).collect();
    let row = (380.0 / rows as f64).clamp(2.0, 34.0);
    let (wide, high_px) = (RIGHT - LEFT, row * rows as f64);
    let bottom = TOP + high_px;
    let image = |x: f64, w: f64, address: &str| {
        format!(
            "<image x=\"{x}\" y=\"{TOP}\" width=\"{w}\" height=\"{high_px:.1}\" preserveAspectRatio=\"none\" \
             image-rendering=\"pixelated\" href=\"{address}\"/>"
        )
    };
    let mut inside = image(LEFT, wide, &raster::data_address(columns, &cells));
    let every = |count: usize, most: usize| count.div_ceil(most).max(1);
    let cell = wide / columns as f64;
    for (n, name) in map.across.1.iter().enumerate().step_by(every(columns, 11)) {
        inside.push_str(&label(LEFT + cell * (n as f64 + 0.5), bottom + 16.0, "middle", name));
    }
    for (n, name) in map.down.1.iter().enumerate().step_by(every(rows, 22)) {
        inside.push_str(&label(LEFT - 6.0, TOP + row * (n as f64 + 0.5) + 4.0, "end", name));
    }
    inside.push_str(&label(f64::midpoint(LEFT, RIGHT), bottom + 34.0, "middle", &map.across.0));
    let middle = f64::midpoint(TOP, bottom);
    inside.push_str(&format!(
        "<text transform=\"translate(14 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        crate::text::escape(&map.down.0)
    ));
    let scale: Vec<_> = (0..32).map(|n| Some(1.0 - f64::from(n) / 31.0)).collect();
    inside.push_str(&image(RIGHT + 14.0, 12.0, &raster::data_address(1, &scale)));
    inside.push_str(&label(RIGHT + 30.0, TOP + 10.0, "start", &number(high)));
    inside.push_str(&label(RIGHT + 30.0, bottom, "start", &number(low)));
    let kind = if logarithmic { ", logarithmic" } else { "" };
    inside.push_str(&label(WIDTH - 4.0, bottom + 52.0, "end", &format!("colour: {}{kind}", map.of)));
    svg("heat", WIDTH, bottom + 62.0, &map.title, &inside)
}
