//! What calls by pointers are passed, whatever their convention: all general registers; and of
//! vectors and masks in which the ABI passes nothing, those that the function may have written
//! since its last call by the ABI, and those in which *the module passes something* and which the
//! function may have got from its caller. A module does if somewhere in it an instruction writes
//! such a register, and nothing that is known to read it may follow up to some call or return: by
//! the ABI no compiler writes what nobody may read.

use super::Interprocedural;
use crate::liveness::body::Last;
use crate::liveness::set::{ALL, GENERAL, OTHERS, RESULTS, Set};
use crate::liveness::solve::Way;
use crate::liveness::unread::Until;
use rayon::prelude::*;

impl<'a> Interprocedural<'a, '_, '_> {
    /// Finds what may hold anything of use and what is read, if the module passes so much in
    /// another convention.
    pub(super) fn look_before_calls(&mut self, passed: Set) {
        let dead = self.dead;
        let members = &dead.functions.members;
        for (body, calls) in dead.bodies.iter().zip(&mut self.found.calls) {
            for (block, call) in body.blocks.iter().zip(calls) {
                call.left |= if block.last == Last::Pointer { passed | GENERAL } else { 0 };
            }
        }
        let all = |at_entries, unknown| -> Vec<Vec<Set>> {
            let changes = self.changes(unknown);
            let meaning = |members: &'a Vec<u32>| self.meaning_of(members, at_entries, &changes);
            members.par_iter().with_min_len(16).map(meaning).collect()
        };
        let (meaning, own) = (all(ALL, ALL), all(passed, RESULTS | passed));
        self.found.meaning = meaning;
        for (members, own) in members.iter().zip(own) {
            let mut own = own.into_iter();
            for &body in members {
                let calls = self.found.calls[body as usize].iter_mut();
                for ((block, call), own) in dead.bodies[body as usize].blocks.iter().zip(calls).zip(&mut own)
                {
                    if block.last == Last::Pointer {
                        call.passed |= GENERAL | (own | block.writes) & OTHERS;
                    }
                }
            }
        }
        for summary in &mut self.found.summaries {
            summary.reads = 0;
        }
        self.find_reads();
    }

    /// Vectors and masks in which the module passes something though the ABI does not.
    pub(super) fn passed_by_module(&self) -> Set {
        let functions = self.dead.functions.members.par_iter().with_min_len(16);
        functions.map(|members| self.written_for_others(members)).reduce(|| 0, |all, one| all | one)
    }

    fn written_for_others(&self, members: &'a [u32]) -> Set {
        let way = Self::way_by_pointers();
        self.function(members).unread(OTHERS, Until::CallOrReturn, &way, &self.found.summaries)
    }

    /// For each function, what it returns where the ABI returns nothing, or hands back.
    pub(super) fn returned(&self) -> Vec<Set> {
        let way = Self::way_by_pointers();
        let of = |(members, &hands_back): (&'a Vec<u32>, &bool)| {
            let function = self.function(members);
            let back = if hands_back { function.handed_back() } else { 0 };
            function.returned_unread(&way, &self.found.summaries) | back
        };
        let members = self.dead.functions.members.par_iter().with_min_len(16);
        members.zip(&self.found.hands_back).map(of).collect()
    }

    /// What is read for sure, or by the ABI.
    fn way_by_pointers() -> Way {
        Way { by_pointer: Way::READING.arguments | GENERAL, ..Way::READING }
    }
}
