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
//! is a prior of the load's class, or what a profile of the program tells. Loads of one group share
//! one yield. A guest that gives way where it hits loses its turn ([`gain::lost_turn`]), too. The
//! same arithmetic over other choices gives the alternatives that a plan is compared with.
//!
//! To add a choice: a variant of [`Choice`], its name, and which candidates it takes.

mod bounds;
mod figures;
mod gain;
mod priors;
mod profiled;
mod subject;

pub use bounds::{Asked, bounds};
pub use figures::{ImpossiblePlan, MAX_ABSENCE_SECONDS, MAX_SLOWDOWN, check_figures};
pub use priors::{MissRates, Priors};
pub use profiled::ProfiledRates;
pub use subject::{Candidate, Function, Saved, Subject};

use gain::Worth;
use model::prices::Pricing;
use records::plan::{
    Alternative, Because, Bounds, Counts, Gain, LoadClass, Part, Plan, PlannedModule, Prices, Rejected, Role,
    Site,
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
    let weighed: Vec<WeighedSubject<'_, _>> =
        subjects.iter().map(|subject| WeighedSubject::of(subject, prices, rates, bounds.ring)).collect();
    let chosen: Vec<Sorted> = weighed.iter().map(|subject| subject.sorted(wishes)).collect();
    let alternatives = Choice::ALL
        .into_iter()
        .filter(|_| wishes.explained)
        .flat_map(|choice| [(choice, true), (choice, false)])
        .map(|(choice, coalesce)| {
            let is_chosen = (choice, coalesce) == (wishes.choice, wishes.coalesce);
            let wishes = Wishes { choice, coalesce, explained: false, ..wishes.clone() };
            alternative(&wishes, is_chosen, &weighed, prices, &bounds)
        })
        .collect();
    let modules = subjects.iter().zip(chosen).map(|(subject, sorted)| module(subject, sorted)).collect();
    let without = wishes.without.clone();
    Plan { prices: prices.clone(), bounds, without, modules, alternatives }
}

/// The candidates of a subject, sorted into sites and rejected loads.
struct Sorted {
    sites: Vec<Site>,
    rejected: Vec<Rejected>,
}

/// A subject, and what each of its candidates gains with a yield of its own.
struct WeighedSubject<'a, R> {
    subject: &'a Subject,
    worth: Worth<'a, R>,
    nets: Vec<Estimate>,
}

/// Candidates that one yield serves: the first one's.
struct Group<'a> {
    members: Vec<&'a Candidate>,
    net: Estimate,
}

impl Group<'_> {
    fn first(&self) -> &Candidate {
        self.members[0]
    }
}

impl<'a, R: MissRates> WeighedSubject<'a, R> {
    /// `filled`: by how many guests a miss of the primary is to be filled.
    fn of(subject: &'a Subject, prices: &'a Prices, rates: &'a R, filled: u32) -> Self {
        let lost_turn = gain::lost_turn(subject.role, prices, bounds::segment(prices), filled);
        let worth = Worth { prices, rates, subject, miss: prices.miss(), lost_turn };
        let nets = subject.candidates.iter().map(|candidate| worth.net(&[candidate])).collect();
        Self { subject, worth, nets }
    }

