//! Decides before the start whether the primary's stalls are worth harvesting. Where they are not,
//! all programs run as they are, the scavengers under `SCHED_IDLE`: then nobody does worse than
//! without Gleaner.
//!
//! Pure: what is known of these programs in, the reason out. To add a reason: a function below, and
//! its place in [`reason_against`].

use records::profile::Profile;

/// What is known of the programs of a harvest before they start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The primary's profile: one that the user gave, or the one of the last `gleaner profile` of
    /// this program with these arguments.
    pub profile: Option<Profile>,
}

/// Scavengers can have no more than what the primary waits, and yields cost a few hundredths: it
/// must wait for more.
const WAITS_FROM_SHARE: f64 = 0.05;
/// A primary that sleeps now and then takes no guests (docs/contracts.md), and leaves its CPU to
/// others anyway: servers that are awake for 0.3 to 0.7 of the time answer later beside homes than
/// beside the originals under `SCHED_IDLE` (bench/records/served.md). What only reads its input
/// first sleeps less.
const AWAKE_FROM_SHARE: f64 = 0.9;
/// Shorter runs show too little.
const SHOWS_FROM_SECONDS: f64 = 1.0;

/// Why the stalls of a primary are not worth harvesting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Against {
    #[error("the primary has no place where guests may run")]
    NoYields,
    #[error("none of the scavengers can be its guest")]
    NoGuests,
    #[error("{0}")]
    Known(String),
}

/// Why the stalls of this primary are not worth harvesting; none where they are, or nothing is
/// known. `has_places`: the plan has some in the primary where guests may run; `has_guests`: some
/// scavenger can be one.
pub(crate) fn reason_against(known: &Known, has_places: bool, has_guests: bool) -> Option<Against> {
    if !has_guests {
        return Some(Against::NoGuests);
    }
    if !has_places {
        return Some(Against::NoYields);
    }
    let by_profile = known.profile.as_ref().and_then(|profile| waits_little(profile).or(sleeps(profile)));
    by_profile.map(Against::Known)
}

fn waits_little(profile: &Profile) -> Option<String> {
    let summary = &profile.summary;
    let (waits, ran) = (summary.memory_bound.estimate()?, summary.cpu_time.value()?);
    let little = waits.hi < WAITS_FROM_SHARE && ran >= SHOWS_FROM_SECONDS;
    little.then(|| format!("by its profile it waits for loads in {} of its CPU time", percent(waits.value)))
}

fn sleeps(profile: &Profile) -> Option<String> {
    let summary = &profile.summary;
    let (ran, elapsed) = (summary.cpu_time.value()?, summary.elapsed.value()?);
    // What other programs had of its CPU was no sleep.
    let awake = ran + summary.waited_for_cpu.value().unwrap_or(0.0);
    let sleeps = awake < AWAKE_FROM_SHARE * elapsed && elapsed >= SHOWS_FROM_SECONDS;
    sleeps.then(|| {
        format!("by its profile it ran in {} of the time and slept in the rest", percent(ran / elapsed))
    })
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Quantity, Unit};

    fn profile(waits: [f64; 2], ran: f64, elapsed: f64) -> Profile {
        let fixture = include_bytes!("../../records/fixtures/profile.v1.clock-three-loops.json");
        let mut profile = records::parse::<Profile>(fixture).expect("a fixture").body;
        let seconds = |value| Quantity::measured(Estimate::exact(value), Unit::Seconds);
        let [lo, hi] = waits;
        profile.summary.memory_bound =
            Quantity::measured(Estimate::new(f64::midpoint(lo, hi), lo, hi), Unit::Ratio);
        profile.summary.cpu_time = seconds(ran);
        profile.summary.elapsed = seconds(elapsed);
        profile
    }

    fn against(profile: Profile) -> Option<String> {
        match reason_against(&Known { profile: Some(profile) }, true, true) {
            Some(Against::Known(why)) => Some(why),
            _ => None,
        }
    }

    #[test]
    fn a_profile_tells_what_there_is_to_harvest() {
        assert_eq!(reason_against(&Known::default(), true, true), None);
        assert_eq!(reason_against(&Known::default(), false, true), Some(Against::NoYields));
        assert_eq!(reason_against(&Known::default(), true, false), Some(Against::NoGuests));
        assert_eq!(against(profile([0.6, 0.7], 2.0, 2.0)), None);
        assert_eq!(against(profile([0.01, 0.3], 2.0, 2.0)), None, "too little is known");
        assert_eq!(against(profile([0.01, 0.02], 0.1, 0.1)), None, "too short");
        let computes = against(profile([0.01, 0.02], 2.0, 2.0)).expect("it computes");
        assert!(computes.contains("1.5%"), "{computes}");
        let sleeps = against(profile([0.6, 0.7], 2.0, 8.0)).expect("it sleeps");
        assert!(sleeps.contains("25.0%"), "{sleeps}");
        assert!(against(profile([0.6, 0.7], 5.6, 8.0)).is_some(), "a server at 70% of what it can answer");
        let mut busy = profile([0.6, 0.7], 2.0, 8.0);
        busy.summary.waited_for_cpu = Quantity::measured(Estimate::exact(5.5), Unit::Seconds);
        assert_eq!(against(busy), None, "others had its CPU");
    }
}
