//! What can be tried without the program's source, and what a run needs for it.

use crate::command::Program;
use crate::prefetched::{self, Prefetched};
use crate::prepared::Prepared;
use records::profile::{FindingKind, Pattern, Profile, StallingLoad};
use std::ffi::OsString;

/// A change. The first two need nothing of the program's source; the last is the program's own.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Huge pages for what `malloc` hands out.
    HugePages,
    /// A prefetch ahead of a load whose addresses are a fixed step apart.
    Prefetch(Prefetched),
    /// What the program itself does otherwise when it gets further arguments.
    Variant { kind: FindingKind, says: String, arguments: Vec<OsString> },
}

/// Less stall than this is not worth a trial.
const LEAST_STALL: f64 = 0.05;
/// Page faults and loads from memory with less than this together have little to gain from huge
/// pages.
const LEAST_MEMORY: f64 = 0.1;
/// No more loads than this are tried.
const MOST_PREFETCHED: usize = 3;
/// Steps within a cache line or two are followed by every prefetcher.
const LEAST_STRIDE: i64 = 128;

/// What the figures of a profile propose to try.
pub fn proposed(profile: &Profile) -> Vec<Change> {
    let share = |quantity: &units::Quantity| quantity.value().unwrap_or(0.0);
    let mut changes = Vec::new();
    let summary = &profile.summary;
    let memory = share(&summary.page_faults) + share(&summary.by_level.beyond_l2);
    if memory >= LEAST_MEMORY {
        changes.push(Change::HugePages);
    }
    let strided = profile.loads.iter().filter_map(strided).take(MOST_PREFETCHED);
    changes.extend(strided.map(Change::Prefetch));
    changes
}

fn strided(load: &StallingLoad) -> Option<Prefetched> {
    let stride = load.stride.value()? as i64;
    let is_worth =
        load.stall.value()? >= LEAST_STALL && load.pattern != Pattern::Chain && stride.abs() >= LEAST_STRIDE;
    is_worth.then(|| Prefetched {
        module: load.module.clone(),
        build_id: load.build_id.clone(),
        address: load.address,
        function: load.function.clone(),
        stride,
    })
}

impl Change {
    pub(crate) fn kind(&self) -> FindingKind {
        match self {
            Self::HugePages => FindingKind::HugePages,
            Self::Prefetch(_) => FindingKind::Prefetch,
            Self::Variant { kind, .. } => *kind,
        }
    }

    /// In words.
    pub fn says(&self) -> String {
        match self {
            Self::HugePages => "huge pages for malloc (GLIBC_TUNABLES=glibc.malloc.hugetlb=1)".to_owned(),
            Self::Prefetch(load) => {
                let function = load.function.as_deref().unwrap_or("?");
                format!("a prefetch ahead of the load at {:#x} in {function}", load.address)
            }
            Self::Variant { says, .. } => says.clone(),
        }
    }

    /// The forms in which it can be tried.
    pub(crate) fn prepare(&self, program: &Program) -> Result<Vec<Prepared>, String> {
        match self {
            Self::HugePages => huge_pages().map(|prepared| vec![prepared]),
            Self::Prefetch(load) => prefetched::prepare(load, program),
            Self::Variant { arguments, .. } => {
                Ok(vec![Prepared { arguments: arguments.clone(), ..Prepared::default() }])
            }
        }
    }
}

fn huge_pages() -> Result<Prepared, String> {
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const NAME: &str = "GLIBC_TUNABLES";
    let setting = std::fs::read_to_string(SETTING).unwrap_or_default();
    if setting.is_empty() || setting.contains("[never]") {
        return Err("the kernel gives no huge pages: transparent_hugepage is off".to_owned());
    }
    let tunable = "glibc.malloc.hugetlb=1";
    let mut value = OsString::from(tunable);
    if let Some(before) = std::env::var_os(NAME).filter(|before| !before.is_empty()) {
        value = before;
        value.push(":");
        value.push(tunable);
    }
    let environment = vec![(OsString::from(NAME), value)];
    Ok(Prepared { says: "all of malloc's memory".to_owned(), environment, ..Prepared::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Quantity, Unit};

    fn profile() -> Profile {
        let fixture = include_bytes!("../../records/fixtures/profile.v1.clock-three-loops.json");
        records::parse::<Profile>(fixture).unwrap().body
    }

    #[test]
    fn what_is_proposed_follows_from_the_figures() {
        let quantity = |value: f64, unit| Quantity::measured(Estimate::exact(value), unit);
        let mut profile = profile();
        profile.summary.by_level.beyond_l2 = quantity(0.0, Unit::Ratio);
        profile.summary.page_faults = quantity(0.0, Unit::Ratio);
        assert_eq!(proposed(&profile), []);
        profile.summary.page_faults = quantity(0.2, Unit::Ratio);
        assert_eq!(proposed(&profile), [Change::HugePages]);
        profile.summary.page_faults = quantity(0.0, Unit::Ratio);
        let load = &mut profile.loads[0];
        load.stall = quantity(0.3, Unit::Ratio);
        load.pattern = Pattern::Parallel;
        load.stride = quantity(4096.0, Unit::Bytes);
        assert!(matches!(&proposed(&profile)[..], [Change::Prefetch(load)] if load.stride == 4096));
        profile.loads[0].stride = quantity(8.0, Unit::Bytes);
        assert_eq!(proposed(&profile), [], "prefetchers follow such a step");
        profile.loads[0].stride = quantity(4096.0, Unit::Bytes);
        profile.loads[0].pattern = Pattern::Chain;
        assert_eq!(proposed(&profile), [], "the next address is not known");
    }
}
