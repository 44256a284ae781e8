//! What can be tried without the program's source, by what a profile says, and in which forms.

use crate::settings::form::Form;
use crate::settings::huge::{self, HugePages};
use crate::settings::own_lines::{self, Aligned};
use crate::settings::own_prefetches::{self, OwnPrefetches};
use crate::settings::placed::{self, Cpus};
use crate::settings::prefetched::{self, Prefetched, Walk};
use crate::settings::{allocators, tunables};
use records::host::Host;
use records::profile::{FindingKind, FunctionShare, Level, Pattern, Profile, StallingLoad};
use records::recipe::Setting;
use std::ffi::OsString;
use std::path::Path;
use units::Quantity;

/// A change. All but the last need nothing of the program's source; the last is the program's own.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Huge pages for what `malloc` hands out, and for what the program maps.
    HugePages(HugePages),
    /// Huge pages for code.
    HugeCode(HugePages),
    /// A prefetch ahead of a load whose addresses are a fixed step apart, or indexed by a load of
    /// which that is so.
    Prefetch(Prefetched),
    /// Prefetches that the program has by itself are left out.
    OwnPrefetches(OwnPrefetches),
    /// Cache lines of their own for what a site allocates.
    Align(Aligned),
    /// Threads on CPUs that are near to one another.
    Cpus(Vec<Cpus>),
    /// Memory spread over these nodes, a bit each.
    Nodes(u64),
    /// libc's `malloc` keeps what was freed.
    KeptMemory,
    /// Allocators in the place of libc's: forms of one change, of which one is taken.
    Allocators(Vec<Setting>),
    /// What the program itself does otherwise when it gets further arguments.
    Variant { kind: FindingKind, says: String, arguments: Vec<OsString> },
}

/// A change, and which part of the time it could save at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub change: Change,
    pub could_save: f64,
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
/// Time in `malloc` and its relatives, and in page faults, from which another way to get memory
/// could make a program faster by as much as is kept.
const LEAST_ALLOCATING: f64 = 0.03;
/// Of a function's time, what its own prefetches might cost.
const COULD_COST: f64 = 0.1;
/// Code of less than this fills few of the entries that the TLB has for it.
const LEAST_CODE: u64 = 2 << 20;

/// What the figures of a profile propose to try on this machine, most promising first.
pub fn candidates(profile: &Profile, host: &Host) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = proposed(profile, host)
        .into_iter()
        .map(|change| Candidate { could_save: could_save(&change, profile), change })
        .collect();
    let allocating = allocating(profile) + share(&profile.summary.page_faults);
    if allocating >= LEAST_ALLOCATING {
        all.push(Candidate { change: Change::KeptMemory, could_save: allocating });
        let installed = allocators::installed();
        if !installed.is_empty() {
            all.push(Candidate { change: Change::Allocators(installed), could_save: allocating });
        }
    }
    for own in own_prefetches::proposed(profile) {
        let could_save = COULD_COST * own.share;
        all.push(Candidate { change: Change::OwnPrefetches(own), could_save });
    }
    if has_much_code(profile) {
        let could_save = share(&profile.summary.computing);
        all.push(Candidate { change: Change::HugeCode(HugePages::of(host)), could_save });
    }
    all.sort_by(|one, other| other.could_save.total_cmp(&one.could_save));
    all
}

fn share(quantity: &Quantity) -> f64 {
    quantity.value().unwrap_or(0.0)
}

fn could_save(change: &Change, profile: &Profile) -> f64 {
    let memory = &profile.summary.by_level.beyond_l2;
    match change {
        Change::HugePages(_) => share(&profile.summary.page_faults) + share(memory),
        Change::Prefetch(load) => {
            let is_it = |known: &&StallingLoad| known.module == load.module && known.address == load.address;
            profile.loads.iter().find(is_it).map_or(0.0, |load| share(&load.stall))
        }
        Change::Align(site) => {
            let of_it = |object: &&records::profile::MemoryObject| object.name == site.object;
            profile.objects.iter().find(of_it).map_or(0.0, |object| share(&object.stall))
        }
        _ => share(&profile.summary.memory_bound),
    }
}

/// The time in libc's allocator, by its functions' names.
fn allocating(profile: &Profile) -> f64 {
    const NAMES: [&str; 12] = [
        "malloc",
        "free",
        "calloc",
        "realloc",
        "cfree",
        "_int_malloc",
        "_int_free",
        "malloc_consolidate",
        "unlink_chunk",
        "sysmalloc",
        "operator new",
        "operator delete",
    ];
    let is_libc = |module: &str| {
        Path::new(module).file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc.so"))
    };
    let is_it = |function: &&FunctionShare| {
        let name = function.function.as_deref();
        let named = name.is_some_and(|name| {
            NAMES.iter().any(|known| name.trim_start_matches("__libc_").starts_with(known))
        });
        named || (name.is_none() && is_libc(&function.module))
    };
    profile.functions.iter().filter(is_it).map(|function| share(&function.time)).sum()
}

/// Whether one of the files that the program ran code of has much of it.
fn has_much_code(profile: &Profile) -> bool {
    let modules: std::collections::BTreeSet<&str> =
        profile.functions.iter().map(|function| function.module.as_str()).collect();
    modules.into_iter().any(|module| {
        std::fs::metadata(module).is_ok_and(|about| about.is_file() && about.len() >= LEAST_CODE)
    })
}

