//! The planner: candidates and prices in, a plan out. Pure.
//!
//! A load becomes a site where its expected gain, in cycles for each execution, is above
//! `--least-gain` (0 by default):
//!
//! ```text
//!  gain = P(miss) × miss ÷ misses at once − yield − pollution
//!       =   0.5   ×  350 ÷       1        −  11   −    20     = 144
//! ```
//!
//! Misses are served at once where the iterations of the loop do not depend on each other. P(miss)
//! is a prior of the load's class, as long as no profile is there. Loads of one group share one
//! yield. The same arithmetic over other choices gives the alternatives that a plan is compared
//! with.
//!
//! To add a choice: a variant of [`Choice`], its name, and which candidates it takes.

pub mod prices;

mod bounds;
mod figures;
mod gain;
mod priors;
mod subject;

pub use bounds::{Asked, bounds};
pub use figures::{ImpossiblePlan, MAX_ABSENCE_SECONDS, MAX_SLOWDOWN, check_figures};
pub use priors::{MissRates, Priors};
pub use subject::{Candidate, Function, Saved, Subject};

use crate::plan::prices::Pricing;
use gain::Worth;
use records::plan::{
    Alternative, Because, Bounds, Counts, Gain, LoadClass, Part, Plan, PlannedModule, Prices, Rejected, Role,
    Site, Spin,
};
use std::collections::HashMap;
use units::{Estimate, Quantity, Unit};

/// Which loads may become sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Those that are expected to pay.
    Paying,
    /// Of those, pointer chases only: the address comes from the same load, one iteration earlier.
    Chases,
    /// All in loops, whatever is expected of them.
    EveryLoad,
}

/// What is wanted of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Wishes {
    pub choice: Choice,
    pub coalesce: bool,
    /// Cycles that a site must be expected to gain.
    pub least_gain: f64,
    pub most_sites: Option<usize>,
    /// Whether guests also run where the primary busy-waits.
    pub spins: bool,
    /// Stated addresses of loads that do not become sites, whatever is expected of them.
    pub excluded: Vec<u64>,
    /// Whether rejected loads and alternative plans are wanted: only an explanation shows them.
    pub explained: bool,
    /// Parts that are left out; sites are chosen as if they were not.
    pub without: Vec<Part>,
    pub asked: Asked,
}

impl Wishes {
    /// Excluded addresses at which there is no candidate: they are of another program, or of
    /// another build of it.
    pub(crate) fn excluded_in_vain(&self, subjects: &[Subject]) -> impl Iterator<Item = u64> {
        let is_there = |address: u64, subject: &Subject| {
            subject.candidates.iter().any(|candidate| candidate.address == address)
                || subject.spins.iter().any(|spin| spin.place.address == address)
        };
        let excluded = self.excluded.iter().copied();
        excluded.filter(move |&address| !subjects.iter().any(|subject| is_there(address, subject)))
    }
}

impl Choice {
    pub const ALL: [Self; 3] = [Self::Paying, Self::Chases, Self::EveryLoad];

    pub fn name(self) -> &'static str {
        match self {
            Self::Paying => "paying",
            Self::Chases => "chases",
            Self::EveryLoad => "every-load",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Paying => "loads whose yield is expected to gain more than it costs",
            Self::Chases => "of those, pointer chases only",
            Self::EveryLoad => "every load in a loop, whatever its expected gain",
        }
    }

    fn takes(self, candidate: &Candidate, net: &Estimate, least_gain: f64) -> bool {
        let pays = net.value > least_gain;
        match self {
            Self::Paying => pays,
            Self::Chases => pays && candidate.class == LoadClass::Chased,
            Self::EveryLoad => candidate.loop_depth > 0,
        }
    }
}

/// The plan for these programs, with its alternatives where it is to be explained. Places have
/// neither instructions nor source lines yet.
pub fn plan(subjects: &[Subject], prices: &Prices, rates: &impl MissRates, wishes: &Wishes) -> Plan {
    let mut bounds = bounds(prices, &wishes.asked);
    if wishes.without.contains(&Part::Bounds) {
        bounds.without_quantum();
    }
    let sorted =
        |wishes: &Wishes| subjects.iter().map(|s| Sorted::of(s, prices, rates, wishes)).collect::<Vec<_>>();
    let weighed = |choice, coalesce| sorted(&Wishes { choice, coalesce, explained: false, ..wishes.clone() });
    let chosen = sorted(wishes);
    let alternatives = Choice::ALL
        .into_iter()
        .filter(|_| wishes.explained)
        .flat_map(|choice| [(choice, true), (choice, false)])
        .map(|(choice, coalesce)| {
            let is_chosen = (choice, coalesce) == (wishes.choice, wishes.coalesce);
            alternative(choice, coalesce, is_chosen, &weighed(choice, coalesce), prices, &bounds)
        })
        .collect();
    let modules =
        subjects.iter().zip(chosen).map(|(subject, sorted)| module(subject, sorted, wishes)).collect();
    let without = wishes.without.clone();
    Plan { prices: prices.clone(), bounds, without, modules, alternatives }
}

/// The candidates of a subject, sorted into sites and rejected loads.
struct Sorted {
    role: Role,
    sites: Vec<Site>,
    rejected: Vec<Rejected>,
}

