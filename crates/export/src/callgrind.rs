//! The format of callgrind: <https://valgrind.org/docs/manual/cl-format.html>
//!
//! Costs are CPU time and stall in nanoseconds. How often a function was called is not known by
//! samples, so each call says `calls=0`.
//!
//! Readers add a function's own cost and that of its calls. So that the sum is the function's
//! inclusive cost in recursion, too, a sample counts once for each function on its stack: for the
//! call from that function's innermost frame.

use crate::Weight;
use crate::clean::clean;
use crate::stacks::{Function, Stacks, command};
use records::Document;
use records::profile::Profile;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

/// Samples: all, and those that waited for loads.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: u64,
    stall: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.time += other.time;
        self.stall += other.stall;
    }
}

/// What stands below one `fn=` line.
#[derive(Default)]
struct Costs<'s> {
    /// By line of source, 0 where it is not known.
    own: BTreeMap<u32, Cost>,
    calls: BTreeMap<(Function<'s>, u32), Cost>,
}

pub(crate) fn text(document: &Document<Profile>, stacks: &Stacks<'_>, weight: Weight) -> String {
    let mut functions: BTreeMap<Function<'_>, Costs<'_>> = BTreeMap::new();
    let mut all = Cost::default();
    for (node, samples) in stacks.sampled(Weight::Time) {
        let cost = Cost { time: samples, stall: stacks.nodes()[node].stall };
        all.add(cost);
        let own = &mut functions.entry(stacks.function(node)).or_default().own;
        own.entry(stacks.frame(node).line.unwrap_or(0)).or_default().add(cost);
        let mut seen = HashSet::from([stacks.function(node)]);
        let mut called = node;
        for caller in stacks.outwards(node).skip(1) {
            if seen.insert(stacks.function(caller)) {
                let calls = &mut functions.entry(stacks.function(caller)).or_default().calls;
                let line = stacks.frame(caller).line.unwrap_or(0);
                calls.entry((stacks.function(called), line)).or_default().add(cost);
            }
            called = caller;
        }
    }
    let events = if weight == Weight::Time { "Time Stall" } else { "Stall Time" };
    let mut text = format!(
        "# callgrind format\nversion: 1\ncreator: gleaner {}\ncmd: {}\npositions: line\n\
         event: Time : CPU time [ns]\nevent: Stall : waiting for loads [ns]\nevents: {events}\n",
        clean(&document.header.gleaner),
        command(&document.body),
    );
    let mut writing = Writing { stacks, weight, files: files(stacks), numbers: Default::default() };
    let _ = writeln!(text, "summary: {}", writing.cost(all));
    for (function, costs) in &functions {
        text.push('\n');
        writing.names(&mut text, *function, "");
        for (line, cost) in &costs.own {
            let _ = writeln!(text, "{line} {}", writing.cost(*cost));
        }
        for ((called, line), cost) in &costs.calls {
            writing.names(&mut text, *called, "c");
            let _ = writeln!(text, "calls=0 0\n{line} {}", writing.cost(*cost));
        }
    }
    text
}

/// The source file of each function: the first one that is known.
fn files<'s>(stacks: &'s Stacks<'_>) -> HashMap<Function<'s>, &'s str> {
    let mut files = HashMap::new();
    for node in 0..stacks.nodes().len() {
        if let Some(file) = &stacks.frame(node).file {
            files.entry(stacks.function(node)).or_insert(file.as_str());
        }
    }
    files
}

struct Writing<'s> {
    stacks: &'s Stacks<'s>,
    weight: Weight,
    files: HashMap<Function<'s>, &'s str>,
    /// Names that were written, of objects, files and functions: later they are numbers.
    numbers: [HashMap<String, usize>; 3],
}

impl<'s> Writing<'s> {
    fn cost(&self, cost: Cost) -> String {
        let (time, stall) = (self.stacks.ns(cost.time), self.stacks.ns(cost.stall));
        if self.weight == Weight::Time { format!("{time} {stall}") } else { format!("{stall} {time}") }
    }

    /// `ob=`, `fl=`, `fn=`; for a function that is called with `c` before them.
    fn names(&mut self, text: &mut String, function: Function<'s>, call: &str) {
        let object = function.module.map_or_else(|| "???".to_owned(), clean);
        let file = self.files.get(&function).map_or_else(|| "???".to_owned(), |file| clean(file));
        let name = function.text();
        // A function that is called has its file in `cfi`.
        let file_key = if call.is_empty() { "fl" } else { "fi" };
        let names = [("ob", object), (file_key, file), ("fn", name)];
        for ((key, name), numbers) in names.into_iter().zip(&mut self.numbers) {
            let next = numbers.len() + 1;
            let number = *numbers.entry(name.clone()).or_insert(next);
            let name = if number == next { format!(" {name}") } else { String::new() };
            let _ = writeln!(text, "{call}{key}=({number}){name}");
        }
    }
}
