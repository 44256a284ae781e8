//! Site yields of guests that can be off, and budgets that are a context's own: what
//! `docs/harvest-abi.md` lists of them.

use crate::yields::assembler::{Assembler, Label};
use crate::yields::registers::{RAX, Register};
use crate::yields::{Purpose, YieldRequest};
use runtime_abi::{area, context};

impl YieldRequest<'_> {
    /// Of a site yield that can be off: what it takes from the budget then, and what that is set
    /// to.
    pub(super) fn off(&self) -> Option<(u32, u32)> {
        self.off_cost.zip(self.quantum).filter(|_| self.purpose == Purpose::Site)
    }

    /// Behind a comparison with SPIN: goes on behind this where another context is named, or the
    /// budget is used up; else at `past`. `held` holds the next context.
    pub(super) fn ask_budget(
        &self,
        asm: &mut Assembler,
        base: Register,
        held: Option<Register>,
        past: Label,
    ) {
        let Some((cost, quantum)) = self.off() else { return asm.jump_if_equal(past) };
        let go = asm.label();
        asm.jump_if_not_equal(go);
        asm.subtract_area32(area::BUDGET, cost);
        asm.jump_if_not_negative(past);
        asm.set_area32(area::BUDGET, area::budget_alone(quantum));
        // Where nobody else is in the ring, slots are not to be written: a quiet context has none.
        if let Some(next) = held {
            asm.load(next, base, context::NEXT);
            asm.compare(next, base);
            asm.jump_if_equal(past);
            take_quantum(asm, base, next);
            asm.load(next, base, context::NEXT);
        } else {
            asm.compare_with(base, base, context::NEXT);
            asm.jump_if_equal(past);
        }
        asm.place(go);
    }

    /// Where a bound yield's context goes on from a switch: rax holds it, and what is in other
    /// registers does not matter.
    pub(super) fn refill_budget(&self, asm: &mut Assembler) {
        if matches!(self.purpose, Purpose::Bound(_)) {
            take_quantum(asm, RAX, 1);
        }
    }
}

/// Sets the budget to what the context in `base` is to have; `free` is overwritten.
fn take_quantum(asm: &mut Assembler, base: Register, free: Register) {
    asm.load32(free, base, context::QUANTUM);
    asm.store_area32(area::BUDGET, free);
}

/// Loads the next context into rax, of a site yield that can be off; `free` may be used.
pub(super) fn load_next(asm: &mut Assembler, base: Register, free: Register) {
    let over = asm.label();
    asm.load(free, base, context::SPIN);
    asm.compare(free, base);
    asm.jump_if_not_equal(over);
    take_quantum(asm, base, free);
    asm.load(free, base, context::NEXT);
    asm.place(over);
    if free != RAX {
        asm.copy(RAX, free);
    }
}
