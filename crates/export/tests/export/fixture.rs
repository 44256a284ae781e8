//! Records to export, and what they say in plain sums.

use records::Document;
use records::profile::{AllocationContext, AllocationSite, Profile, SourceCall};
use std::collections::{BTreeMap, BTreeSet};
use units::{Estimate, Quantity, Unit};

/// A program of C with a call chain, recursion and inlined functions: stock.c, built by
/// `gcc -O2 -g`.
pub(crate) const CALL_CHAIN: &str = "profile.v1.call-chain.json";
/// A record of a profiler that took no stacks.
pub(crate) const NO_STACKS: &str = "profile.v1.clock-three-loops.json";

pub(crate) fn record(name: &str) -> Document<Profile> {
    records::read(&testkit::root().join("crates/records/fixtures").join(name)).expect("a fixture")
}

/// The first record with an object that is allocated in a function that was inlined.
pub(crate) fn with_contexts() -> Document<Profile> {
    let mut document = record(CALL_CHAIN);
    let profile = &mut document.body;
    let call = |function: &str, line_offset, column, is_inlined| SourceCall {
        function: function.to_owned(),
        line_offset,
        column,
        is_inlined,
    };
    let exact = |value, unit| Quantity::measured(Estimate::exact(value), unit);
    let object = &mut profile.objects[0];
    "malloc in make (stock.c:7), 1 KiB".clone_into(&mut object.name);
    object.site = Some(AllocationSite {
        contexts: vec![AllocationContext {
            calls: vec![
                call("make", 2, 12, true),
                call("_ZN4shop5tableEl", 4, 9, false),
                call("main", 11, 3, false),
            ],
            allocations: exact(3.0, Unit::Count),
            bytes: exact(3072.0, Unit::Bytes),
            lifetime: exact(2.0, Unit::Seconds),
            stall: object.stall.clone(),
        }],
        ..AllocationSite::default()
    });
    profile.loads[0].object = Some(object.name.clone());
    profile.loads[0].latency = exact(90.0, Unit::Nanos);
    document
}

/// Samples in a function or in what it calls: all, and those that waited for loads.
pub(crate) fn inclusive(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let calls = &profile.calls;
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for node in &calls.nodes {
        let mut on_stack = BTreeSet::new();
        let mut at = Some(node);
        while let Some(node) = at {
            on_stack.insert(calls.frames[node.frame].function.clone().expect("a name"));
            at = node.caller.map(|caller| &calls.nodes[caller]);
        }
        for function in on_stack {
            let sum = sums.entry(function).or_default();
            sum.0 += node.samples;
            sum.1 += node.stall;
        }
    }
    sums
}

/// The CPU time of one sample of the tree.
pub(crate) fn ns_a_sample(profile: &Profile) -> f64 {
    let samples: u64 = profile.calls.nodes.iter().map(|node| node.samples).sum();
    profile.summary.cpu_time.value().expect("a figure") * 1e9 / samples as f64
}

/// Fails unless a reader shows the inclusive times that the record says, for each function that has
/// any: time in nanoseconds by name.
#[track_caller]
pub(crate) fn compare(reader: &str, shown: &BTreeMap<String, f64>, profile: &Profile, stall: bool) {
    let ns = ns_a_sample(profile);
    let said: BTreeMap<String, f64> = inclusive(profile)
        .into_iter()
        .map(|(name, (time, waited))| (name, if stall { waited } else { time } as f64 * ns))
        .filter(|(_, time)| *time > 0.0)
        .collect();
    let shown: BTreeMap<&String, &f64> = shown.iter().filter(|(_, time)| **time > 0.0).collect();
    assert_eq!(
        shown.keys().map(|name| name.as_str()).collect::<Vec<_>>(),
        said.keys().map(String::as_str).collect::<Vec<_>>(),
        "{reader}"
    );
    for (name, time) in &said {
        let shown = *shown[name];
        // Each node is rounded to a nanosecond.
        assert!((shown - time).abs() <= 100.0, "{reader}: {name}: {shown} shown, {time} said");
    }
}
