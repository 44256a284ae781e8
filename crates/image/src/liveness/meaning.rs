//! Which registers may hold anything of use, forwards. A call by the ABI leaves garbage in what it may clobber but its
//! results; until somebody writes such a register again, nobody can mean anything by it, not even as the fifth argument
//! of a function that is passed two.

use super::{Foreign, Kind, Work, passed};
use crate::code::regs::{RegSet, abi};

impl Work<'_, '_> {
    /// For each unit, for each instruction, what may hold something of use before it; if `seen`, of what the ABI passes
    /// nothing in only what is seen to.
    pub(super) fn find_meaning(&self, seen: bool) -> Vec<Vec<RegSet>> {
        let blocks = &self.group.blocks;
        let mut entry: Vec<RegSet> =
            blocks.iter().map(|b| if b.is_entry { self.unseen(seen) } else { RegSet::EMPTY }).collect();
        let mut entered: Vec<bool> = blocks.iter().map(|block| block.is_entry).collect();
        let mut work: Vec<u32> = (0..blocks.len() as u32).filter(|&b| entered[b as usize]).rev().collect();
        while let Some(index) = work.pop() {
            let block = &blocks[index as usize];
            let mut state = entry[index as usize];
            for at in block.first as usize..block.end as usize {
                state = self.meaning_after(block.member as usize, at, state, seen);
            }
            for &next in &block.next {
                let (known, first) = (entry[next as usize], !entered[next as usize]);
                if first || !known.contains(state) {
                    entry[next as usize] = known | state;
                    entered[next as usize] = true;
                    work.push(next);
                }
            }
        }
        let mut all: Vec<Vec<RegSet>> =
            self.steps.iter().map(|steps| vec![RegSet::ALL; steps.len()]).collect();
        for (index, block) in blocks.iter().enumerate().filter(|(index, _)| entered[*index]) {
            let mut state = entry[index];
            let member = block.member as usize;
            let range = block.first as usize..block.end as usize;
            for (at, known) in range.clone().zip(&mut all[member][range]) {
                *known = state;
                state = self.meaning_after(member, at, state, seen);
            }
        }
        all
    }

    fn meaning_after(&self, member: usize, at: usize, before: RegSet, seen: bool) -> RegSet {
        let step = &self.steps[member][at];
        match step.kind {
            _ if self.overlaps(member) => RegSet::ALL,
            Kind::Plain | Kind::Return => before | step.writes,
            Kind::Unknown => RegSet::ALL,
            Kind::Foreign(call) => {
                let call = &self.foreign[call as usize];
                let keeps = call.keeps | self.preserved(member);
                (before - (abi::CLOBBERED - keeps)) | self.left_by(call, seen)
            }
            Kind::Local(unit) => before | self.left_by_unit(unit, seen),
        }
    }

    /// What holds something that comes from who knows where.
    fn unseen(&self, seen: bool) -> RegSet {
        if seen { abi::RETURNED | self.known.passed } else { RegSet::ALL }
    }

    fn left_by_unit(&self, unit: u32, seen: bool) -> RegSet {
        let summary = self.summary(unit);
        if seen { summary.may_hand_on } else { summary.may_write }
    }

    fn left_by(&self, call: &Foreign, seen: bool) -> RegSet {
        if call.by_another.is_none() {
            return call.by.results;
        }
        let back = if self.hands_back && !seen { passed::NO_RESULTS } else { RegSet::EMPTY };
        // It may keep what the next call by a pointer is passed.
        call.by.results | self.known.passed | RegSet::GENERAL | back
    }

    /// What the group, with all it calls, may leave something of use in.
    pub(super) fn may_write(&self, seen: bool) -> RegSet {
        use crate::code::groups::Exit;
        let of_target = |target| match self.module.unit_at(target) {
            _ if self.module.imports.stub(target).is_some() => abi::RETURNED,
            // Nobody can check what is not in the unwind table.
            Some(unit)
                if self.module.units[unit].start == target && self.module.units[unit].fde.is_some() =>
            {
                self.left_by_unit(unit as u32, seen)
            }
            _ => self.unseen(seen),
        };
        let written = self.written.iter().fold(RegSet::EMPTY, |all, &set| all | set);
        let steps = self.steps.iter().enumerate().flat_map(|(member, steps)| {
            steps.iter().enumerate().map(move |(index, step)| (self.insn(member, index).flow.is_call(), step))
        });
        let steps = steps.fold(written, |all, (calls, step)| {
            all | match step.kind {
                Kind::Unknown if calls => RegSet::ALL,
                Kind::Plain | Kind::Return => step.writes,
                Kind::Unknown => self.unseen(seen),
                Kind::Foreign(call) => self.left_by(&self.foreign[call as usize], seen),
                Kind::Local(unit) => self.left_by_unit(unit, seen),
            }
        });
        self.group.blocks.iter().flat_map(|block| &block.exits).fold(steps, |all, exit| {
            all | match *exit {
                Exit::Open | Exit::Lost => self.unseen(seen),
                Exit::To(target) => of_target(target),
            }
        })
    }
}
