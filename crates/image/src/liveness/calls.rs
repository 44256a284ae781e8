//! Summaries of functions, from those of what they call.

use super::views::GroupViews;
use super::{Known, Summary};
use rayon::prelude::*;

/// How many groups are looked at before what was found is made known to those behind them.
const AT_ONCE: usize = 512;

/// The summaries of all units: callees first, and functions that call each other until nothing
/// changes. Those begin with the best that could be hoped for and only get worse, so what is left
/// in the end holds for all of them together.
pub(super) fn summaries(views: &GroupViews<'_, '_>, known: Known) -> Vec<Summary> {
    let GroupViews { module, groups, ref calls, ref levels, .. } = *views;
    let mut summaries = vec![Summary::UNKNOWN; module.units.len()];
    // Chunks are numbered. A group sees what was changed by chunks before its own.
    let mut chunk_number = 0u32;
    let mut looked_at = vec![0u32; groups.members.len()];
    let mut changed_by = vec![0u32; groups.members.len()];
    for level in levels {
        for &unit in level.iter().flat_map(|&group| &groups.members[group as usize]) {
            summaries[unit as usize] = Summary::HOPED;
        }
        let mut waiting = level.clone();
        while !waiting.is_empty() {
            for chunk in waiting.chunks(AT_ONCE) {
                chunk_number += 1;
                let found: Vec<(u32, Vec<(u32, Summary)>)> = chunk
                    .par_iter()
                    .with_min_len(8)
                    .map(|&group| {
                        let found = views.with(group as usize, &summaries, |work| {
                            work.seeing().knowing(known).summaries()
                        });
                        (group, found)
                    })
                    .collect();
                for (group, found) in found {
                    looked_at[group as usize] = chunk_number;
                    for (unit, summary) in found {
                        if std::mem::replace(&mut summaries[unit as usize], summary) != summary {
                            changed_by[group as usize] = chunk_number;
                        }
                    }
                }
            }
            let has_news = |group: &u32| {
                let seen = looked_at[*group as usize];
                calls[*group as usize].iter().any(|&callee| changed_by[callee as usize] >= seen)
            };
            waiting = level.iter().copied().filter(has_news).collect();
        }
    }
    summaries
}
