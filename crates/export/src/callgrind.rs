//! The format of callgrind: <https://valgrind.org/docs/manual/cl-format.html>
//!
//! Costs are CPU time and stall in nanoseconds. How often a function was called is not known by
//! samples, so each call says `calls=1`. (It cannot say 0: callgrind_annotate then takes the cost
//! of the call for the caller's own.)
//!
//! callgrind_annotate shows the sum of all calls of a function as its inclusive cost, KCachegrind
//! its own cost with that of the calls that it makes. A sample counts once for each function on its
//! stack, for the call that leads to the outermost frame of that function. So both sums are right
//! where a function calls itself; where functions call one another in a circle, the first is, and
//! KCachegrind shows the circle as one.

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
        let mut stack: Vec<usize> = stacks.outwards(node).collect();
        stack.reverse();
        let mut seen: HashSet<Function<'_>> =
            stack.first().map(|&root| stacks.function(root)).into_iter().collect();
        for call in stack.windows(2) {
            let (caller, called) = (stacks.function(call[0]), stacks.function(call[1]));
            if seen.insert(called) {
                let calls = &mut functions.entry(caller).or_default().calls;
                let line = stacks.frame(call[0]).line.unwrap_or(0);
                calls.entry((called, line)).or_default().add(cost);
                // A reader knows the module of a function by its own lines alone.
                functions.entry(called).or_default();
            }
        }
    }
    let events = if weight == Weight::Time { "Time Stall" } else { "Stall Time" };
    let mut text = format!(
        "# callgrind format\n# Samples do not count calls: each says 1.\nversion: 1\ncreator: gleaner {}\ncmd: {}\npositions: line\n\
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
            let _ = writeln!(text, "calls=1 0\n{line} {}", writing.cost(*cost));
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
