//! How often a load misses, by profiles of these programs.
//!
//! A profile says how long the core waits each time a load runs. That is what a yield can save,
//! whatever the level and however many misses overlap; the planner's arithmetic wants it as a
//! probability of a miss that costs what a miss costs here.
//!
//! ```text
//!   the core waits 120 cycles each time, a miss costs 350 cycles:  P(miss) = 0.34
//! ```
//!
//! Few samples beside a load leave that wide. A chain waits for its whole latency each time, and
//! what no L2 holds takes what the level behind it costs at least: the middle of what remains is
//! taken.

use super::priors::{MissRates, Priors};
use super::subject::{Candidate, Subject};
use model::prices::Pricing;
use records::plan::{Origin, Prices};
use records::profile::{Pattern, Profile, StallingLoad};
use std::collections::{HashMap, HashSet};
use units::Estimate;

/// What a load is assumed to wait that was not seen to wait while its file ran: nothing, or a few
/// samples of a run as long as people profile.
const NOT_SEEN: Estimate = Estimate { value: 0.0, lo: 0.0, hi: 0.01 };

/// Rates by profiles, and by [`Priors`] for files that they say nothing of.
#[derive(Clone, Debug, Default)]
pub struct ProfiledRates {
    files: HashMap<FileKey, Waits>,
    /// Paths of files that ran and hardly waited for any load.
    without_waits: HashSet<String>,
    /// What a miss costs, in cycles.
    miss_cycles: f64,
}

/// A file as profiles name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FileKey {
    BuildId(String),
    /// Of a file without a build id.
    Path(String),
}

/// Cycles that the core waits each time, by the load's stated address; `None` where the profile
/// does not tell.
type Waits = HashMap<u64, Option<Estimate>>;

impl ProfiledRates {
    pub fn of<'p>(profiles: impl IntoIterator<Item = &'p Profile>, prices: &Prices) -> Self {
        let miss_cycles = prices.miss().1.value;
        let mut files: HashMap<FileKey, Waits> = HashMap::new();
        let profiles: Vec<&Profile> = profiles.into_iter().collect();
        let loads = || profiles.iter().flat_map(|profile| &profile.loads);
        let functions = profiles.iter().flat_map(|profile| &profile.functions);
        let mut without_waits: HashSet<String> = functions.map(|function| function.module.clone()).collect();
        for load in loads() {
            without_waits.remove(&load.module);
            let key = match &load.build_id {
                Some(id) => FileKey::BuildId(id.clone()),
                None => FileKey::Path(load.module.clone()),
            };
            let each = waits(load, prices);
            // Of two profiles of one file, that one counts in which the load waits longer.
            let waits = files.entry(key).or_default().entry(load.address).or_insert(each);
            if each.map(|each| each.value) > waits.map(|waits| waits.value) {
                *waits = each;
            }
        }
        Self { files, without_waits, miss_cycles }
    }

    /// Whether any profile has seen this file run.
    pub(crate) fn knows(&self, subject: &Subject) -> bool {
        self.waits(subject).is_some() || self.without_waits.contains(&subject.path)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.without_waits.is_empty()
    }

    fn waits(&self, subject: &Subject) -> Option<&Waits> {
        self.files.get(&match &subject.build_id {
            Some(id) => FileKey::BuildId(id.clone()),
            None => FileKey::Path(subject.path.clone()),
        })
    }
}

/// Cycles that the core waits for a load each time.
fn waits(load: &StallingLoad, prices: &Prices) -> Option<Estimate> {
    let each = load.stall_each.estimate()?;
    let is_chain = load.pattern == Pattern::Chain && load.stride.estimate().is_none();
    let behind_l2 = prices.levels.get(2).and_then(|level| level.cycles.value());
    let Some(least) = behind_l2.filter(|_| is_chain && load.beyond_l2) else { return Some(each) };
    let most = each.hi.min(prices.miss().1.value);
    if each.value >= least || most < least {
        return Some(each);
    }
    Some(Estimate::new((least * most).sqrt(), least, each.hi))
}

impl MissRates for ProfiledRates {
    fn rate(&self, subject: &Subject, candidate: &Candidate) -> (Estimate, Origin) {
        if !self.knows(subject) {
            return Priors.rate(subject, candidate);
        }
        match self.waits(subject).and_then(|waits| waits.get(&candidate.address)) {
            None => (NOT_SEEN, Origin::Profile),
            Some(None) => Priors.rate(subject, candidate),
            Some(Some(each)) => {
                let share = |cycles: f64| (cycles / self.miss_cycles.max(1.0)).clamp(0.0, 1.0);
                (Estimate::new(share(each.value), share(each.lo), share(each.hi)), Origin::Profile)
            }
        }
    }
}
