//! A differential flame graph: the calls of one profile, each frame coloured by how much larger or
//! smaller its share is than in another profile. Frames that went are listed in the table.

use super::calls::{Merged, is_sound, merged};
use crate::figure::flame::{Change, flame};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{escape, name, number};
use records::profile::{CallNode, Profile};
use std::collections::BTreeMap;

/// Rows of the table.
const LISTED: usize = 80;

/// The graphs of what changed from `base` to `new`, which have these names.
pub(crate) fn graphs(base: (&str, &Profile), new: (&str, &Profile), out: &mut Out) {
    let ((base_name, base), (new_name, new)) = (base, new);
    if base.calls.nodes.is_empty() || new.calls.nodes.is_empty() {
        out.missing("One of the profiles has no stacks, so it is not known in which calls they differ.");
        return;
    }
    if !is_sound(&base.calls) || !is_sound(&new.calls) {
        out.missing("The tree of calls of a profile is damaged.");
        return;
    }
    out.say(&format!(
        "Below, the calls of {}, by their share of the CPU time; darker the more this differs from {}, if it differs \
         beyond chance: warm frames grew, cool ones shrank.",
        name(new_name),
        name(base_name)
    ));
    let samples = |profile: &Profile| profile.calls.nodes.iter().map(|node| node.samples).sum::<u64>();
    let all = (samples(base), samples(new));
    let time: fn(&CallNode) -> u64 = |node| node.samples;
    let stall: fn(&CallNode) -> u64 = |node| node.stall;
    for (id, title, of) in [
        ("flame-time-change", "What changed in the CPU time", time),
        ("flame-stall-change", "What changed in the time spent waiting for loads", stall),
    ] {
        graph(&merged(&base.calls, of), merged(&new.calls, of), all, id, title, out);
    }
}

fn graph(
    base: &Merged,
    mut new: Merged,
    (of_base, of_new): (u64, u64),
    id: &'static str,
    title: &str,
    out: &mut Out,
) {
    let same = matched(base, &new);
    for (frame, before) in new.frames.iter_mut().zip(&same) {
        let before = before.map_or(0, |before| base.frames[before].weight);
        frame.change = Some(Change::between((before, of_base), (frame.weight, of_new)));
    }
    let (svg, left_out) = flame(title, "samples", &new.frames, &new.roots);
    if svg.is_empty() {
        out.missing(&format!("{}: no sample of this kind has a stack.", escape(title)));
        return;
    }
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (frame, own) in base.frames.iter().zip(&base.own) {
        by_name.entry(&frame.name).or_default().0 += own;
    }
    for (frame, own) in new.frames.iter().zip(&new.own) {
        by_name.entry(&frame.name).or_default().1 += own;
    }
    let mut rows: Vec<(&str, (u64, u64), Change)> = by_name
        .into_iter()
        .map(|(name, own)| (name, own, Change::between((own.0, of_base), (own.1, of_new))))
        .filter(|(_, own, _)| *own != (0, 0))
        .collect();
    rows.sort_by(|a, b| b.2.points.abs().total_cmp(&a.2.points.abs()));
    let head = ["frame", "% before", "% now", "change in points", "beyond chance"];
    let mut table = Table::with_head("Frames by the change of their own share", &head);
    for (called, (before, now), change) in rows.into_iter().take(LISTED) {
        let share = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
        table.row(vec![
            Cell::html(name(called)),
            Cell::plain(number(share(before, of_base))),
            Cell::plain(number(share(now, of_new))),
            Cell::sorted(format!("{:+.2} \u{b1}{:.2}", change.points, change.off), change.points),
            Cell::text(if change.is_beyond_chance() { "yes" } else { "no" }),
        ]);
    }
    if left_out > 0 {
        table.note =
            format!("{left_out} frames are too narrow or too deep to be drawn, with what they call.");
    }
    let differs = "two runs of the same program differ by chance, too, and by what else the machine does.";
    out.figure(Figure { id, title: title.to_owned(), svg, table, differs });
}

/// For each frame of `new` the one of `base` that is called alike, if there is one.
fn matched(base: &Merged, new: &Merged) -> Vec<Option<usize>> {
    let mut found = vec![None; new.frames.len()];
    let mut open: Vec<(&[usize], &[usize])> = vec![(&new.roots, &base.roots)];
    while let Some((now, before)) = open.pop() {
        let by_name: BTreeMap<&str, usize> =
            before.iter().map(|&index| (base.frames[index].name.as_str(), index)).collect();
        for &index in now {
            let Some(&same) = by_name.get(new.frames[index].name.as_str()) else { continue };
            found[index] = Some(same);
            open.push((&new.frames[index].calls, &base.frames[same].calls));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::profile::{CallFrame, CallTree};

    /// `main` calls some functions, with these samples.
    fn tree(functions: &[(&str, u64)]) -> CallTree {
        let frame = |name: &str| CallFrame {
            function: Some(name.to_owned()),
            module: None,
            address: None,
            file: None,
            line: None,
            is_inlined: false,
        };
        let node = |caller, frame, samples| CallNode { caller, frame, samples, stall: 0 };
        let names = ["main"].into_iter().chain(functions.iter().map(|(name, _)| *name));
        let below = functions.iter().enumerate().map(|(n, (_, samples))| node(Some(0), n + 1, *samples));
        CallTree {
            samples: functions.iter().map(|(_, samples)| samples).sum(),
            frames: names.map(frame).collect(),
            nodes: [node(None, 0, 0)].into_iter().chain(below).collect(),
            ..CallTree::default()
        }
    }

    #[test]
    fn frames_are_told_by_how_their_share_changed() {
        let (before, now) =
            (tree(&[("a", 500), ("gone", 300), ("b", 200)]), tree(&[("a", 1000), ("b", 900), ("new", 100)]));
        let of: fn(&CallNode) -> u64 = |node| node.samples;
        let mut out = Out::new("t".to_owned());
        out.section("s", "t");
        graph(&merged(&before, of), merged(&now, of), (1000, 2000), "flame-time-change", "t", &mut out);
        let html = &out.html;
        for text in [
            "b: 45% (900 samples), +25.0 points",
            "new: 5% (100 samples), +5.0 points",
            "a: 50% (1000 samples), +0.0 points",
            "gone",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
        assert!(html.contains("f g3") && !html.contains("f l"), "{html}");
    }

    #[test]
    fn what_may_be_chance_is_no_change() {
        assert!(!Change::between((10, 100), (14, 100)).is_beyond_chance());
        assert!(Change::between((1000, 10_000), (1400, 10_000)).is_beyond_chance());
        assert!(!Change::between((0, 0), (0, 0)).is_beyond_chance());
    }
}
