//! All experiments, in the order in which they run: later ones may use what earlier ones found.
//!
//! To add one: its module declares `pub(crate) const ENTRY: Entry`, and [`ALL`] lists it.

use crate::{
    bandwidth, c2c, clock, costs, latency, mlp, numa, prefetch, probe, rob, smt, stride, threads, tlb,
    windows, yields,
};
use records::machine::{Ending, Experiments};

pub use crate::effort::ByEffort;
pub use crate::entry::Entry;

pub const ALL: &[Entry] = &[
    clock::ENTRY,
    latency::ENTRY,
    tlb::ENTRY,
    mlp::ENTRY,
    rob::ENTRY,
    stride::ENTRY,
    prefetch::ENTRY,
    numa::ENTRY,
    threads::ENTRY,
    smt::ENTRY,
    bandwidth::ENTRY,
    windows::ENTRY,
    c2c::ENTRY,
    yields::ENTRY,
];

/// What `gleaner probe` runs; no part of a whole measurement.
pub const PROBE: Entry = probe::ENTRY;

/// What `gleaner harvest` runs where there is no machine record.
pub const COSTS: Entry = costs::ENTRY;

/// Those of a whole measurement, the probe and the short costs.
fn every() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().chain([&PROBE, &COSTS])
}

pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|e| e.name == name)
}

/// How each experiment of a record ended, in catalogue order; those that were not begun are left
/// out.
pub fn endings(experiments: &Experiments) -> Vec<Ending<'_>> {
    every().filter_map(|entry| entry.ending(experiments)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for entry in ALL {
            assert_eq!(ALL.iter().filter(|e| e.name == entry.name).count(), 1, "{}", entry.name);
            assert!(find(entry.name).is_some());
            assert!(!entry.about.is_empty() && !entry.about.contains('\n'), "{}", entry.name);
        }
        assert!(find("nothing").is_none());
    }

    /// Each part of the record is filled by one experiment, whose name is the part's.
    #[test]
    fn every_part_of_the_record_has_its_experiment() {
        let outcome = serde_json::json!({ "status": "failed", "seconds": 0.0 });
        for entry in every() {
            let json = serde_json::json!({ entry.name: outcome });
            let experiments: Experiments = serde_json::from_value(json).unwrap();
            let names: Vec<&str> = endings(&experiments).iter().map(|e| e.name).collect();
            assert_eq!(names, [entry.name]);
        }
        // The committed schema, which a test of the records room keeps current.
        let version = <records::machine::Machine as records::Record>::VERSION;
        let file = format!("../../docs/schema/machine.v{version}.schema.json");
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let schema: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let parts = schema["$defs"]["Experiments"]["properties"].as_object().unwrap();
        let mut filled: Vec<&str> = every().map(|e| e.name).collect();
        let mut parts: Vec<&str> = parts.keys().map(String::as_str).collect();
        filled.sort_unstable();
        parts.sort_unstable();
        assert_eq!(filled, parts);
    }
}
