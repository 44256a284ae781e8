//! "The twin of a is at t": said by one unit about another, and looked into when all units have
//! been read. Claims are sorted, so that each unit's stream is read once more at the most, however
//! many claims there are about it.

use crate::container::mapping::Mapping;
use crate::container::stream::{self, Item};
use crate::rule::{Findings, Rule};
use rayon::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    /// Address in the original.
    pub(crate) of: u64,
    /// Address in a twin.
    pub(crate) place: u64,
    pub(crate) from: u64,
    pub(crate) rule: Rule,
}

/// Checks every claim.
pub(crate) fn check(mapping: &Mapping<'_>, mut claims: Vec<Claim>, findings: &Findings) {
    claims.par_sort_unstable();
    claims.dedup();
    let groups: Vec<&[Claim]> = claims.chunk_by(|a, b| same_unit(mapping, a.of, b.of)).collect();
    groups.into_par_iter().for_each_init(Vec::new, |items: &mut Vec<Item>, group| {
        let Some(unit) = mapping.at(group[0].of) else { return };
        if stream::read(unit, items).is_err() {
            return; // told when the unit itself was looked at
        }
        for claim in group {
            let at = (claim.of - unit.start) as u32;
            let found = items.binary_search_by_key(&at, |item| item.at).ok();
            let place = found.map(|index| unit.twin + u64::from(items[index].place));
            if place != Some(claim.place) {
                let what =
                    format!("{:#x} is not the twin of {:#x}, where this must lead", claim.place, claim.of);
                findings.at(claim.rule, claim.from, what);
            }
        }
    });
}

fn same_unit(mapping: &Mapping<'_>, a: u64, b: u64) -> bool {
    mapping.at(a).is_some_and(|unit| unit.holds(b))
}
