//! Heat maps: a raster between two axes of names, with the scale beside it.

use super::{label, raster, svg};
use crate::text::number;
use units::Estimate;

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
    pub(crate) cells: Vec<Option<Estimate>>,
}

/// Colours that a scale has at most.
const MOST_COLOURS: f64 = 256.0;

/// Two cells whose intervals are as far apart as these usually are wide have different colours, and
/// nothing finer is told apart: the number of steps from the lowest colour to the highest.
fn steps(span: f64, mut widths: Vec<f64>) -> f64 {
    widths.retain(|width| width.is_finite());
    widths.sort_by(f64::total_cmp);
    let usual = widths.get(widths.len() / 2).copied().unwrap_or(0.0);
    if usual > 0.0 { (span / usual).floor().min(MOST_COLOURS) } else { MOST_COLOURS }
}

pub(crate) fn heat(map: &Heat) -> String {
    let (columns, rows) = (map.across.1.len().max(1), map.down.1.len().max(1));
    let sound = || map.cells.iter().flatten().map(|cell| cell.value).filter(|v| v.is_finite());
    let (low, high) = (sound().fold(f64::MAX, f64::min), sound().fold(f64::MIN, f64::max));
    let logarithmic = map.logarithmic && low > 0.0;
    let place = |v: f64| if logarithmic { v.ln() } else { v };
    let span = place(high) - place(low);
    let wide =
        |cell: &Estimate| place(cell.hi) - place(if logarithmic { cell.lo.max(low * 1e-3) } else { cell.lo });
    let steps = steps(span, map.cells.iter().flatten().map(wide).collect());
    let stepped = |share: f64| if steps >= 1.0 { (share * steps).round() / steps } else { 0.5 };
    let share =
        |v: f64| stepped(if span > 0.0 && span.is_finite() { (place(v) - place(low)) / span } else { 0.5 });
    let cells: Vec<_> =
        map.cells.iter().map(|c| c.map(|cell| cell.value).filter(|v| v.is_finite()).map(share)).collect();
    let row = (380.0 / rows as f64).clamp(2.0, 34.0);
    let (across, high_px) = (RIGHT - LEFT, row * rows as f64);
    let bottom = TOP + high_px;
    let image = |x: f64, w: f64, address: &str| {
        format!(
            "<image x=\"{x}\" y=\"{TOP}\" width=\"{w}\" height=\"{high_px:.1}\" preserveAspectRatio=\"none\" \
             image-rendering=\"pixelated\" href=\"{address}\"/>"
        )
    };
    let mut inside = image(LEFT, across, &raster::data_address(columns, &cells));
    let every = |count: usize, most: usize| count.div_ceil(most).max(1);
    let cell = across / columns as f64;
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
    let scale: Vec<_> = (0..64).map(|n| Some(stepped(1.0 - f64::from(n) / 63.0))).collect();
    inside.push_str(&image(RIGHT + 14.0, 12.0, &raster::data_address(1, &scale)));
    inside.push_str(&label(RIGHT + 30.0, TOP + 10.0, "start", &number(high)));
    inside.push_str(&label(RIGHT + 30.0, bottom, "start", &number(low)));
    let kind = match (logarithmic, steps < 1.0) {
        (_, true) => "; intervals are wider than all differences",
        (true, false) => ", logarithmic",
        (false, false) => "",
    };
    inside.push_str(&label(WIDTH - 4.0, bottom + 52.0, "end", &format!("colour: {}{kind}", map.of)));
    svg("heat", WIDTH, bottom + 62.0, &map.title, &inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(half_width: f64) -> Heat {
        let cell = |value: f64| Some(Estimate::new(value, value - half_width, value + half_width));
        Heat {
            title: "t".to_owned(),
            across: ("to".to_owned(), ["0", "1"].map(str::to_owned).to_vec()),
            down: ("from".to_owned(), ["0", "1"].map(str::to_owned).to_vec()),
            of: "ns".to_owned(),
            logarithmic: false,
            cells: vec![None, cell(100.0), cell(102.0), cell(110.0)],
        }
    }

    #[test]
    fn colours_do_not_tell_apart_what_intervals_do_not() {
        assert_eq!(steps(10.0, vec![0.5, 0.5, 0.5]), 20.0);
        assert_eq!(steps(10.0, vec![5.0, 6.0, 4.0]), 2.0);
        assert_eq!(steps(10.0, vec![30.0]), 0.0);
        assert_eq!(steps(10.0, vec![0.0, 0.0]), MOST_COLOURS, "values without intervals are exact");
        let told = |half_width| heat(&map(half_width)).contains("wider than all differences");
        assert!(told(10.0) && !told(1.0));
        let pixels = |half_width| {
            let svg = heat(&map(half_width));
            svg.split("base64,").nth(1).expect("a raster").split('"').next().expect("its end").to_owned()
        };
        let (low, high) = (raster::colour(0.0), raster::colour(1.0));
        assert_ne!(low, high);
        let one = raster::data_address(2, &[None, Some(0.5), Some(0.5), Some(0.5)]);
        assert!(one.ends_with(&pixels(10.0)), "one colour for all");
        let two = raster::data_address(2, &[None, Some(0.0), Some(0.0), Some(1.0)]);
        assert!(two.ends_with(&pixels(2.5)), "102 is not told from 100");
    }
}
