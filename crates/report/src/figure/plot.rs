//! Lines over one axis, each with the band of its intervals.
//!
//! The script draws lines anew from the table below a plot when its axis changes, so the constants
//! of the frame stand in `script.js`, too.

use super::axis::{Axis, Numbers, Scale};
use super::{SERIES, label, svg};
use crate::parts::{Cell, Table};
use crate::text::{cut, escape, figures, number, size};
use units::Estimate;

pub(crate) const WIDTH: f64 = 600.0;
pub(crate) const HEIGHT: f64 = 340.0;
pub(crate) const LEFT: f64 = 58.0;
pub(crate) const RIGHT: f64 = 576.0;
pub(crate) const TOP: f64 = 14.0;
pub(crate) const BOTTOM: f64 = 290.0;

/// Points of one line that are drawn and listed; more do not show, and make the page large. The
/// record has all.
const MOST_POINTS: usize = 64;

#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, Estimate)>,
}

/// A dotted line across the plot, with its name.
#[derive(Debug)]
pub(crate) struct Mark {
    place: MarkPlace,
    name: String,
}

#[derive(Clone, Copy, Debug)]
enum MarkPlace {
    X(f64),
    Y(f64),
}

impl Mark {
    /// A vertical line: a size that is claimed, a cliff.
    pub(crate) fn at(x: f64, name: impl Into<String>) -> Self {
        Self { place: MarkPlace::X(x), name: name.into() }
    }

    /// A horizontal line: a time that others are held against.
    pub(crate) fn level(y: f64, name: impl Into<String>) -> Self {
        Self { place: MarkPlace::Y(y), name: name.into() }
    }
}

#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x: (String, Scale, Numbers),
    pub(crate) y: (String, Scale),
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Mark>,
}

