//! Which registers may hold anything of use, forwards. A call by the ABI leaves garbage in what it
//! may clobber but its results; until code writes such a register again, its value has no meaning,
//! not even as the fifth argument of a function that is passed two.

use super::runs::Run;
use super::step::{Foreign, Kind};
use super::work::Transfer;
use super::{Work, passed};
use crate::code::groups::Exit;
use crate::code::regs::{RegSet, abi};
use units::Svma;

impl Work<'_, '_> {
    /// For each run, what may hold something of use before it; if `seen`, of what the ABI passes
    /// nothing in only what is seen to.
    pub(super) fn find_meaning(&self, seen: bool) -> Vec<RegSet> {
        let (blocks, runs) = (&self.group.blocks, &self.view.runs);
        let mut each = Vec::with_capacity(runs.all().len());
        let mut transfers = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let mut whole = Transfer::NOTHING;
            for run in &runs.all()[runs.of_block(index)] {
                let run = self.meaning_after(block.member as usize, run, seen);
                whole = run.after(whole);
                each.push(run);
            }
            transfers.push(whole);
        }
        let mut entry: Vec<RegSet> =
            blocks.iter().map(|b| if b.is_entry { self.unseen(seen) } else { RegSet::EMPTY }).collect();
        let mut entered: Vec<bool> = blocks.iter().map(|block| block.is_entry).collect();
        let mut work: Vec<u32> = (0..blocks.len() as u32).filter(|&b| entered[b as usize]).rev().collect();
        while let Some(index) = work.pop() {
            let state = transfers[index as usize].apply(entry[index as usize]);
            for &next in &blocks[index as usize].next {
                let (known, first) = (entry[next as usize], !entered[next as usize]);
                if first || !known.contains(state) {
                    entry[next as usize] = known | state;
                    entered[next as usize] = true;
                    work.push(next);
                }
            }
        }
        let mut all = vec![RegSet::ALL; each.len()];
        for (index, _) in entered.iter().enumerate().filter(|(_, entered)| **entered) {
            let mut state = entry[index];
            for run in runs.of_block(index) {
                all[run] = state;
                state = each[run].apply(state);
            }
        }
        all
    }

    fn meaning_after(&self, member: usize, run: &Run, seen: bool) -> Transfer {
        let everything = Transfer { adds: RegSet::ALL, keeps: RegSet::EMPTY };
        let more = |adds| Transfer { adds, ..Transfer::NOTHING };
        match self.steps(member)[run.first as usize].kind {
            _ if self.overlaps(member) => everything,
            Kind::Plain | Kind::Return => more(run.writes),
            Kind::Unknown => everything,
            Kind::Foreign(call) => {
                let call = &self.foreign[call as usize];
                let keeps = call.keeps | self.preserved(member);
                Transfer { adds: self.left_by(call, seen), keeps: !(abi::CLOBBERED - keeps) }
            }
            Kind::Local(unit) => more(self.left_by_unit(unit, seen)),
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

    fn left_by_tail(&self, target: Svma, seen: bool) -> RegSet {
        if self.module.imports.stub(target).is_some() {
            return abi::RETURNED;
        }
        // Nobody can check what is not in the unwind table.
        self.known_unit(target).map_or_else(|| self.unseen(seen), |unit| self.left_by_unit(unit, seen))
    }

    /// What the group, with all it calls, may leave something of use in.
    pub(super) fn may_write(&self, seen: bool) -> RegSet {
        let view = self.view;
        let mut all = view.written.iter().fold(view.plain_writes, |all, &set| all | set);
        if view.has_unknown_call {
            all |= RegSet::ALL;
        }
        if view.has_unknown_end {
            all |= self.unseen(seen);
        }
        let foreign = self.foreign.iter().map(|call| self.left_by(call, seen));
        let local = view.callees.iter().map(|&unit| self.left_by_unit(unit, seen));
        let exits = view.exits.iter().map(|exit| match *exit {
            Exit::Open | Exit::Lost => self.unseen(seen),
            Exit::To(target) => self.left_by_tail(target, seen),
        });
        foreign.chain(local).chain(exits).fold(all, |all, set| all | set)
    }
}