impl Sorted {
    fn of(subject: &Subject, prices: &Prices, rates: &impl MissRates, wishes: &Wishes) -> Self {
        let mut sorted = Self { role: subject.role, sites: Vec::new(), rejected: Vec::new() };
        let explained = wishes.explained;
        let worth = Worth { prices, rates, content: &subject.content, miss: prices.miss() };
        let mut groups: Vec<Vec<&Candidate>> = Vec::new();
        let mut place_of: HashMap<u32, usize> = HashMap::new();
        for candidate in &subject.candidates {
            if let Some((because, why)) = barred(candidate, wishes) {
                if explained {
                    sorted.rejected.push(rejected(subject, candidate, because, why.to_owned(), None));
                }
            } else if !wishes.choice.takes(candidate, &worth.net(candidate), wishes.least_gain) {
                if explained {
                    let alone = worth.together(&[candidate]);
                    let why = gain::told(&alone, wishes.least_gain);
                    let rejected = rejected(subject, candidate, Because::DoesNotPay, why, Some(alone));
                    sorted.rejected.push(rejected);
                }
            } else {
                let at = *place_of.entry(candidate.group).or_insert(groups.len());
                if wishes.coalesce && at < groups.len() {
                    groups[at].push(candidate);
                } else {
                    groups.push(vec![candidate]);
                }
            }
        }
        for members in groups {
            let (first, others) = members.split_first().expect("a group has members");
            sorted.sites.push(Site {
                place: subject.place(first),
                class: first.class,
                prefetch: first.prefetch,
                loop_depth: first.loop_depth,
                with: others.iter().map(|other| other.address).collect(),
                live: first.saved.into(),
                gain: worth.together(&members),
            });
            for other in others.iter().filter(|_| explained) {
                let why = format!("the yield at {:#x} prefetches its line too", first.address);
                sorted.rejected.push(rejected(subject, other, Because::ServedByNeighbour, why, None));
            }
        }
        sorted.keep_the_best(wishes.most_sites);
        sorted.sites.sort_by_key(|site| site.place.address);
        sorted.rejected.sort_by_key(|rejected| rejected.place.address);
        sorted
    }

    /// Deeper loops run more often: they go first, then what gains more.
    fn keep_the_best(&mut self, most: Option<usize>) {
        let Some(most) = most.filter(|&most| most < self.sites.len()) else { return };
        self.sites.sort_by(|a, b| {
            b.loop_depth.cmp(&a.loop_depth).then(net(&b.gain).value.total_cmp(&net(&a.gain).value))
        });
        for site in self.sites.split_off(most) {
            self.rejected.push(Rejected {
                place: site.place,
                class: site.class,
                loop_depth: site.loop_depth,
                because: Because::Limit,
                why: format!("limited to {most} sites of each file (--most-sites)"),
                gain: Some(site.gain),
            });
        }
    }
}

fn rejected(
    subject: &Subject,
    candidate: &Candidate,
    because: Because,
    why: String,
    gain: Option<Gain>,
) -> Rejected {
    Rejected {
        place: subject.place(candidate),
        class: candidate.class,
        loop_depth: candidate.loop_depth,
        because,
        why,
        gain,
    }
}

fn barred(candidate: &Candidate, wishes: &Wishes) -> Option<(Because, &'static str)> {
    if wishes.excluded.contains(&candidate.address) {
        return Some((Because::Excluded, "excluded by --exclude"));
    }
    if candidate.without_twin {
        return Some((Because::NoTwin, "its function has no twin"));
    }
    candidate.same_line.then_some((Because::SameLine, "an earlier access fetched its cache line"))
}

fn net(gain: &Gain) -> Estimate {
    gain.net.estimate().unwrap_or(Estimate::exact(0.0))
}

fn module(subject: &Subject, sorted: Sorted, wishes: &Wishes) -> PlannedModule {
    let wanted = |spin: &&Spin| wishes.spins && !wishes.excluded.contains(&spin.place.address);
    let coalesced = sorted.sites.iter().map(|site| site.with.len()).sum();
    PlannedModule {
        path: subject.path.clone(),
        role: subject.role,
        build_id: subject.build_id.clone(),
        content: subject.content.clone(),
        size: subject.size,
        counts: Counts {
            functions: subject.functions,
            accesses: subject.accesses,
            candidates: subject.candidates.len(),
            sites: sorted.sites.len(),
            coalesced,
        },
        sites: sorted.sites,
        spins: subject.spins.iter().filter(wanted).cloned().collect(),
        rejected: sorted.rejected,
    }
}

fn alternative(
    choice: Choice,
    coalesce: bool,
    chosen: bool,
    weighed: &[Sorted],
    prices: &Prices,
    bounds: &Bounds,
) -> Alternative {
    let all = || weighed.iter().flat_map(|sorted| &sorted.sites);
    let gain = all().fold(Estimate::exact(0.0), |sum, site| gain::plus(sum, net(&site.gain)));
    let round = bounds::segment(prices).scaled(f64::from(bounds.ring));
    let cost = weighed
        .iter()
        .filter(|sorted| sorted.role != Role::Scavenger)
        .flat_map(|sorted| &sorted.sites)
        .fold(Estimate::exact(0.0), |sum, site| {
            let cost = prices.yield_cost(site.live.general.len() as u32, site.live.flags, site.live.vectors);
            gain::plus(sum, gain::plus(cost, round))
        });
    let shared = if coalesce { "" } else { ", each with its own yield" };
    Alternative {
        name: format!("{}{}", choice.name(), if coalesce { "" } else { "-alone" }),
        what: format!("{}{shared}", choice.what()),
        sites: all().count(),
        gain: Quantity::modelled(gain, Unit::Cycles),
        cost_if_all_hit: Quantity::modelled(cost, Unit::Cycles),
        chosen,
    }
}

#[cfg(test)]
mod tests;
