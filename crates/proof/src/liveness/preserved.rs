//! What functions may have to leave as they found it, though the ABI lets them change that. A
//! caller by a pointer or from another module is not in view, and may be of another convention; so
//! may the function, unless it shows that it is not.
//!
//! A function *destroys* what its instructions may change, or functions that it calls (and that
//! come back) or goes to in place of returning destroy, and what it does not give back as it found
//! it. It *takes* what it reads of what it found, otherwise than to push it; and takes it *for
//! itself* if it does not put that on the stack and get it from there. The conventions, what is
//! kept by them, and what shows that a function is of another one:
//!
//! | convention | keeps | unless the function |
//! |---|---|---|
//! | `preserve_most`, no caller-saved ones | general registers | destroys rcx, rsi, rdi, r8 or r9 |
//! | `preserve_all` | vectors and masks, too | destroys one of those, or of xmm4 to xmm15 |
//! | Microsoft's | rsi, rdi, xmm6 to xmm15 | destroys one of those; takes rsi or rdi for itself |
//! | `regcall` | xmm8 to xmm15 | destroys one of those; takes rsi or rdi, and not rax |
//!
//! So nothing is made of it that a function does not touch a register: that may be on purpose.
//! Where it is not known of a function that calls by pointers, or other modules, that it is of none
//! of these conventions, what it has to keep is kept by what it calls: else it would do that
//! itself, which would be seen.
//!
//! Taken for granted: no convention but these keeps more than the ABI; a function of `regcall` that
//! takes its fourth or fifth argument takes its first one; and results of `preserve_most` are those
//! of C.

use super::Code;
use super::body::{Body, Last, Out};
use super::order::Functions;
use super::set::{
    CALLEE_SAVED, CLOBBERED, FIRST_ARGUMENTS, FIRST_RESULT, FROM_4, FROM_6, FROM_8, GENERAL, Set,
    TEMPORARIES, VECTORS,
};
use super::solve::{Function, Summary};
use rayon::prelude::*;

/// What is read of what was found.
#[derive(Clone, Copy, Default)]
pub(crate) struct Taken {
    all: Set,
    for_itself: Set,
}

impl Taken {
    pub(crate) fn may_be_regcall(self) -> bool {
        self.all & FIRST_ARGUMENTS == 0 || self.all & FIRST_RESULT != 0
    }
}

/// A body by itself.
struct Own {
    written: Set,
    given_back: Set,
    taken: Taken,
    calls: Vec<u32>,
}

fn kept(destroyed: Set, taken: Taken) -> Set {
    let intact = |set: Set| destroyed & set == 0;
    let mut kept = 0;
    if intact(TEMPORARIES) {
        kept |= GENERAL & !CALLEE_SAVED;
        kept |= if intact(FROM_4) { VECTORS } else { 0 };
    }
    if intact(FIRST_ARGUMENTS | FROM_6) && taken.for_itself & FIRST_ARGUMENTS == 0 {
        kept |= FIRST_ARGUMENTS | FROM_6;
    }
    if intact(FROM_8) && taken.may_be_regcall() {
        kept |= FROM_8;
    }
    kept
}

/// For each body, what callers that are not in view may want back.
pub(crate) fn of(
    code: &Code<'_, '_>,
    bodies: &[Body],
    functions: &Functions,
    summaries: &[Summary],
) -> Vec<Set> {
    let own = |members: &Vec<u32>| Function::new(members, bodies).own(code, summaries);
    let own: Vec<Vec<Own>> = functions.members.par_iter().with_min_len(32).map(own).collect();
    let order: Vec<u32> = functions.levels().into_iter().flatten().collect();
    let mut destroyed: Vec<Set> = vec![0; bodies.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &function in &order {
            let members = &functions.members[function as usize];
            for (&body, own) in members.iter().zip(&own[function as usize]) {
                let all = own.calls.iter().fold(own.written, |all, &to| all | destroyed[to as usize]);
                let all = all & !own.given_back;
                changed |= std::mem::replace(&mut destroyed[body as usize], all) != all;
            }
        }
    }
    let mut found = vec![0; bodies.len()];
    for (members, own) in functions.members.iter().zip(&own) {
        for (&body, own) in members.iter().zip(own) {
            found[body as usize] = kept(destroyed[body as usize], own.taken);
        }
    }
    found
}

impl Function<'_> {
    /// The bodies one by one; if one alone is called, and all others are its parts, all together.
    fn own(&self, code: &Code<'_, '_>, summaries: &[Summary]) -> Vec<Own> {
        let taken = self.taken(code);
        let given_back = self.forwards(summaries).given_back | CALLEE_SAVED;
        let of = |member: usize| {
            let body = self.body(member);
            let called = body.blocks.iter().filter_map(|block| match block.last {
                Last::Call(other) if summaries[other as usize].returns => Some(other),
                _ => None,
            });
            let gone_to = body.outs.iter().filter_map(|out| match *out {
                Out::Tail(other) if summaries[other as usize].returns => Some(other),
                _ => None,
            });
            let calls = called.chain(gone_to).collect();
            Own { written: body.written, given_back, taken, calls }
        };
        let mut all: Vec<Own> = (0..self.members.len()).map(of).collect();
        if all.len() > 1 && self.only_start(code).is_some() {
            let written = all.iter().fold(0, |written, own| written | own.written);
            let mut calls: Vec<u32> = all.iter().flat_map(|own| own.calls.iter().copied()).collect();
            calls.sort_unstable();
            calls.dedup();
            for own in &mut all {
                (own.written, own.calls) = (written, calls.clone());
            }
        }
        all
    }

    /// The block that the function begins with, if it is one.
    fn only_start(&self, code: &Code<'_, '_>) -> Option<usize> {
        let mut whole = (0..self.members.len()).filter(|&member| !code.is_part(self.members[member]));
        let member = whole.next().filter(|_| whole.next().is_none())?;
        Some(self.base(member) + self.body(member).block_at(0)? as usize)
    }

    /// What is read of what a caller left. Of several functions in one nothing is told.
    pub(crate) fn taken(&self, code: &Code<'_, '_>) -> Taken {
        let Some(start) = self.only_start(code) else { return Taken { all: Set::MAX, for_itself: 0 } };
        // What was found is there still on some way, before each block.
        let mut found = vec![0; self.count()];
        found[start] = Set::MAX;
        let (mut taken, mut saved, mut restored) = (0, 0, 0);
        let mut changed = true;
        while changed {
            changed = false;
            for member in 0..self.members.len() {
                for (index, block) in self.body(member).blocks.iter().enumerate() {
                    let before = found[self.base(member) + index];
                    taken |= block.takes & before;
                    let by_call = if block.last == Last::Plain { 0 } else { CLOBBERED };
                    let after = before & !(block.writes | by_call);
                    self.successors(member, index, |to| {
                        changed |= after & !found[to] != 0;
                        found[to] |= after;
                    });
                }
            }
        }
        for member in 0..self.members.len() {
            restored |= self.body(member).restored;
            saved |= self.body(member).blocks.iter().fold(0, |all, block| all | block.saves);
        }
        Taken { all: taken, for_itself: taken & !(saved & restored) }
    }
}