    /// The candidates that are wanted, as the yields that serve them, by address; and those that
    /// are more than `most_sites`. Tells the others, with the reason.
    fn groups(
        &self,
        wishes: &Wishes,
        mut tell: impl FnMut(&Candidate, Option<(Because, &'static str)>),
    ) -> (Vec<Group<'a>>, Vec<Group<'a>>) {
        let mut found: Vec<Vec<&Candidate>> = Vec::new();
        let mut place_of: HashMap<u32, usize> = HashMap::new();
        for (candidate, net) in self.subject.candidates.iter().zip(&self.nets) {
            if let Some(bar) = barred(candidate, wishes) {
                tell(candidate, Some(bar));
            } else if !wishes.choice.takes(candidate, net, wishes.least_gain) {
                tell(candidate, None);
            } else {
                let at = *place_of.entry(candidate.group).or_insert(found.len());
                if wishes.coalesce && at < found.len() {
                    found[at].push(candidate);
                } else {
                    found.push(vec![candidate]);
                }
            }
        }
        let group = |members: Vec<&'a Candidate>| {
            // A plan counts what is no finite number as nothing.
            let net = Quantity::modelled(self.worth.net(&members), Unit::Cycles).estimate();
            Group { net: net.unwrap_or(Estimate::exact(0.0)), members }
        };
        let mut groups: Vec<Group<'_>> = found.into_iter().map(group).collect();
        let beyond = keep_the_best(&mut groups, wishes.most_sites);
        groups.sort_by_key(|group| group.first().address);
        (groups, beyond)
    }

    fn site(&self, group: &Group<'_>) -> Site {
        let (first, others) = group.members.split_first().expect("a group has members");
        Site {
            place: self.subject.place(first),
            class: first.class,
            prefetch: first.prefetch,
            loop_depth: first.loop_depth,
            with: others.iter().map(|other| other.address).collect(),
            live: first.saved.into(),
            gain: self.worth.together(&group.members),
        }
    }

    fn sorted(&self, wishes: &Wishes) -> Sorted {
        let (subject, explained) = (self.subject, wishes.explained);
        let mut rejects = Vec::new();
        let (groups, beyond) = self.groups(wishes, |candidate, bar| {
            if !explained {
                return;
            }
            rejects.push(if let Some((because, why)) = bar {
                rejected(subject, candidate, because, why.to_owned(), None)
            } else {
                let alone = self.worth.together(&[candidate]);
                let why = gain::told(&alone, wishes.least_gain);
                rejected(subject, candidate, Because::DoesNotPay, why, Some(alone))
            });
        });
        for group in groups.iter().chain(&beyond).filter(|_| explained) {
            for other in &group.members[1..] {
                let why = format!("the yield at {:#x} prefetches its line too", group.first().address);
                rejects.push(rejected(subject, other, Because::ServedByNeighbour, why, None));
            }
        }
        let most = wishes.most_sites.unwrap_or_default();
        for site in beyond.iter().map(|group| self.site(group)) {
            rejects.push(Rejected {
                place: site.place,
                class: site.class,
                loop_depth: site.loop_depth,
                because: Because::Limit,
                why: format!("limited to {most} sites of each file (--most-sites)"),
                gain: Some(site.gain),
            });
        }
        rejects.sort_by_key(|rejected| rejected.place.address);
        Sorted { sites: groups.iter().map(|group| self.site(group)).collect(), rejected: rejects }
    }
}

/// Deeper loops run more often: they go first, then what gains more. Returns the others.
fn keep_the_best<'a>(groups: &mut Vec<Group<'a>>, most: Option<usize>) -> Vec<Group<'a>> {
    let Some(most) = most.filter(|&most| most < groups.len()) else { return Vec::new() };
    groups.sort_by(|a, b| {
        let deeper = b.first().loop_depth.cmp(&a.first().loop_depth);
        deeper.then(b.net.value.total_cmp(&a.net.value))
    });
    groups.split_off(most)
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

fn module(subject: &Subject, sorted: Sorted) -> PlannedModule {
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
        spins: Vec::new(),
        rejected: sorted.rejected,
    }
}

fn alternative<R: MissRates>(
    wishes: &Wishes,
    chosen: bool,
    subjects: &[WeighedSubject<'_, R>],
    prices: &Prices,
    bounds: &Bounds,
) -> Alternative {
    let round = bounds::segment(prices).scaled(f64::from(bounds.ring));
    let (mut sites, mut gain, mut cost_if_all_hit) = (0, Estimate::exact(0.0), Estimate::exact(0.0));
    for subject in subjects {
        let (groups, _) = subject.groups(wishes, |_, _| {});
        sites += groups.len();
        for group in &groups {
            gain = gain::plus(gain, group.net);
            if subject.subject.role != Role::Scavenger {
                let saved = group.first().saved;
                let cost = prices.yield_cost(saved.general(), saved.flags, u32::from(saved.vectors));
                cost_if_all_hit = gain::plus(cost_if_all_hit, gain::plus(cost, round));
            }
        }
    }
    let Wishes { choice, coalesce, .. } = *wishes;
    let shared = if coalesce { "" } else { ", each with its own yield" };
    Alternative {
        name: format!("{}{}", choice.name(), if coalesce { "" } else { "-alone" }),
        what: format!("{}{shared}", choice.what()),
        sites,
        gain: Quantity::modelled(gain, Unit::Cycles),
        cost_if_all_hit: Quantity::modelled(cost_if_all_hit, Unit::Cycles),
        chosen,
    }
}

#[cfg(test)]
mod tests;
