//! Points with intervals in both directions: what is gained by what is paid for it. Points of one
//! class are joined in their order.

use super::axis::{Axis, Numbers, Scale};
use super::plot::marker;
use super::{SERIES, label, svg};
use crate::text::{cut, escape};
use units::Estimate;

const WIDTH: f64 = 600.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 576.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 290.0;

#[derive(Debug)]
pub(crate) struct Dot {
    pub(crate) name: String,
    pub(crate) x: Estimate,
    pub(crate) y: Estimate,
    /// Dots of one class look alike.
    pub(crate) class: usize,
    /// What is said of it.
    pub(crate) says: String,
}

#[derive(Debug)]
pub(crate) struct Scatter {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) dots: Vec<Dot>,
    /// Lines at values of x and of y, with their names.
    pub(crate) at_x: Vec<(f64, String)>,
    pub(crate) at_y: Vec<(f64, String)>,
}

/// The letter by which a point is found in the list below.
pub(crate) fn letter(n: usize) -> char {
    char::from(b'A' + (n % 26) as u8)
}

impl Scatter {
    /// Nothing is drawn without a point.
    pub(crate) fn svg(&self) -> String {
        let (x, y) = self.axes();
        let mut inside = format!(
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/><g class=\"grid\">",
            RIGHT - LEFT,
            BOTTOM - TOP
        );
        for (value, name) in x.ticks() {
            let at = x.at(value);
            inside.push_str(&format!("<path d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"));
            inside.push_str(&label(at, BOTTOM + 16.0, "middle", &name));
        }
        for (value, name) in y.ticks() {
            let at = y.at(value);
            inside.push_str(&format!("<path d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
            inside.push_str(&label(LEFT - 5.0, at + 4.0, "end", &name));
        }
        inside.push_str("</g>");
        inside.push_str(&label(f64::midpoint(LEFT, RIGHT), BOTTOM + 34.0, "middle", &self.x));
        inside.push_str(&format!(
            "<text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(TOP, BOTTOM),
            escape(&self.y)
        ));
        inside.push_str(&self.lines(&x, &y));
        inside.push_str(&self.joints(&x, &y));
        for (n, dot) in self.dots.iter().enumerate() {
            inside.push_str(&point(n, dot, &x, &y));
        }
        let mut bottom = BOTTOM + 42.0;
        for (n, dot) in self.dots.iter().enumerate() {
            bottom += 18.0;
            let class = dot.class % SERIES;
            let shape = marker(dot.class, LEFT + 6.0, bottom - 4.0);
            let text = format!("{}  {}", letter(n), cut(&dot.name, 76));
            let text = label(LEFT + 18.0, bottom, "start", &text);
            inside.push_str(&format!("<g class=\"s{class}\">{shape}</g>{text}"));
        }
        svg("scatter", WIDTH, bottom + 10.0, &self.title, &inside)
    }

    /// Both begin at nothing, or below it where an interval does; intervals that reach far beyond
    /// all points are cut.
    fn axes(&self) -> (Axis, Axis) {
        let range = |of: fn(&Dot) -> Estimate, lines: &[(f64, String)]| {
            let all = || self.dots.iter().map(of);
            let most = all().map(|e| e.value).chain(lines.iter().map(|(at, _)| *at)).fold(0.0, f64::max);
            let reach = if most > 0.0 { 2.0 * most } else { 1.0 };
            let high = all().map(|e| e.hi.min(reach)).fold(most, f64::max);
            let low = all().map(|e| e.lo.max(-reach).min(e.value)).fold(0.0, f64::min);
            let high = if high > low { high } else { low + 1.0 };
            (if low < 0.0 { low * 1.08 } else { 0.0 }, high + 0.08 * (high - low))
        };
        let axis = |(low, high), from, to| Axis {
            scale: Scale::Linear,
            numbers: Numbers::Plain,
            low,
            high,
            from,
            to,
        };
        let x = axis(range(|dot| dot.x, &self.at_x), LEFT, RIGHT);
        let y = axis(range(|dot| dot.y, &self.at_y), BOTTOM, TOP);
        (x, y)
    }

    fn lines(&self, x: &Axis, y: &Axis) -> String {
        let mut out = String::new();
        for (n, (value, name)) in self.at_x.iter().enumerate() {
            let at = x.at(*value);
            let (side, anchor) = if at > f64::midpoint(LEFT, RIGHT) { (-4.0, "end") } else { (4.0, "start") };
            let text = label(at + side, TOP + 12.0 + 13.0 * (n % 6) as f64, anchor, &cut(name, 30));
            out.push_str(&format!("<path class=\"mark\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"));
            out.push_str(&text.replacen("<text", "<text class=\"markname\"", 1));
        }
        for (value, name) in &self.at_y {
            let at = y.at(*value);
            let text = label(RIGHT - 4.0, at - 4.0, "end", &cut(name, 60));
            out.push_str(&format!("<path class=\"mark\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
            out.push_str(&text.replacen("<text", "<text class=\"markname\"", 1));
        }
        out
    }

    fn joints(&self, x: &Axis, y: &Axis) -> String {
        let mut out = String::new();
        let mut classes: Vec<usize> = self.dots.iter().map(|dot| dot.class).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            let of_class: Vec<&Dot> = self.dots.iter().filter(|dot| dot.class == class).collect();
            if of_class.len() < 2 {
                continue;
            }
            let places: Vec<String> = of_class
                .iter()
                .map(|dot| format!("{:.1} {:.1}", x.at(dot.x.value), y.at(dot.y.value)))
                .collect();
            out.push_str(&format!(
                "<g class=\"s{}\"><path class=\"line\" d=\"M{}\"/></g>",
                class % SERIES,
                places.join("L")
            ));
        }
        out
    }
}

fn point(n: usize, dot: &Dot, x: &Axis, y: &Axis) -> String {
    let (px, py) = (x.at(dot.x.value), y.at(dot.y.value));
    let (left, right) = (x.at(dot.x.lo), x.at(dot.x.hi));
    let (bottom, top) = (y.at(dot.y.lo), y.at(dot.y.hi));
    let name = label(px + 7.0, py - 7.0, "start", &letter(n).to_string());
    format!(
        "<g class=\"s{}\"><title>{}</title><path class=\"whisker interval\" d=\"M{left:.1} {py:.1}H{right:.1}\
         M{left:.1} {:.1}v8M{right:.1} {:.1}v8M{px:.1} {bottom:.1}V{top:.1}M{:.1} {bottom:.1}h8M{:.1} {top:.1}h8\"/>\
         {}{name}</g>",
        dot.class % SERIES,
        escape(&dot.says),
        py - 4.0,
        py - 4.0,
        px - 4.0,
        px - 4.0,
        marker(dot.class, px, py),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(x: f64, y: f64, class: usize) -> Dot {
        let around = |v: f64| Estimate { value: v, lo: v - 0.5, hi: v + 0.5 };
        Dot { name: "<run>".to_owned(), x: around(x), y: around(y), class, says: "<says>".to_owned() }
    }

    fn of(dots: Vec<Dot>) -> String {
        let (at_x, at_y) = (vec![(5.0, "allowed".to_owned())], vec![(1.0, "one".to_owned())]);
        Scatter { title: "t".to_owned(), x: "x".to_owned(), y: "y".to_owned(), dots, at_x, at_y }.svg()
    }

    #[test]
    fn points_have_both_intervals_and_those_of_one_class_are_joined() {
        let text = of(vec![dot(1.0, 1.5, 0), dot(4.0, 2.0, 0), dot(2.0, 1.0, 1)]);
        assert_eq!(text.matches("whisker interval").count(), 3);
        assert_eq!(text.matches("class=\"line\"").count(), 1, "{text}");
        assert!(text.contains("&lt;says&gt;") && text.contains("A  &lt;run&gt;") && text.contains("C  "));
        assert_eq!(of(vec![dot(1.0, 1.5, 0)]).matches("class=\"line\"").count(), 0);
    }

    #[test]
    fn what_is_more_stands_higher_and_further_right() {
        let scatter = Scatter {
            title: String::new(),
            x: String::new(),
            y: String::new(),
            dots: vec![dot(1.0, 1.5, 0), dot(4.0, 2.0, 0)],
            at_x: Vec::new(),
            at_y: Vec::new(),
        };
        let (x, y) = scatter.axes();
        assert!(x.at(1.0) < x.at(4.0) && y.at(2.0) < y.at(1.5));
        assert!(x.low == 0.0 && x.high > 4.5 && y.high > 2.5, "{x:?} {y:?}");
    }

    #[test]
    fn absurd_points_do_no_harm() {
        let absurd = Estimate { value: 1e308, lo: -1e308, hi: 1e308 };
        let text = of(vec![Dot { x: absurd, y: absurd, ..dot(1.0, 1.0, 0) }]);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