/// What the figures of a profile propose to try, of the program's loads, pages, lines and CPUs.
pub fn proposed(profile: &Profile, host: &Host) -> Vec<Change> {
    let mut changes = Vec::new();
    let summary = &profile.summary;
    let memory = share(&summary.page_faults) + share(&summary.by_level.beyond_l2);
    if memory >= LEAST_MEMORY {
        changes.push(Change::HugePages(HugePages::of(host)));
    }
    let known = profile.loads.iter().filter_map(|load| ahead(load, profile)).take(MOST_PREFETCHED);
    changes.extend(known.map(Change::Prefetch));
    changes.extend(own_lines::proposed(profile).into_iter().map(Change::Align));
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
fn ahead(load: &StallingLoad, profile: &Profile) -> Option<Prefetched> {
    // What lies in L1 or L2 is there before a prefetch is, and each costs an instruction. Levels
    // are modelled, and probes may know better.
    let is_probed_far = load.from_memory.estimate().is_some_and(|share| share.lo >= LEAST_STALL);
    let is_near = matches!(load.level, Level::L1 | Level::L2) && !is_probed_far;
    if load.stall.value()? < LEAST_STALL || load.pattern == Pattern::Chain || is_near {
        return None;
    }
    let walk = match load.stride.value().map(|stride| stride as i64) {
        Some(stride) if stride.abs() >= LEAST_STRIDE => Walk::Steps(stride),
        // Prefetchers follow a small step: what is waited for is where another walk begins.
        Some(_) | None => Walk::Indexed,
    };
    Some(Prefetched {
        module: load.module.clone(),
        build_id: load.build_id.clone(),
        address: load.address,
        function: load.function.clone(),
        walk,
        hides_it: hides_it(load, profile),
        own_ahead: own_prefetches::ahead_of(Path::new(&load.module), load.address),
    })
}

/// How many turns of a load's loop take as long as the load does, by the time that its function has
/// the CPU and does not wait for this load.
fn hides_it(load: &StallingLoad, profile: &Profile) -> Option<f64> {
    let is_its = |function: &&FunctionShare| {
        function.module == load.module && function.function.is_some() && function.function == load.function
    };
    let function = profile.functions.iter().find(is_its)?.time.value()?;
    let (stall, each) = (load.stall.value()?, load.stall_each.value()?);
    let turn = (function - stall) / stall * each;
    let steps = load.latency.value()? / turn;
    (turn > 0.0 && steps.is_finite()).then_some(steps)
}

impl Change {
    pub(crate) fn kind(&self) -> FindingKind {
        match self {
            Self::HugePages(_) | Self::HugeCode(_) | Self::KeptMemory | Self::Allocators(_) => {
                FindingKind::HugePages
            }
            Self::Prefetch(_) | Self::OwnPrefetches(_) => FindingKind::Prefetch,
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
            Self::HugeCode(_) => "huge pages for code".to_owned(),
            Self::KeptMemory => "malloc keeps what was freed".to_owned(),
            Self::Allocators(_) => "another allocator".to_owned(),
            Self::Prefetch(load) => {
                let function = load.function.as_deref().unwrap_or("?");
                let own = match load.own_ahead {
                    Some(bytes) => format!(" (its own, {bytes} bytes ahead, comes too late)"),
                    None => String::new(),
                };
                format!("a prefetch ahead of the load at {:#x} in {function}{own}", load.address)
            }
            Self::OwnPrefetches(own) => {
                format!("the program's own prefetches in {}", own.function.as_deref().unwrap_or("?"))
            }
            Self::Align(site) => format!("cache lines of their own for {}", site.object),
            Self::Cpus(_) => "threads on CPUs near to one another".to_owned(),
            Self::Nodes(_) => "memory spread over the nodes".to_owned(),
            Self::Variant { says, .. } => says.clone(),
        }
    }

    /// The forms in which it can be tried.
    pub(crate) fn forms(&self) -> Result<Vec<Form>, String> {
        match self {
            Self::HugePages(huge) => huge::forms(*huge),
            Self::HugeCode(huge) => huge::for_code(*huge),
            Self::Prefetch(load) => prefetched::forms(load),
            Self::OwnPrefetches(own) => Ok(own_prefetches::forms(own)),
            Self::Align(site) => own_lines::forms(site),
            Self::Cpus(forms) => Ok(placed::on_cpus(forms)),
            Self::Nodes(nodes) => Ok(placed::over_nodes(*nodes)),
            Self::KeptMemory => Ok(vec![
                Form::new("no page is given back and asked for again", tunables::keeps_memory()),
                Form::new("each thread keeps more blocks", tunables::keeps_blocks()),
            ]),
            Self::Allocators(installed) => {
                let form = |setting: &Setting| Form::new(&crate::says(setting), vec![setting.clone()]);
                Ok(installed.iter().map(form).collect())
            }
            Self::Variant { arguments, .. } => {
                Ok(vec![Form { arguments: arguments.clone(), ..Form::default() }])
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
        let indexed =
            |changes: &[Change]| matches!(changes, [Change::Prefetch(load)] if load.walk == Walk::Indexed);
        assert!(indexed(&proposed(&profile)), "prefetchers follow such a step, but not to its begin");
        profile.loads[0].stride = Quantity::unresolved("it has none");
        assert!(indexed(&proposed(&profile)));
        profile.loads[0].stride = quantity(4096.0, Unit::Bytes);
        profile.loads[0].pattern = Pattern::Chain;
        assert_eq!(proposed(&profile), [], "the next address is not known");
    }
}
