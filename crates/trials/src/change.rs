//! What can be tried without the program's source, and what a run needs for it.

use crate::aligned::{self, Aligned};
use crate::command::Program;
use crate::huge::{self, HugePages};
use crate::placed::{self, Cpus};
use crate::prefetched::{self, Prefetched, Walk};
use crate::prepared::Prepared;
use records::host::Host;
use records::profile::{FindingKind, Pattern, Profile, StallingLoad};
use std::ffi::OsString;
use units::Quantity;

/// A change. The first two need nothing of the program's source; the last is the program's own.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Huge pages for what `malloc` hands out, and for what the program maps.
    HugePages(HugePages),
    /// A prefetch ahead of a load whose addresses are a fixed step apart, or indexed by a load of
    /// which that is so.
    Prefetch(Prefetched),
    /// Cache lines of their own for what a site allocates.
    Align(Aligned),
    /// Threads on CPUs that are near to one another.
    Cpus(Vec<Cpus>),
    /// Memory spread over these nodes, a bit each.
    Nodes(u64),
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

/// What the figures of a profile propose to try on this machine.
pub fn proposed(profile: &Profile, host: &Host) -> Vec<Change> {
    let share = |quantity: &Quantity| quantity.value().unwrap_or(0.0);
    let mut changes = Vec::new();
    let summary = &profile.summary;
    let memory = share(&summary.page_faults) + share(&summary.by_level.beyond_l2);
    if memory >= LEAST_MEMORY {
        changes.push(Change::HugePages(HugePages::of(host)));
    }
    let known = profile.loads.iter().filter_map(ahead).take(MOST_PREFETCHED);
    changes.extend(known.map(Change::Prefetch));
    changes.extend(aligned::proposed(profile).into_iter().map(Change::Align));
    let is_shared = |kind| matches!(kind, FindingKind::FalseSharing | FindingKind::TrueSharing);
    let shared = profile.findings.iter().filter(|finding| is_shared(finding.kind));
    let cpus = placed::cpus(host);
    if shared.map(|finding| share(&finding.gain)).sum::<f64>() >= LEAST_STALL && !cpus.is_empty() {
        changes.push(Change::Cpus(cpus));
    }
    let is_far = profile.findings.iter().any(|finding| finding.kind == FindingKind::FirstTouch)
        || share(&summary.by_level.remote) >= LEAST_STALL;
    changes.extend(placed::nodes(host).filter(|_| is_far).map(Change::Nodes));
    changes
}

/// A load whose next addresses may be known.
fn ahead(load: &StallingLoad) -> Option<Prefetched> {
    if load.stall.value()? < LEAST_STALL || load.pattern == Pattern::Chain {
        return None;
    }
    let walk = match load.stride.value().map(|stride| stride as i64) {
        Some(stride) if stride.abs() >= LEAST_STRIDE => Walk::Steps(stride),
        Some(_) => return None,
        None => Walk::Indexed,
    };
    Some(Prefetched {
        module: load.module.clone(),
        build_id: load.build_id.clone(),
        address: load.address,
        function: load.function.clone(),
        walk,
    })
}

impl Change {
    pub(crate) fn kind(&self) -> FindingKind {
        match self {
            Self::HugePages(_) => FindingKind::HugePages,
            Self::Prefetch(_) => FindingKind::Prefetch,
            Self::Align(_) => FindingKind::Pad,
            Self::Cpus(_) | Self::Nodes(_) => FindingKind::Placement,
            Self::Variant { kind, .. } => *kind,
        }
    }

    /// The profile cannot tell whether it is possible at all: only the code can.
    pub(crate) fn is_guess(&self) -> bool {
        matches!(self, Self::Prefetch(load) if load.walk == Walk::Indexed)
    }

    /// In words.
    pub fn says(&self) -> String {
        match self {
            Self::HugePages(_) => "huge pages".to_owned(),
            Self::Prefetch(load) => {
                let function = load.function.as_deref().unwrap_or("?");
                format!("a prefetch ahead of the load at {:#x} in {function}", load.address)
            }
            Self::Align(site) => format!("cache lines of their own for {}", site.object),
            Self::Cpus(_) => "threads on CPUs near to one another".to_owned(),
            Self::Nodes(_) => "memory spread over the nodes".to_owned(),
            Self::Variant { says, .. } => says.clone(),
        }
    }

    /// The forms in which it can be tried.
    pub(crate) fn prepare(&self, program: &Program) -> Result<Vec<Prepared>, String> {
        match self {
            Self::HugePages(huge) => huge::prepare(*huge),
            Self::Prefetch(load) => prefetched::prepare(load, program),
            Self::Align(site) => aligned::prepare(site),
            Self::Cpus(forms) => placed::on_cpus(forms),
            Self::Nodes(nodes) => placed::over_nodes(*nodes),
            Self::Variant { arguments, .. } => {
                Ok(vec![Prepared { arguments: arguments.clone(), ..Prepared::default() }])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Unit};

    fn profile() -> Profile {
        let fixture = include_bytes!("../../records/fixtures/profile.v1.clock-three-loops.json");
        records::parse::<Profile>(fixture).unwrap().body
    }

    #[test]
    fn what_is_proposed_follows_from_the_figures() {
        let quantity = |value: f64, unit| Quantity::measured(Estimate::exact(value), unit);
        let mut profile = profile();
        let host = Host::default();
        let proposed = |profile: &Profile| super::proposed(profile, &host);
        profile.summary.by_level.beyond_l2 = quantity(0.0, Unit::Ratio);
        profile.summary.page_faults = quantity(0.0, Unit::Ratio);
        // Of the three loads one is looked at, and not before it has a stall.
        profile.loads.truncate(1);
        profile.loads[0].stall = quantity(0.0, Unit::Ratio);
        assert_eq!(proposed(&profile), []);
        profile.summary.page_faults = quantity(0.2, Unit::Ratio);
        assert!(matches!(&proposed(&profile)[..], [Change::HugePages(_)]));
        profile.summary.page_faults = quantity(0.0, Unit::Ratio);
        let load = &mut profile.loads[0];
        load.stall = quantity(0.3, Unit::Ratio);
        load.pattern = Pattern::Parallel;
        load.stride = quantity(4096.0, Unit::Bytes);
        assert!(
            matches!(&proposed(&profile)[..], [Change::Prefetch(load)] if load.walk == Walk::Steps(4096))
        );
        profile.loads[0].stride = quantity(8.0, Unit::Bytes);
        assert_eq!(proposed(&profile), [], "prefetchers follow such a step");
        profile.loads[0].stride = Quantity::unresolved("it has none");
        assert!(matches!(&proposed(&profile)[..], [Change::Prefetch(load)] if load.walk == Walk::Indexed));
        profile.loads[0].stride = quantity(4096.0, Unit::Bytes);
        profile.loads[0].pattern = Pattern::Chain;
        assert_eq!(proposed(&profile), [], "the next address is not known");
    }
}
