//! Results that the ABI knows nothing of, as callers are seen to read them.

use super::{Summary, Work};
use crate::groups::Groups;
use crate::module::Module;
use crate::regs::RegSet;
use rayon::prelude::*;
use std::collections::HashMap;

/// Registers (and flags) that callers are seen to read after calling a unit directly, although by the ABI a call leaves
/// nothing in them; handed on to what the unit jumps to in place of returning.
pub(super) fn unusual_results(
    module: &Module<'_>,
    groups: &Groups,
    summaries: &[Summary],
    precise: bool,
) -> HashMap<u32, RegSet> {
    let found: Vec<(u32, RegSet)> = groups
        .members
        .par_iter()
        .with_min_len(8)
        .flat_map_iter(|members| Work::new(module, members, summaries, precise).read_after_calls())
        .collect();
    let mut wanted: HashMap<u32, RegSet> = HashMap::new();
    let mut work = found;
    while let Some((unit, set)) = work.pop() {
        let whole = &groups.members[groups.of_unit[unit as usize] as usize];
        let known = wanted.entry(unit).or_default();
        if known.contains(set) {
            continue;
        }
        *known |= set;
        for &part in whole {
            for &target in &module.decoded[part as usize].jumps_out {
                if let Some(next) = module.unit_at(target) {
                    if !whole.contains(&(next as u32)) {
                        work.push((next as u32, set));
                    }
                }
            }
        }
    }
    wanted
}