impl Plot {
    /// Nothing is drawn where there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.iter().all(|s| s.points.is_empty())
    }

    /// Without what has no points or cannot be on its axes; long lines thinned.
    #[must_use]
    pub(crate) fn prepared(self) -> Self {
        self.prepared_up_to(MOST_POINTS)
    }

    /// The same with this number of points in a line: where each is to be found in the table.
    #[must_use]
    pub(crate) fn prepared_up_to(mut self, most: usize) -> Self {
        let log_x = self.x.1 == Scale::Log;
        for series in &mut self.series {
            series.points.retain(|(x, e)| {
                x.is_finite()
                    && e.value.is_finite()
                    && e.lo.is_finite()
                    && e.hi.is_finite()
                    && (!log_x || *x > 0.0)
            });
            series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            thin(&mut series.points, most);
        }
        self.series.retain(|s| !s.points.is_empty());
        let positive = self.series.iter().flat_map(|s| &s.points).all(|(_, e)| e.value > 0.0);
        if !positive {
            self.y.1 = Scale::Linear;
        }
        self
    }

    pub(crate) fn svg(&self) -> String {
        let x = self.x_axis();
        let y = self.y_axis();
        let mut inside = format!(
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>",
            RIGHT - LEFT,
            BOTTOM - TOP
        );
        inside.push_str("<g class=\"grid\">");
        for (value, name) in x.ticks() {
            let at = x.at(value);
            inside.push_str(&format!("<path d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"));
            inside.push_str(&label(at, BOTTOM + 16.0, "middle", &name));
        }
        inside.push_str("</g><g class=\"grid yg\">");
        for (value, name) in y.ticks() {
            let at = y.at(value);
            inside.push_str(&format!("<path d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
            inside.push_str(&label(LEFT - 5.0, at + 4.0, "end", &name));
        }
        inside.push_str("</g>");
        inside.push_str(&label(f64::midpoint(LEFT, RIGHT), BOTTOM + 34.0, "middle", &self.x.0));
        let middle = f64::midpoint(TOP, BOTTOM);
        inside.push_str(&format!(
            "<text transform=\"translate(14 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(&self.y.0)
        ));
        for (n, series) in self.series.iter().enumerate() {
            inside.push_str(&line(n, &series.points, &x, &y));
        }
        inside.push_str(&self.marks_at(&x));
        inside.push_str(&self.levels_at(&y));
        let (legend, height) = self.legend();
        inside.push_str(&legend);
        let drawn = svg("plot", WIDTH, height, &self.title, &inside);
        let log = |scale: Scale| u8::from(scale == Scale::Log);
        let data = format!(
            "<svg data-x0=\"{}\" data-x1=\"{}\" data-xlog=\"{}\" data-ylog=\"{}\" ",
            x.low,
            x.high,
            log(self.x.1),
            log(self.y.1)
        );
        drawn.replacen("<svg ", &data, 1)
    }

    /// With a range of x to select: the table below follows it.
    pub(crate) fn brushed_svg(&self) -> String {
        self.svg().replacen("<svg ", &format!("<svg data-brush=\"{}\" ", escape(&self.y.0)), 1)
    }

    /// The values of x that have a point, ascending.
    pub(crate) fn xs(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// A row for each value of x, a column for each line. Columns that are added behind them are
    /// not drawn.
    pub(crate) fn table(&self) -> Table {
        let all = self.xs();
        let mut table = Table::new(&self.title);
        table.head.push(self.x.0.clone());
        table.head.extend(self.series.iter().map(|s| s.name.clone()));
        table.note = format!("{}, each with its 95% interval.", self.y.0);
        for x in all {
            let shown = if self.x.2 == Numbers::Bytes { size(x) } else { number(x) };
            let cell = |s: &Series| {
                let found = s.points.iter().find(|p| p.0 == x);
                found.map_or_else(|| Cell::text(""), |(_, e)| Cell::plain(figures(*e)))
            };
            let cells = std::iter::once(Cell::sorted(shown, x)).chain(self.series.iter().map(cell));
            table.rows.push(cells.collect());
        }
        table
    }

    fn x_axis(&self) -> Axis {
        let all = || self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0));
        let (mut low, mut high) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
        if low >= high {
            (low, high) =
                if self.x.1 == Scale::Log { (low / 2.0, high * 2.0) } else { (low - 1.0, high + 1.0) };
        }
        Axis { scale: self.x.1, numbers: self.x.2, low, high, from: LEFT, to: RIGHT }
    }

    fn y_axis(&self) -> Axis {
        let all = || self.series.iter().flat_map(|s| s.points.iter().map(|p| p.1));
        let levels = || self.levels().map(|(y, _)| y);
        let high =
            all().map(|e| e.hi.min(e.value * 3.0).max(e.value)).chain(levels()).fold(f64::MIN, f64::max);
        let low =
            all().map(|e| e.lo.max(e.value / 3.0).min(e.value)).chain(levels()).fold(f64::MAX, f64::min);
        let (low, high) = match self.y.1 {
            Scale::Log => (low * 0.9, high * 1.12),
            Scale::Linear => (low.min(0.0), if high > 0.0 { high * 1.06 } else { 1.0 }),
        };
        Axis { scale: self.y.1, numbers: Numbers::Plain, low, high, from: BOTTOM, to: TOP }
    }

    /// Marks with their names, each in the first row where it has space.
    fn marks_at(&self, x: &Axis) -> String {
        let upright = |mark: &'_ Mark| match mark.place {
            MarkPlace::X(at) if at >= x.low && at <= x.high => Some(at),
            MarkPlace::X(_) | MarkPlace::Y(_) => None,
        };
        let mut marks: Vec<(f64, &Mark)> =
            self.marks.iter().filter_map(|mark| Some((upright(mark)?, mark))).collect();
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut out, mut ends) = (String::new(), [f64::MIN; 7]);
        for (place, mark) in marks {
            let at = x.at(place);
            let name = cut(&mark.name, 40);
            let wide = 6.5 * name.chars().count() as f64 + 8.0;
            let start = if at + wide > RIGHT { at - wide } else { at };
            let row = ends.iter().position(|end| *end <= start).unwrap_or(ends.len() - 1);
            ends[row] = start + wide;
            let (side, anchor) = if start < at { (-4.0, "end") } else { (4.0, "start") };
            let text = label(at + side, TOP + 12.0 + 13.0 * row as f64, anchor, &name);
            out.push_str(&format!("<path class=\"mark\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"));
            out.push_str(&text.replacen("<text", "<text class=\"markname\"", 1));
        }
        out
    }

    /// Horizontal marks that can be drawn.
    fn levels(&self) -> impl Iterator<Item = (f64, &str)> {
        self.marks.iter().filter_map(|mark| match mark.place {
            MarkPlace::Y(y) if y.is_finite() && (y > 0.0 || self.y.1 == Scale::Linear) => {
                Some((y, mark.name.as_str()))
            }
            MarkPlace::Y(_) | MarkPlace::X(_) => None,
        })
    }

    /// Horizontal marks; the script moves them when the axis changes.
    fn levels_at(&self, y: &Axis) -> String {
        let mut out = String::new();
        for (value, name) in self.levels() {
            let at = y.at(value);
            let text = label(RIGHT - 6.0, at - 5.0, "end", &cut(name, 40));
            let text = text.replacen("<text", "<text class=\"markname\"", 1);
            out.push_str(&format!(
                "<g class=\"level\" data-v=\"{value}\" data-y=\"{at:.1}\"><path class=\"mark\" \
                 d=\"M{LEFT} {at:.1}H{RIGHT}\"/>{text}</g>"
            ));
        }
        out
    }

    /// The names of lines below the axis, and the height with them.
    fn legend(&self) -> (String, f64) {
        let (mut x, mut y, mut out) = (LEFT, HEIGHT + 4.0, String::from("<g class=\"legend\">"));
        for (n, series) in self.series.iter().enumerate() {
            let name = cut(&series.name, 60);
            let wide = 40.0 + 6.7 * name.chars().count() as f64;
            if x + wide > RIGHT && x > LEFT {
                (x, y) = (LEFT, y + 18.0);
            }
            let class = n % SERIES;
            out.push_str(&format!(
                "<g class=\"s{class}\"><path class=\"line\" d=\"M{x:.0} {y:.0}h22\"/>{}</g>{}",
                marker(n, x + 11.0, y),
                label(x + 28.0, y + 4.0, "start", &name)
            ));
            x += wide;
        }
        out.push_str("</g>");
        (out, y + 12.0)
    }
}

