//! Blocks in runs: straight pieces whose effect is the same in every pass, and between them single
//! steps whose effect hangs on what is known outside (calls, returns, what may be anything).
//!
//! ```text
//! mov rax, [rdi]     a run: reads rdi; overwrites rax, rcx
//! mov ecx, 1
//! call f             a step by itself: what it reads hangs on the summary of f
//! add rax, rcx       a run
//! ```
//!
//! So a pass over a group costs as much as there are calls in it, not instructions.

use super::step::{Kind, NO_PAD, NumberedStep, StepEffect};
use crate::code::groups::Group;
use crate::code::regs::RegSet;

/// Instructions of one block that follow each other: any number of plain ones, or one of another
/// kind.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Indices in the block's unit.
    pub(super) first: u32,
    pub(super) end: u32,
    /// The block that all of them may unwind to.
    pub(super) pad: u32,
    /// The general registers that an unwinder needs somewhere in it, and that it has not
    /// overwritten until there.
    pub(super) needed: u16,
    /// Plain instructions; otherwise a single one, whose effect hangs on more than itself.
    pub(super) is_plain: bool,
    /// Undecoded bytes may lead to its first instruction.
    pub(super) is_entered_unseen: bool,
    /// Read before they are overwritten in it.
    pub(super) reads: RegSet,
    /// Certainly overwritten.
    pub(super) kills: RegSet,
    pub(super) writes: RegSet,
}

/// The runs of a group.
#[derive(Default)]
pub(super) struct Runs {
    all: Vec<Run>,
    /// Where those of each block begin, and the last ones end.
    first: Vec<u32>,
    /// What runs put on the stack before they overwrite it, for those that do: by the number of the
    /// run, ascending.
    saves: Vec<(u32, RegSet)>,
}

impl Runs {
    /// For each unit of the group: its steps, their landing pads, whether its instructions overlap,
    /// and which of them undecoded bytes may lead to.
    pub(super) fn of(
        group: &Group<'_>,
        steps: &[Vec<NumberedStep>],
        pads: &[Vec<u32>],
        (overlaps, entered_unseen): (&[bool], &[Vec<u32>]),
        effects: &[StepEffect],
    ) -> Self {
        let mut runs = Self::default();
        for block in &group.blocks {
            runs.first.push(runs.all.len() as u32);
            let first_of_block = runs.all.len();
            let member = block.member as usize;
            let unseen = &entered_unseen[member];
            for index in block.first..block.end {
                let step = steps[member][index as usize];
                let &StepEffect { reads, kills, writes, saves } = &effects[step.effect as usize];
                let pad = pads[member].get(index as usize).copied().unwrap_or(NO_PAD);
                let is_plain = step.kind == Kind::Plain && !overlaps[member];
                let is_entered_unseen = !unseen.is_empty() && unseen.binary_search(&index).is_ok();
                let joins = runs.all.len() > first_of_block
                    && runs.all.last().is_some_and(|run| run.is_plain && is_plain && run.pad == pad)
                    && !is_entered_unseen;
                if !joins {
                    runs.all.push(Run {
                        first: index,
                        end: index,
                        pad,
                        needed: 0,
                        is_plain,
                        is_entered_unseen,
                        reads: RegSet::EMPTY,
                        kills: RegSet::EMPTY,
                        writes: RegSet::EMPTY,
                    });
                }
                let number = runs.all.len() as u32 - 1;
                let run = &mut runs.all[number as usize];
                let fresh = saves - run.kills;
                if !fresh.is_empty() {
                    match runs.saves.last_mut().filter(|(of, _)| *of == number) {
                        Some((_, all)) => *all |= fresh,
                        None => runs.saves.push((number, fresh)),
                    }
                }
                run.end = index + 1;
                run.reads |= reads - run.kills;
                run.needed |= step.needed & !(run.kills.0 as u16);
                run.kills |= kills;
                run.writes |= writes;
            }
        }
        runs.first.push(runs.all.len() as u32);
        runs.all.shrink_to_fit();
        runs
    }

    /// Those of all blocks, one block after the other.
    pub(super) fn all(&self) -> &[Run] {
        &self.all
    }
    /// The numbers of a block's runs.
    pub(super) fn of_block(&self, block: usize) -> std::ops::Range<usize> {
        self.first[block] as usize..self.first[block + 1] as usize
    }
    /// What is put on the stack, by the runs of these numbers and others of their block: number and
    /// registers.
    pub(super) fn saves_in(&self, runs: std::ops::Range<usize>) -> &[(u32, RegSet)] {
        let first = self.saves.partition_point(|&(run, _)| (run as usize) < runs.start);
        let end = self.saves.partition_point(|&(run, _)| (run as usize) < runs.end);
        &self.saves[first..end]
    }
}
