//! What is dead where: this crate's own liveness, for rule R7. Simple and on the side of "live": no control flow is
//! recovered beyond direct branches and listed jump tables, and whatever leaves a unit by another way needs everything.
//!
//! What is taken for granted, and bounded:
//! - *Calls of code without twins that are indirect, or go out of the module's units by a linkage stub*, follow the System V
//!   ABI: they read argument registers, and what they may write holds nothing afterwards.
//! - *Direct calls of units* read what the unit's own liveness says is read, and only what the unit writes on all ways
//!   is gone afterwards: so values kept over calls by `-fipa-ra` stay live. *Other direct calls* need everything.
//! - *Returns* need callee-saved registers, those of results, and of what the unit has not written on every way to the
//!   return, what some direct caller needs behind its call (anything, if code without twins calls or jumps there).
//!   Callers by way of pointers or of the linkage table know of no callee but by the ABI. Flags are dead at returns only if nowhere in the module flags are read
//!   straight behind a call.
//! - Summaries of units begin as "reads nothing, writes everything" and get worse from round to round; nothing is made of
//!   them before a round has changed none.
//!
//! [`effects`] says what an instruction reads and writes, [`flow`] carries that through a unit, [`set`] is the set.

pub(crate) mod effects;
pub(crate) mod flow;
pub(crate) mod set;

use crate::mapping::Mapping;
use flow::Summary;
use image::Image;
use rayon::prelude::*;
use set::{ALL, Set};

/// More rounds than calls are nested in any program looked at.
const ROUNDS: usize = 1000;

/// What is known about all units together.
pub(crate) struct Module {
    pub(crate) summaries: Vec<Summary>,
    /// For each unit, what its direct callers keep in registers that it may leave alone.
    pub(crate) kept: Vec<Set>,
    /// For each unit, the units where its exceptions land.
    pub(crate) lands: Vec<Vec<u32>>,
    /// Whether flags carry something out of functions.
    pub(crate) flags_return: bool,
    /// Whether a call in the unit may end at a landing pad.
    pub(crate) catches: Vec<bool>,
    /// Where linkage stubs are.
    pub(crate) stubs: Vec<(u64, u64)>,
}

impl Module {
    /// `None` if the rounds do not come to an end.
    pub(crate) fn of(
        original: &Image<'_>,
        mapping: &Mapping<'_>,
        catches: Vec<bool>,
        lands: Vec<Vec<u32>>,
        others: &[u64],
    ) -> Option<Self> {
        let stubs = original.sections().iter().filter(|section| section.name.starts_with(b".plt"));
        let count = mapping.units.len();
        let mut module = Self {
            summaries: vec![Summary::HOPED; count],
            kept: vec![0; count],
            lands,
            flags_return: false,
            catches,
            stubs: stubs
                .map(|section| (section.address, section.address.saturating_add(section.size)))
                .collect(),
        };
        // What is called from code without twins has callers that may keep anything.
        for unit in others.iter().filter_map(|&target| mapping.index_at(target)) {
            module.kept[unit] = ALL;
        }
        let mut needs: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut changed = vec![true; count];
        let mut asked = vec![false; count];
        let mut everything = true;
        for _ in 0..ROUNDS {
            let look = |room: &mut flow::Room, index: usize| {
                if !everything && !asked[index] && !needs[index].iter().any(|&unit| changed[unit as usize]) {
                    return None;
                }
                if crate::stream::read(&mapping.units[index], &mut room.items).is_err() {
                    return Some((Summary::default(), Vec::new(), true, Vec::new()));
                }
                let summary = room.follow(index, &flow::Around { original, mapping, module: &module });
                let (needs, keeps) = (std::mem::take(&mut room.needs), std::mem::take(&mut room.keeps));
                Some((summary, needs, room.reads_flags_behind_call, keeps))
            };
            let round: Vec<_> =
                (0..count).into_par_iter().with_min_len(32).map_init(flow::Room::default, look).collect();
            let mut flags_return = module.flags_return;
            asked.fill(false);
            for (index, found) in round.into_iter().enumerate() {
                changed[index] = false;
                let Some((summary, others, reads_flags, keeps)) = found else { continue };
                flags_return |= reads_flags;
                // Only ever towards more live, so that it ends.
                let merged = summary.and(module.summaries[index]);
                changed[index] = merged != module.summaries[index];
                module.summaries[index] = merged;
                needs[index] = others;
                for (unit, kept) in keeps {
                    let unit = unit as usize;
                    asked[unit] |= kept & !module.kept[unit] != 0;
                    module.kept[unit] |= kept;
                }
            }
            everything = flags_return != module.flags_return;
            module.flags_return = flags_return;
            if !everything && !changed.contains(&true) && !asked.contains(&true) {
                return Some(module);
            }
        }
        None
    }
}
