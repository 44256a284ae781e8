//! Folded stacks, as Brendan Gregg's flamegraph.pl reads them: one line a stack, the outermost
//! function first, `a;b;c 12`. The weight is samples.

use crate::Weight;
use crate::stacks::{Stacks, name};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) fn text(stacks: &Stacks<'_>, weight: Weight) -> String {
    // Stacks that differ in lines alone are one.
    let mut by_stack: BTreeMap<String, u64> = BTreeMap::new();
    for (node, samples) in stacks.sampled(weight) {
        let mut names: Vec<String> = stacks.outwards(node).map(|node| part(stacks, node)).collect();
        names.reverse();
        *by_stack.entry(names.join(";")).or_default() += samples;
    }
    by_stack.iter().fold(String::new(), |mut text, (stack, samples)| {
        let _ = writeln!(text, "{stack} {samples}");
        text
    })
}

/// A name that cannot be taken for two.
fn part(stacks: &Stacks<'_>, node: usize) -> String {
    name(stacks.frame(node)).replace(';', ":")
}
