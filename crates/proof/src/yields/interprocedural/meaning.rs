//! Forwards: which registers may hold anything of use. A call by the ABI leaves in what it may
//! change, its results aside, what nobody can count on; so it is until something is written there
//! again.

use super::Interprocedural;
use crate::liveness::body::{Last, Out};
use crate::liveness::set::{ALL, CLOBBERED, NO_RESULTS, RESULTS, Set};

impl<'a> Interprocedural<'a, '_, '_> {
    /// What each function, with all that it calls, may put something of use in, if so much may be
    /// put there where nobody knows what follows.
    pub(super) fn changes(&self, unknown: Set) -> Vec<Set> {
        let functions = &self.dead.functions;
        let mut all: Vec<Set> =
            functions.members.iter().map(|members| self.own_changes(members, unknown)).collect();
        let order: Vec<u32> = functions.levels().into_iter().flatten().collect();
        let mut changed = true;
        while changed {
            changed = false;
            for &function in &order {
                let calls = &functions.calls[function as usize];
                let more =
                    calls.iter().fold(all[function as usize], |more, &callee| more | all[callee as usize]);
                changed |= std::mem::replace(&mut all[function as usize], more) != more;
            }
        }
        all
    }

    pub(super) fn comes_back(&self, last: Last) -> bool {
        match last {
            Last::Return | Last::DeadEnd | Last::DeadCall(_) => false,
            Last::Call(other) => self.found.summaries[other as usize].returns,
            _ => true,
        }
    }

    /// What calls by pointers may leave where the ABI leaves nothing, for a function to hand it
    /// back; where only what is seen counts, and not all that may come from where nobody knows,
    /// none.
    fn back(&self, members: &[u32], unknown: Set) -> Set {
        let may = || {
            members
                .iter()
                .any(|&body| self.found.hands_back[self.dead.functions.of_body[body as usize] as usize])
        };
        if unknown == ALL && may() { NO_RESULTS } else { 0 }
    }

    fn own_changes(&self, members: &[u32], unknown: Set) -> Set {
        let mut all = 0;
        let back = self.back(members, unknown);
        for &body in members {
            let of_body = &self.dead.bodies[body as usize];
            let blocks = &of_body.blocks;
            for (block, call) in blocks.iter().zip(&self.found.calls[body as usize]) {
                all |= block.writes;
                all |= match block.last {
                    Last::Foreign => call.left,
                    Last::Pointer => call.left | back,
                    Last::Keeps => ALL,
                    _ => 0,
                };
                if !self.comes_back(block.last) {
                    continue;
                }
                for out in &of_body.outs[block.outs.0 as usize..block.outs.1 as usize] {
                    all |= match out {
                        Out::Anywhere => unknown,
                        Out::Import => RESULTS,
                        _ => 0,
                    };
                }
            }
            if blocks.is_empty() {
                all = ALL;
            }
        }
        all
    }

    /// For each block of a function, what may hold something of use at its begin, if so much does
    /// at entries, and functions make such changes.
    pub(super) fn meaning_of(&self, members: &'a [u32], at_entries: Set, changes: &[Set]) -> Vec<Set> {
        let function = self.function(members);
        let count = function.count();
        let mut state = vec![0; count];
        let mut reached = vec![false; count];
        let mut changed = true;
        let back = self.back(members, at_entries);
        for member in 0..members.len() {
            for (index, block) in function.body(member).blocks.iter().enumerate() {
                if block.is_entry {
                    let at = function.base(member) + index;
                    (state[at], reached[at]) = (at_entries, true);
                }
            }
        }
        while changed {
            changed = false;
            for (member, &body) in members.iter().enumerate() {
                for (index, block) in function.body(member).blocks.iter().enumerate() {
                    let at = function.base(member) + index;
                    if !reached[at] || !self.comes_back(block.last) {
                        continue;
                    }
                    let before = state[at] | block.writes;
                    let call = &self.found.calls[body as usize][index];
                    let after = match block.last {
                        Last::Plain | Last::Return | Last::DeadEnd | Last::DeadCall(_) => before,
                        Last::Foreign | Last::Pointer => {
                            let back = if block.last == Last::Pointer { back } else { 0 };
                            before & (!CLOBBERED | function.kept(at)) | call.left | back
                        }
                        Last::Keeps => ALL,
                        Last::Call(other) => {
                            before | changes[self.dead.functions.of_body[other as usize] as usize]
                        }
                    };
                    function.successors(member, index, |to| {
                        if !reached[to] || after & !state[to] != 0 {
                            (reached[to], state[to]) = (true, state[to] | after);
                            changed = true;
                        }
                    });
                }
            }
        }
        // Of what nothing is seen to lead to, nothing is known.
        for (state, _) in state.iter_mut().zip(reached).filter(|(_, reached)| !reached) {
            *state = ALL;
        }
        state
    }
}
