//! Flame graphs from the tree of calls: by stall and by time.

use crate::figure::flame::{Frame, flame};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, escape, name, number};
use records::profile::{CallNode, CallTree, CutOffStacks, Profile};
use std::collections::BTreeMap;

pub(super) fn flames(profile: &Profile, out: &mut Out) {
    out.section("calls", "Callers");
    let calls = &profile.calls;
    if calls.nodes.is_empty() {
        out.missing("No stacks were sampled, so callers are not known.");
        return;
    }
    if !is_sound(calls) {
        out.missing("The tree of calls is damaged: a node names a caller or a frame that is not there.");
        return;
    }
    out.say(&format!(
        "What functions take themselves is by all samples; who calls them, by the {} that have a stack, {} of them \
         without their outermost frames.",
        calls.samples, calls.cut_off
    ));
    if !calls.cut_off_because.is_empty() {
        let told = |one: &CutOffStacks| format!("{}: {} samples", escape(&one.why), one.samples);
        out.list(&calls.cut_off_because.iter().map(told).collect::<Vec<_>>());
    }
    if calls.lost > 0 {
        out.missing(&format!("{} samples with a stack were lost.", calls.lost));
    }
    let stall = "waiting for loads";
    graph(calls, |node| node.stall, "flame-stall", &format!("Flame graph of the time spent {stall}"), out);
    graph(calls, |node| node.samples, "flame-time", "Flame graph of the CPU time", out);
}

/// The tree with lines of one function as called by one frame put together.
pub(crate) struct Merged {
    pub frames: Vec<Frame>,
    pub roots: Vec<usize>,
    /// Samples of each frame itself, not of what it calls.
    pub own: Vec<u64>,
}

/// Whether all nodes name frames and callers that are there.
pub(crate) fn is_sound(calls: &CallTree) -> bool {
    let mut nodes = calls.nodes.iter().enumerate();
    nodes.all(|(n, node)| node.frame < calls.frames.len() && node.caller.is_none_or(|caller| caller < n))
}

/// Of a tree that is sound.
pub(crate) fn merged(calls: &CallTree, of: impl Fn(&CallNode) -> u64) -> Merged {
    let mut frames: Vec<Frame> = Vec::with_capacity(calls.nodes.len());
    let mut known: BTreeMap<(Option<usize>, String), usize> = BTreeMap::new();
    let mut of_node = Vec::with_capacity(calls.nodes.len());
    let (mut roots, mut own) = (Vec::new(), Vec::new());
    for node in &calls.nodes {
        let frame = &calls.frames[node.frame];
        let module = frame.module.as_deref().map(base).unwrap_or_default();
        let inlined = if frame.is_inlined { " (inlined)" } else { "" };
        let function = frame.function.as_deref().unwrap_or("?");
        let called =
            if module.is_empty() { function.to_owned() } else { format!("{function}{inlined} [{module}]") };
        let caller = node.caller.map(|caller| of_node[caller]);
        let index = *known.entry((caller, called.clone())).or_insert_with(|| {
            frames.push(Frame { name: called, ..Frame::default() });
            own.push(0);
            let index = frames.len() - 1;
            match caller {
                Some(caller) => frames[caller].calls.push(index),
                None => roots.push(index),
            }
            index
        });
        own[index] = of(node).saturating_add(own[index]);
        of_node.push(index);
    }
    // What is called stands behind its caller, so sums go from the end to the beginning.
    for index in (0..frames.len()).rev() {
        frames[index].weight =
            frames[index].calls.iter().fold(own[index], |sum, c| sum.saturating_add(frames[*c].weight));
    }
    Merged { frames, roots, own }
}

fn graph(calls: &CallTree, of: impl Fn(&CallNode) -> u64, id: &'static str, title: &str, out: &mut Out) {
    let Merged { frames, roots, own } = merged(calls, of);
    let (svg, left_out) = flame(title, "samples", &frames, &roots);
    if svg.is_empty() {
        out.missing(&format!("{}: no sample of this kind has a stack.", escape(title)));
        return;
    }
    let total = own.iter().fold(0, |sum: u64, samples| sum.saturating_add(*samples));
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (frame, samples) in frames.iter().zip(&own) {
        let sum: &mut u64 = by_name.entry(&frame.name).or_default();
        *sum = sum.saturating_add(*samples);
    }
    let mut sorted: Vec<_> = by_name.into_iter().filter(|(_, samples)| *samples > 0).collect();
    sorted.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let mut table = Table::with_head("Frames by their own samples", &["frame", "samples", "%"]);
    for (called, samples) in sorted.into_iter().take(60) {
        let share = 100.0 * samples as f64 / total as f64;
        table.row(vec![Cell::html(name(called)), Cell::count(samples), Cell::plain(number(share))]);
    }
    if left_out > 0 {
        table.note =
            format!("{left_out} frames are too narrow or too deep to be drawn, with what they call.");
    }
    let differs = "stacks come from a slower event of its own than the other figures, so shares differ a little; code \
                   without unwind information cuts stacks off.";
    out.figure(Figure { id, title: title.to_owned(), svg, table, differs });
}
