//! Flame graphs: callers below, what they call above; the script zooms into what is clicked.

use super::svg;
use crate::text::{cut, escape, number};

const WIDTH: f64 = 1000.0;
const ROW: f64 = 18.0;
/// Frames narrower than this share are left out: they cannot be seen.
const LEAST: f64 = 0.0006;
/// Deeper frames are left out.
const DEEPEST: usize = 160;

/// A frame of the graph. What it calls stands behind it, as indices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) name: String,
    /// Samples of its own and of all it calls.
    pub(crate) weight: u64,
    pub(crate) calls: Vec<usize>,
    /// Against another profile; then it has the colour of that.
    pub(crate) change: Option<Change>,
}

/// How a share of samples changed, in percent points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub(crate) points: f64,
    /// Half of its 95% interval.
    pub(crate) off: f64,
}

impl Change {
    /// From a part of all samples to another one.
    pub(crate) fn between((before, of_before): (u64, u64), (now, of_now): (u64, u64)) -> Self {
        // As if one sample more had been the other way: of none and of all, too, something is open.
        let share = |part: u64, all: u64| {
            let all = all.max(1) as f64;
            let (share, likely) = (part as f64 / all, (part as f64 + 1.0) / (all + 2.0));
            (share, likely * (1.0 - likely).max(0.0) / all)
        };
        let ((a, a_varies), (b, b_varies)) = (share(before, of_before), share(now, of_now));
        Self { points: 100.0 * (b - a), off: 196.0 * (a_varies + b_varies).sqrt() }
    }

    pub(crate) fn is_beyond_chance(self) -> bool {
        self.points.abs() > self.off
    }

    /// The class of its colour: three that grow, three that shrink, and none.
    fn class(self) -> String {
        let step = match self.points.abs() {
            points if points < 1.0 => 1,
            points if points < 5.0 => 2,
            _ => 3,
        };
        match self.is_beyond_chance() {
            false => "e".to_owned(),
            true if self.points > 0.0 => format!("g{step}"),
            true => format!("l{step}"),
        }
    }
}

/// A graph of these frames, and the number of frames too narrow or too deep to draw.
pub(crate) fn flame(title: &str, unit: &str, frames: &[Frame], roots: &[usize]) -> (String, usize) {
    let total = roots.iter().fold(0, |sum: u64, root| sum.saturating_add(frames[*root].weight));
    if total == 0 {
        return (String::new(), 0);
    }
    let (mut boxes, mut left_out, mut deepest) = (Vec::new(), 0, 0);
    let mut open: Vec<(usize, usize, u64)> = Vec::new();
    lay_out(frames, roots, 0, 0, &mut open);
    while let Some((frame, depth, from)) = open.pop() {
        let share = frames[frame].weight as f64 / total as f64;
        if share < LEAST || depth >= DEEPEST {
            left_out += 1;
            continue;
        }
        deepest = deepest.max(depth);
        boxes.push((frame, depth, from));
        lay_out(frames, &frames[frame].calls, depth + 1, from, &mut open);
    }
    let height = ROW * (deepest + 1) as f64 + 4.0;
    let mut inside = String::new();
    for (index, depth, from) in boxes {
        let frame = &frames[index];
        let (x, wide) = (from as f64 / total as f64 * WIDTH, frame.weight as f64 / total as f64 * WIDTH);
        let y = height - ROW * (depth + 1) as f64 - 2.0;
        let share = number(100.0 * frame.weight as f64 / total as f64);
        let text = if wide > 26.0 {
            let shown = cut(&frame.name, ((wide - 6.0) / 6.9) as usize);
            format!("<text x=\"{:.1}\" y=\"{:.0}\">{}</text>", x + 3.0, y + 13.0, escape(&shown))
        } else {
            String::new()
        };
        let class = frame.change.map_or_else(|| format!("f{}", colour(&frame.name)), Change::class);
        let change =
            frame.change.map_or_else(String::new, |change| format!(", {:+.1} points", change.points));
        inside.push_str(&format!(
            "<g class=\"f {class}\"><title>{}: {share}% ({} {unit}){change}</title><rect x=\"{x:.1}\" y=\"{y:.0}\" \
             width=\"{:.1}\" height=\"{}\"/>{text}</g>",
            escape(&cut(&frame.name, 300)),
            frame.weight,
            (wide - 0.6).max(0.4),
            ROW - 1.0,
        ));
    }
    (svg("flame", WIDTH, height, title, &inside), left_out)
}

/// Frames beside each other, widest first.
fn lay_out(frames: &[Frame], calls: &[usize], depth: usize, from: u64, open: &mut Vec<(usize, usize, u64)>) {
    let mut sorted: Vec<usize> = calls.iter().copied().filter(|c| frames[*c].weight > 0).collect();
    sorted.sort_by(|a, b| {
        frames[*b].weight.cmp(&frames[*a].weight).then(frames[*a].name.cmp(&frames[*b].name))
    });
    let mut at = from;
    for frame in sorted {
        open.push((frame, depth, at));
        at = at.saturating_add(frames[frame].weight);
    }
}

/// The same function has the same of five tints everywhere.
fn colour(name: &str) -> u32 {
    name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_frames_are_counted_not_drawn() {
        let frame = |name: &str, weight, calls| Frame { name: name.to_owned(), weight, calls, change: None };
        let frames =
            [frame("main", 10_000, vec![1, 2]), frame("<wide>", 9_999, vec![]), frame("narrow", 1, vec![])];
        let (svg, left_out) = flame("t", "samples", &frames, &[0]);
        assert_eq!(left_out, 1);
        assert!(svg.contains("&lt;wide&gt;: 99.99%") && !svg.contains("narrow"), "{svg}");
        assert_eq!(flame("t", "samples", &[], &[]), (String::new(), 0));
    }
}
