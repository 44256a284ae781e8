//! Liveness with all that is known of who calls whom, and of what may be in registers at all.
//!
//! - Live is only what is [occupied](crate::occupied).
//! - Calls of other modules read what their [prototypes](crate::prototypes) say, where the name is known.
//! - At a return live are, besides callee-saved registers: results by the ABI, if callers nobody sees may enter the
//!   function ([`crate::exposed`]), else those of them that some direct caller has live behind its call; and of what this
//!   function never writes, what some direct caller has live there. Direct callers' needs are also those of what is gone to
//!   in place of returning.

use super::unusual::unusual_results;
use super::{Found, Liveness, Work, of_all, summaries};
use crate::exposed::Exposure;
use crate::groups::Groups;
use crate::module::Module;
use crate::occupied::Occupied;
use crate::regs::{RegSet, abi};
use rayon::prelude::*;

impl Liveness {
    /// Besides, what [`crate::occupied`], [`crate::exposed`] and [`crate::prototypes`] know: what nobody put anything into is not
    /// live, and live at returns is what direct callers need there and what others may, by the ABI.
    pub fn precise(module: &Module<'_>) -> Self {
        let groups = Groups::of(module);
        let summaries = summaries(module, &groups, true);
        let wanted = unusual_results(module, &groups, &summaries, true);
        let occupied = Occupied::of(module, &groups);
        let mut kept = vec![RegSet::ALL; module.units.len()];
        let mut round = 0;
        loop {
            let all: Vec<Found> = groups
                .members
                .par_iter()
                .with_min_len(8)
                .map(|members| {
                    let work = Work::new(module, members, &summaries, true);
                    let wanted = of_all(members, &|unit| wanted.get(&unit).copied().unwrap_or_default());
                    let kept = of_all(members, &|unit| kept[unit as usize]);
                    work.live(wanted, kept, occupied.is_exposed(members), Some(&occupied))
                })
                .collect();
            round += 1;
            if round == ROUNDS {
                return Self::gather(module, all);
            }
            kept = kept_by_callers(module, &groups, &occupied, &all);
        }
    }
}

/// How often what callers keep is looked for, by the liveness known so far. Each time less is found, and each is right.
const ROUNDS: usize = 2;

/// For each unit, what some direct caller has in registers behind its call, or may have.
fn kept_by_callers(module: &Module<'_>, groups: &Groups, occupied: &Occupied, all: &[Found]) -> Vec<RegSet> {
    let mut kept: Vec<RegSet> = occupied
        .exposures
        .iter()
        .map(|&exposure| if exposure == Exposure::Anything { RegSet::ALL } else { RegSet::EMPTY })
        .collect();
    let mut work: Vec<(u32, RegSet)> = all.iter().flat_map(|found| &found.behind_calls).copied().collect();
    for (members, found) in groups.members.iter().zip(all) {
        if occupied.is_exposed(members) {
            work.extend(found.tails.iter().map(|&tail| (tail, abi::RETURNED)));
        }
    }
    work.extend((0..module.units.len() as u32).map(|unit| (unit, kept[unit as usize])));
    let mut done = vec![RegSet::EMPTY; groups.members.len()];
    while let Some((unit, set)) = work.pop() {
        kept[unit as usize] |= set;
        let group = groups.of_unit[unit as usize] as usize;
        if !done[group].contains(set) {
            done[group] |= set;
            work.extend(all[group].tails.iter().map(|&tail| (tail, done[group])));
        }
    }
    kept
}
