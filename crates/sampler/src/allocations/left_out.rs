//! What was not told of allocations, in words.

use super::preload::{Preload, refused};
use super::recorded::Recorded;
use insight::samples::Tally;
use records::run::Refused;

/// What was not told of allocations.
pub(crate) fn of(preload: &Preload, recorded: &Recorded, tally: &Tally) -> Vec<Refused> {
    let mut left_out = Vec::new();
    let sampled: Vec<u32> = tally.sampled().map(|(id, _)| id).collect();
    let count_of = |what: &str, count: usize| format!("{what} {count} of {} processes", sampled.len());
    let own = sampled.iter().filter(|process| recorded.not_interposed.contains(process)).count();
    if own > 0 {
        left_out.push(refused(count_of("a malloc of its own has each of", own)));
    }
    let silent =
        sampled.iter().filter(|process| !tally.heaps.was_told_of(**process)).count().saturating_sub(own);
    if silent > 0 {
        let why =
            "linked statically, for another architecture, of another user, or with an environment of its own";
        left_out.push(refused(format!("{}: {why}", count_of("not known of", silent))));
    }
    let lost = preload.region.lost() + preload.region.passed_over + tally.heaps.left_out;
    if lost > 0 {
        left_out.push(refused(format!("{lost} records were lost, since they came too fast")));
    }
    if tally.heaps.share() < 1.0 {
        let share = 1.0 / tally.heaps.share();
        left_out.push(refused(format!(
            "small ones are known of one page in {share:.0}, at the end; their figures are estimates"
        )));
    }
    left_out
}