/// One line: its band of intervals, itself, and a marker now and then as a second channel.
fn line(n: usize, points: &[(f64, Estimate)], x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    let mut above = String::new();
    let mut below: Vec<String> = Vec::new();
    let mut markers = String::new();
    let every = (points.len() / 9).max(1);
    for (i, (value, e)) in points.iter().enumerate() {
        let (px, py) = (x.at(*value), y.at(e.value));
        let step = if i == 0 { 'M' } else { 'L' };
        path.push_str(&format!("{step}{px:.1} {py:.1}"));
        above.push_str(&format!("{step}{px:.1} {:.1}", y.at(e.hi)));
        below.push(format!("L{px:.1} {:.1}", y.at(e.lo)));
        if i % every == (n * 2) % every {
            markers.push_str(&marker(n, px, py));
        }
    }
    below.reverse();
    format!(
        "<g class=\"series s{}\"><path class=\"band\" d=\"{above}{}Z\"/><path class=\"line\" d=\"{path}\"/>\
         <g class=\"dots\">{markers}</g></g>",
        n % SERIES,
        below.concat()
    )
}

/// Circle, square, diamond, triangle in turn.
pub(super) fn marker(n: usize, x: f64, y: f64) -> String {
    let shape = match n % 4 {
        0 => format!("M{:.1} {y:.1}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0", x - 3.0),
        1 => format!("M{:.1} {:.1}h5v5h-5z", x - 2.5, y - 2.5),
        2 => format!("M{x:.1} {:.1}l4 4l-4 4l-4 -4z", y - 4.0),
        _ => format!("M{x:.1} {:.1}l4 7h-8z", y - 4.0),
    };
    format!("<path class=\"dot\" d=\"{shape}\"/>")
}

/// Keeps both ends, and what lies evenly between them.
fn thin(points: &mut Vec<(f64, Estimate)>, most: usize) {
    let count = points.len();
    if count > most {
        let kept = |n: usize| n * (count - 1) / (most - 1);
        *points = (0..most).map(|n| points[kept(n)]).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, Estimate)>) -> Plot {
        Plot {
            title: "t".to_owned(),
            x: ("size".to_owned(), Scale::Log, Numbers::Bytes),
            y: ("ns".to_owned(), Scale::Log),
            series: vec![Series { name: "<b>".to_owned(), points }],
            marks: Vec::new(),
        }
    }

    #[test]
    fn intervals_are_drawn_and_listed() {
        let plot = plot(vec![(1024.0, Estimate::new(1.0, 0.9, 1.1)), (4096.0, Estimate::new(2.0, 1.9, 2.1))]);
        let plot = plot.prepared();
        let svg = plot.svg();
        assert!(svg.contains("class=\"band\"") && svg.contains("&lt;b&gt;") && !svg.contains("NaN"), "{svg}");
        assert!(plot.table().html(true).contains("1.00 [0.90, 1.10]"));
    }

    #[test]
    fn a_level_is_a_horizontal_line_within_the_axis() {
        let mut plot = plot(vec![(1024.0, Estimate::exact(10.0)), (4096.0, Estimate::exact(20.0))]);
        plot.marks = vec![Mark::level(80.0, "two in sequence"), Mark::at(2048.0, "a cliff")];
        let plot = plot.prepared();
        let (svg, at) = (plot.svg(), plot.y_axis().at(80.0));
        assert!(svg.contains(&format!("d=\"M{LEFT} {at:.1}H{RIGHT}\"")), "{svg}");
        assert!((TOP..BOTTOM).contains(&at), "above all points, and on the plot: {at}");
        assert_eq!(svg.matches(&format!(" {TOP}V{BOTTOM}\"/><text class=\"markname\"")).count(), 1, "{svg}");
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        let odd = [f64::NAN, f64::INFINITY, 0.0, -3.0];
        let points =
            odd.iter().flat_map(|x| odd.map(|y| (*x, Estimate { value: y, lo: y, hi: y }))).collect();
        assert!(plot(points).prepared().is_empty());
        let one = plot(vec![(64.0, Estimate::exact(0.0))]).prepared();
        assert!(!one.svg().contains("NaN") && !one.svg().contains("inf"), "{}", one.svg());
    }

    #[test]
    fn long_lines_keep_their_ends() {
        let long = (1..=1000).map(|n| (f64::from(n), Estimate::exact(1.0))).collect();
        let plot = plot(long).prepared();
        let points = &plot.series[0].points;
        assert_eq!((points.len(), points[0].0, points[MOST_POINTS - 1].0), (MOST_POINTS, 1.0, 1000.0));
    }
}
