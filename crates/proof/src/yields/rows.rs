//! The rows of yields in the mapping (rules R12 and R14): each yield that inserted code has is
//! listed, as what it is, and nothing else is listed. What reads a run's counts goes by these rows,
//! so a row must name the instruction that it is about.
//!
//! A yield is recognised by what its code does ([`super::run`]), never by its row. Its row then has
//! to agree:
//!
//! ```text
//!           prefetcht0 [rdi]      ── first origin: the instruction right behind this piece
//!           prefetcht0 [rsi+8]    ── second origin: one further on with this operand
//!           …
//! place:    jmp [rax + RIP]
//! resume:   mov rsp, [rax + RSP]
//! ```
//!
//! Bound yields fetch nothing, and have no rows.

use super::run::{Done, RecognisedYield};
use super::{Buffers, Work, aboard};
use crate::container::stream::Item;
use crate::rule::Rule;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory};
use std::sync::atomic::Ordering;
use twin_format::YieldRow;

/// How many instructions behind a yield the loads may be that it fetches for.
const FARTHEST: usize = 256;

impl Work<'_, '_> {
    /// The rows of a piece's yields; R14 for what these fetch.
    pub(super) fn rows(&self, item: &Item, index: usize, buffers: &Buffers, done: &Done) {
        let is_bound = |yields: &RecognisedYield| yields.prefetches.is_empty();
        let listed = done.recognised.iter().filter(|yields| !is_bound(yields));
        let mut switch = done.switch;
        for yields in listed {
            // At most one yield of a piece has a switch.
            let switch = switch.take();
            let expected = YieldRow { place: yields.jump, resume: yields.resume, switch };
            match self.context.mapping.yields.at(yields.jump) {
                Some((row, origins)) if *row == expected => {
                    self.found.yields.fetch_add(1, Ordering::Relaxed);
                    self.origins(item, index, buffers, (yields, &done.prefetches), origins);
                }
                _ => self.wrong_at(
                    Rule::Mapping,
                    item,
                    yields.jump,
                    "a yield that is not listed, or is listed wrongly",
                ),
            }
        }
        let fetched = done.recognised.last().map_or(0, |last| last.prefetches.end);
        if let Some(fetch) = done.prefetches.get(fetched) {
            self.wrong_at(Rule::Prefetches, item, fetch.ip(), "a prefetch that no yield follows");
        }
        if let Some(switch) = switch {
            self.wrong_at(Rule::Mapping, item, switch, "a switch that belongs to no listed yield");
        }
    }

    /// Whether a yield stands for what its row names.
    fn origins(
        &self,
        item: &Item,
        index: usize,
        buffers: &Buffers,
        (yields, prefetches): (&RecognisedYield, &[Instruction]),
        origins: &[u64],
    ) {
        if origins.first() != Some(&buffers.instructions[index].ip()) {
            return self.wrong_at(
                Rule::Mapping,
                item,
                yields.jump,
                "a yield that is listed for another instruction than the one it stands before",
            );
        }
        let fetches = &prefetches[yields.prefetches.clone()];
        if origins.len() != fetches.len() {
            return self.wrong_at(
                Rule::Mapping,
                item,
                yields.jump,
                "a yield that is listed with another number of loads than it prefetches",
            );
        }
        for (fetch, &origin) in fetches.iter().zip(origins) {
            if !self.is_announced(fetch, index, origin, buffers) {
                let what = "prefetches an address that no later instruction uses, or through other registers";
                self.wrong_at(Rule::Prefetches, item, fetch.ip(), what);
            }
        }
    }

    /// R14: the instruction at `origin` stands further on, before control can go elsewhere, has the
    /// same operand, and what that hangs on does not change up to there.
    fn is_announced(&self, fetch: &Instruction, index: usize, origin: u64, buffers: &Buffers) -> bool {
        let mut factory = InstructionInfoFactory::new();
        for at in index..self.items.len().min(index + FARTHEST) {
            let insn = &buffers.instructions[at];
            if insn.ip() == origin {
                return aboard::same_operand(fetch, insn);
            }
            let follows = self.items.get(at + 1).is_some_and(|next| next.at == self.items[at].end());
            if insn.flow_control() != FlowControl::Next
                || !follows
                || aboard::changes(insn, fetch, &mut factory)
            {
                return false;
            }
        }
        false
    }
}
