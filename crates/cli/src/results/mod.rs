//! How the results of each experiment are shown: one file an experiment, with its part of the
//! summary and its table.
//!
//! To add an experiment: a file here with a [`Results`], and its name in [`IN_SUMMARY`]. A test
//! compares the names with those of the experiments' catalogue.

mod bandwidth;
mod c2c;
mod clock;
pub(crate) mod lat_mem_rd;
mod latency;
mod mlp;
mod numa;
mod prefetch;
mod probe;
mod rob;
mod smt;
mod stride;
mod threads;
mod tlb;
mod windows;
mod yields;

use experiments::catalogue;
use records::machine::Machine;

/// How one experiment's results are shown.
pub(crate) struct Results {
    /// As the catalogue names the experiment.
    pub(crate) name: &'static str,
    /// Of its part of the summary.
    pub(crate) title: &'static str,
    /// That part, with tables and curves at most this many characters wide; none where there is
    /// nothing to tell.
    pub(crate) lines: fn(&Machine, usize) -> Option<String>,
    /// Every point as comma-separated values, the names of the columns first.
    pub(crate) csv: fn(&Machine) -> Option<String>,
}

/// In the order of the summary: what most readers look for stands first.
pub(crate) const IN_SUMMARY: &[Results] = &[
    latency::RESULTS,
    tlb::RESULTS,
    mlp::RESULTS,
    rob::RESULTS,
    stride::RESULTS,
    prefetch::RESULTS,
    numa::RESULTS,
    threads::RESULTS,
    smt::RESULTS,
    bandwidth::RESULTS,
    windows::RESULTS,
    c2c::RESULTS,
    yields::RESULTS,
    clock::RESULTS,
    probe::RESULTS,
];

/// In the order in which the experiments run.
pub(crate) fn in_order() -> impl Iterator<Item = &'static Results> {
    catalogue::ALL.iter().filter_map(|entry| IN_SUMMARY.iter().find(|results| results.name == entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_results_to_show() {
        assert_eq!(in_order().count(), catalogue::ALL.len());
        // And the probe, which is no part of a whole measurement.
        assert_eq!(IN_SUMMARY.len(), catalogue::ALL.len() + 1);
    }
}
