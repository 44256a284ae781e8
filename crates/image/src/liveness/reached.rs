//! Which instructions tell something of a unit that is not relied on as a whole: those that control
//! comes to from starts of functions, by ways that are followed. What else was found in it, by jump
//! tables and by pointers in data, may belong to other functions; and a checker of copies does not
//! know it of functions that are not copied.

use crate::code::groups::{Group, RelyOn};
use crate::module::Module;

/// For each unit, for each instruction; empty where all of a unit is relied on.
pub(super) fn reached(module: &Module<'_>, group: &Group<'_>, relied_on: &RelyOn<'_>) -> Vec<Vec<bool>> {
    let (units, blocks) = (group.units, &group.blocks);
    if units.iter().all(|&unit| (relied_on.all_of)(unit as usize)) {
        return Vec::new();
    }
    let is_start = |block: &u32| {
        let block = &blocks[*block as usize];
        let unit = units[block.member as usize] as usize;
        block.first == 0 && block.is_entry && !module.units[unit].is_part
    };
    let mut work: Vec<u32> = (0..blocks.len() as u32).filter(is_start).collect();
    let mut seen = vec![false; blocks.len()];
    while let Some(index) = work.pop() {
        if !std::mem::replace(&mut seen[index as usize], true) {
            work.extend(&blocks[index as usize].next);
        }
    }
    let mut reached: Vec<Vec<bool>> = units
        .iter()
        .map(|&unit| {
            let all = (relied_on.all_of)(unit as usize);
            let known = module.decoded[unit as usize].insns.len();
            if all { Vec::new() } else { vec![false; known] }
        })
        .collect();
    for (block, _) in blocks.iter().zip(seen).filter(|(_, seen)| *seen) {
        let reached = &mut reached[block.member as usize];
        if !reached.is_empty() {
            reached[block.first as usize..block.end as usize].fill(true);
        }
    }
    reached
}

/// Which blocks may be come to with nothing overwritten: entries, and those that no known way leads
/// to, as the targets of jumps that are not relied on.
pub(super) fn entered(group: &Group<'_>) -> Vec<bool> {
    let blocks = &group.blocks;
    let mut entered: Vec<bool> = blocks.iter().map(|block| block.is_entry).collect();
    let mut seen = entered.clone();
    let mut work: Vec<u32> = (0..blocks.len() as u32).filter(|&block| seen[block as usize]).collect();
    for first in 0..blocks.len() {
        while let Some(index) = work.pop() {
            for &next in &blocks[index as usize].next {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    work.push(next);
                }
            }
        }
        if !seen[first] {
            (seen[first], entered[first]) = (true, true);
            work.push(first as u32);
        }
    }
    entered
}
