//! Yields: the code by which a thread leaves the program it runs and goes on with another one.
//!
//! What that code is, form by form and with examples, and why, stands in one place:
//! `docs/harvest-abi.md`, the contract with the runtime; offsets are constants of `runtime-abi`.
//! Here it is written. [`assemble_yield`] puts one yield together, of one of the two kinds
//! ([`Purpose`]):
//!
//! - [`short`] is for places where the flags and a register for the base (which holds the context)
//!   are dead; [`general`] serves everywhere.
//! - The rest of inserted code has files of its own: [`hoisted_saves`], [`sunk_restores`],
//!   [`bounds`], [`label_jumps`], [`leaves`] and [`tls`].
//!
//! To add a form that is cheaper somewhere: a function beside those two, a case in
//! [`assemble_yield`], its listing in `docs/harvest-abi.md`.

pub(crate) mod assembler;
pub(crate) mod bounds;
pub(crate) mod hoisted_saves;
pub(crate) mod label_jumps;
pub(crate) mod leaves;
pub(crate) mod load_store_balance;
pub(crate) mod operands;
pub(crate) mod registers;
pub(crate) mod sunk_restores;
pub(crate) mod tls;
mod vector_moves;

use crate::layout::insertions::{Part, Piece};
use crate::layout::thrown::ThrownTo;
use crate::modes::width::VectorWidth;
use crate::yields::assembler::{Assembler, Label, OffForm, assemble};
use crate::yields::load_store_balance::SwitchTraffic;
use crate::yields::registers::{RAX, RSP, Register, dead_register, flags_live};
use crate::yields::sunk_restores::SunkLoop;
use crate::yields::vector_moves::Extent;
use image::code::regs::{Flag, RegSet};
use runtime_abi::{area, context};

/// What a yield is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Site,
    /// Taken when the budget is used up; the number is the cost, in cycles, that it subtracts.
    Bound(u32),
}

/// What a site yield stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetch {
    /// Prefetches, whose operands use only what is live.
    pub prefetches: Part,
    /// Addresses of the instructions that it stands for: one for each prefetch, in their order.
    pub origins: Vec<u64>,
}

impl Fetch {
    /// Fetches for another load, too.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.prefetches.extend(&other.prefetches);
        self.origins.extend_from_slice(&other.origins);
    }
}

/// A yield to be written.
pub(crate) struct YieldRequest<'a> {
    pub purpose: Purpose,
    /// What is live before the instruction that follows.
    pub live: RegSet,
    /// Registers whose slots hold them already (RSP: the context's stack pointer), so that they are
    /// not saved.
    pub held: RegSet,
    /// The base, if a dead register holds the context already and is to hold it behind the yield
    /// too.
    pub base: Option<Register>,
    /// The loop around it whose restores are sunk behind it.
    pub sunk: Option<SunkLoop>,
    /// Threads that run it host guests: it is counted, and switched on and off if there is a form
    /// for that at this place. Else a register may hold the next context from the question up to
    /// the switch: the runtime replaces it when it captures a guest meanwhile, which hosts' signal
    /// handlers do not.
    pub hosts: bool,
    /// Some registers whose slots hold them are saved again, so that stores keep up with loads.
    pub balances: bool,
    /// What it stands for; of a bound yield: nothing.
    pub fetch: &'a Fetch,
    pub width: VectorWidth,
    /// Where an exception goes that is thrown at the instruction: if it lands in the unit, the
    /// switch has no relay.
    pub thrown: ThrownTo,
    /// Of which a bound yield makes the budget; `None` in primaries.
    pub quantum: Option<u32>,
}

impl YieldRequest<'_> {
    /// Live general registers that have a slot.
    fn general(&self) -> impl Iterator<Item = Register> {
        let live = self.live;
        (0..16).filter(move |&register| register != RSP && live.contains(RegSet::general(register)))
    }

    /// Those of them that are stored.
    fn stored(&self) -> impl Iterator<Item = Register> {
        let left_out = self.held - self.stored_for_balance();
        self.general().filter(move |&register| !left_out.contains(RegSet::general(register)))
    }

    /// Registers that are saved though their slots hold them.
    fn stored_for_balance(&self) -> RegSet {
        if !self.balances || self.purpose != Purpose::Site {
            return RegSet::EMPTY;
        }
        let left = self.sunk.map_or(RegSet::EMPTY, |left| left.registers);
        let count = |not: RegSet| {
            let loaded = |&register: &Register| !not.contains(RegSet::general(register));
            self.general().filter(loaded).count() as u32
        };
        let vectors = (0..32).filter(|&number| self.live.meets(RegSet::xmm(number))).count() as u32;
        let asks = 1 + u32::from(self.hosts) + u32::from(self.base.is_none());
        let passes = u32::from(self.hosts);
        let stack = u32::from(!self.held.contains(RegSet::general(RSP)));
        // Besides registers: loads of RIP, RSP and the instruction's own; stores of RIP and CUR.
        let traffic = SwitchTraffic {
            loads: 3 + asks + passes + vectors + count(left),
            stores: 2 + stack + passes + vectors + count(self.held),
        };
        traffic.balanced_with(self.held & ((self.live | RegSet::general(RSP)) - left))
    }

    fn vectors(&self, asm: &mut Assembler, store: bool, base: Register) {
        let high = if self.width == VectorWidth::Avx512 { 32 } else { 16 };
        for number in 0..high {
            let part = |set| self.live.meets(set);
            let extent = if self.width == VectorWidth::Avx512 && part(RegSet::zmm_upper(number)) {
                Extent::All
            } else if self.width >= VectorWidth::Avx && part(RegSet::ymm_upper(number)) {
                Extent::Half
            } else if part(RegSet::xmm(number)) {
                Extent::Low
            } else {
                continue;
            };
            asm.vector(store, number, extent, base, self.width);
        }
        if self.width == VectorWidth::Avx512 {
            for number in (0..8).filter(|&number| self.live.contains(RegSet::mask(number))) {
                asm.mask(store, number, base);
            }
        }
    }

    /// A register that holds the next context from the question up to the switch, so that it is
    /// loaded once. A core's places for loads limit how many misses are under way: on Zen 4, two
    /// loads more at each switch cost a tenth of all steps.
    fn holds_next(&self, base: Register) -> Option<Register> {
        let asks = !self.is_cold() && base != RAX;
        asks.then(|| dead_register(self.live, RegSet::general(base) | RegSet::general(RAX))).flatten()
    }

    /// The switch and the place where the context goes on. Before it, all but `base` and `free` is
    /// saved and `base` holds the context; behind it, rax does. `next` holds the next context
    /// already.
    fn switch(&self, asm: &mut Assembler, base: Register, free: Register, next: Option<Register>) {
        let resume = asm.label();
        self.vectors(asm, true, base);
        if !(self.held - self.stored_for_balance()).contains(RegSet::general(RSP)) {
            asm.store(base, context::RSP, RSP);
        }
        asm.load_place(free, resume);
        asm.store(base, context::RIP, free);
        match next {
            Some(next) => asm.copy(RAX, next),
            None => asm.load(RAX, base, context::NEXT),
        }
        asm.store_area(area::CUR, RAX);
        let jump = asm.spot();
        asm.jump_through(RAX, context::RIP);
        if let Some(left) = self.sunk {
            let registers = (0..16).filter(|&register| left.registers.contains(RegSet::general(register)));
            let bits = registers.fold(0, |bits, register| bits | 1 << register);
            asm.sunk_note(bits, left.first as u32, left.behind as u32);
        }
        asm.place(resume);
        match self.purpose {
            Purpose::Site => asm.list(jump, &self.fetch.origins),
            Purpose::Bound(_) => self.set_budget(asm, |quantum| quantum),
        }
    }

    /// Loads everything but rax, which holds the context.
    fn restore(&self, asm: &mut Assembler) {
        if let Some(base) = self.base.filter(|&base| base != RAX) {
            asm.copy(base, RAX);
        }
        asm.load(RSP, RAX, context::RSP);
        let left = self.sunk.map_or(RegSet::EMPTY, |left| left.registers);
        let loaded = |&register: &Register| register != RAX && !left.contains(RegSet::general(register));
        for register in self.general().filter(loaded) {
            asm.load(register, RAX, context::slot(register as u8));
        }
        self.vectors(asm, false, RAX);
    }

    /// A host passes by while its pace is counted without guests; to `to`.
    fn count_pass(&self, asm: &mut Assembler, to: Label) {
        if self.hosts {
            asm.decrement_area(area::PASSES);
            asm.jump_if_not_negative(to);
        }
    }

    /// What a bound yield makes of the quantum.
    fn set_budget(&self, asm: &mut Assembler, of: impl Fn(u32) -> u32) {
        if let (Purpose::Bound(_), Some(quantum)) = (self.purpose, self.quantum) {
            asm.set_area32(area::BUDGET, of(quantum));
        }
    }

    /// The instruction that stands in line while the yield is off. To load a dead register or to
    /// compare takes space for the result until it retires, so that the core looks less far ahead:
    /// a search in a tree lost a twentieth of its pace.
    fn off_form(&self) -> Option<OffForm> {
        if !self.hosts {
            return None;
        }
        if self.thrown != ThrownTo::Unit {
            return Some(OffForm::Nop(self.thrown));
        }
        let base = self.base.map_or(RegSet::EMPTY, RegSet::general);
        let register = dead_register(self.live, base).map(OffForm::LoadsDead);
        register.or_else(|| (!flags_live(self.live)).then_some(OffForm::ComparesDead))
    }

    fn labels(&self, asm: &mut Assembler) -> [Label; 3] {
        [(); 3].map(|()| if self.is_cold() { asm.label_across() } else { asm.label() })
    }

    /// Whether the switch lies in the cold part: only scavengers' sites have theirs in line.
    fn is_cold(&self) -> bool {
        self.purpose != Purpose::Site || self.hosts
    }
}

/// A hoisted save: stores registers into their slots, for the yields of the loop that follows.
/// `base` is dead before and holds the context behind it; `known`: it holds the context before,
/// too.
pub(crate) fn hoisted_save(base: Register, known: bool, registers: RegSet) -> Piece {
    assemble(|asm| {
        if !known {
            asm.load_area(base, area::CUR);
        }
        for register in (0..16).filter(|&register| registers.contains(RegSet::general(register))) {
            let slot = if register == RSP { context::RSP } else { context::slot(register as u8) };
            asm.store(base, slot, register);
        }
    })
}

/// The code of a yield.
pub(crate) fn assemble_yield(wanted: &YieldRequest<'_>) -> Piece {
    match wanted.base.or_else(|| dead_register(wanted.live, RegSet::EMPTY)) {
        Some(base) if !flags_live(wanted.live) => assemble(|asm| short(asm, wanted, base)),
        _ => assemble(|asm| general(asm, wanted)),
    }
}

/// The form for places where the flags and a register for the base are dead.
fn short(asm: &mut Assembler, wanted: &YieldRequest<'_>, base: Register) {
    let cold = wanted.is_cold();
    let [go, past, skip] = wanted.labels(asm);
    let next = wanted.holds_next(base);
    let ask = |asm: &mut Assembler| {
        if wanted.base.is_none() {
            asm.load_area(base, area::CUR);
        }
        match next {
            Some(next) => {
                asm.load(next, base, context::NEXT);
                asm.compare(next, base);
            }
            None => asm.compare_with(base, base, context::NEXT),
        }
    };
    let off = wanted.off_form();
    if let Purpose::Bound(cost) = wanted.purpose {
        asm.subtract_area32(area::BUDGET, cost);
        asm.jump_if_negative(go);
        asm.go_cold(true);
        asm.place(go);
        ask(asm);
        asm.jump_if_equal(skip);
    } else if let Some(by) = off {
        asm.switch(by);
        ask(asm);
        asm.jump_if_equal(past);
    } else if cold {
        ask(asm);
        asm.jump_if_not_equal(go);
        asm.go_cold(true);
        asm.place(go);
    } else {
        ask(asm);
        asm.jump_if_equal(skip);
    }
    wanted.count_pass(asm, past);
    asm.append(&wanted.fetch.prefetches);
    for register in wanted.stored() {
        asm.store(base, context::slot(register as u8), register);
    }
    // Every register but the base is dead or saved by now.
    let free = if base == RAX { 1 } else { RAX };
    wanted.switch(asm, base, free, next);
    wanted.restore(asm);
    if wanted.live.contains(RegSet::general(RAX)) {
        asm.load(RAX, RAX, context::slot(RAX as u8));
    }
    if matches!(wanted.purpose, Purpose::Bound(_)) {
        asm.jump(past);
    }
    asm.place(skip);
    wanted.set_budget(asm, area::budget_alone);
    if cold {
        asm.jump(past);
        asm.go_cold(false);
    }
    asm.place(past);
}

/// The form for any place: rax is kept in a scratch word, and then holds the context and the flags.
fn general(asm: &mut Assembler, wanted: &YieldRequest<'_>) {
    let cold = wanted.is_cold();
    let rax_lives = wanted.live.contains(RegSet::general(RAX));
    let flags = flags_live(wanted.live);
    let [kept, flags_kept, _] = area::SCRATCH;
    let ([go, enough, past], alone) = (wanted.labels(asm), asm.label());
    let switched = wanted.off_form();
    if let Some(by) = switched {
        asm.switch(by);
    }
    asm.append(&wanted.fetch.prefetches);
    if rax_lives {
        asm.store_area(kept, RAX);
    }
    if flags {
        asm.flags_to_rax();
        asm.store_area(flags_kept, RAX);
    }
    let ask = |asm: &mut Assembler| {
        asm.load_area(RAX, area::CUR);
        asm.compare_with(RAX, RAX, context::NEXT);
    };
    if let Purpose::Bound(cost) = wanted.purpose {
        asm.subtract_area32(area::BUDGET, cost);
        asm.jump_if_negative(go);
        asm.go_cold(true);
        asm.place(go);
        ask(asm);
        asm.jump_if_equal(alone);
    } else if switched.is_some() {
        ask(asm);
        asm.jump_if_equal(alone);
    } else if cold {
        ask(asm);
        asm.jump_if_not_equal(go);
        asm.go_cold(true);
        asm.place(go);
    } else {
        ask(asm);
        asm.jump_if_equal(enough);
    }
    wanted.count_pass(asm, if switched.is_some() { alone } else { enough });
    for register in wanted.stored().filter(|&register| register != RAX) {
        asm.store(RAX, context::slot(register as u8), register);
    }
    let free = 1;
    if rax_lives {
        asm.load_area(free, kept);
        asm.store(RAX, context::slot(RAX as u8), free);
    }
    if flags {
        asm.load_area(free, flags_kept);
        asm.store(RAX, context::FLAGS, free);
    }
    wanted.switch(asm, RAX, free, None);
    wanted.restore(asm);
    if flags {
        // The context is the one that runs now.
        asm.load(RAX, RAX, context::FLAGS);
        asm.flags_from_rax();
        if rax_lives {
            asm.load_area(RAX, area::CUR);
        }
    }
    if rax_lives {
        asm.load(RAX, RAX, context::slot(RAX as u8));
    }
    asm.jump(past);
    asm.place(alone);
    if matches!(wanted.purpose, Purpose::Bound(_)) {
        wanted.set_budget(asm, area::budget_alone);
        asm.jump(enough);
    }
    let put_back = |asm: &mut Assembler| {
        if flags {
            asm.load_area(RAX, flags_kept);
            asm.flags_from_rax();
        }
        if rax_lives {
            asm.load_area(RAX, kept);
        }
    };
    if switched.is_some() {
        put_back(asm);
        asm.jump(past);
        asm.go_cold(false);
    } else {
        asm.go_cold(false);
        asm.place(enough);
        put_back(asm);
    }
    asm.place(past);
}

/// The direction flag is clear at yields and stays so; the others count.
const _: () = assert!(Flag::Direction as u32 == 22);

#[cfg(test)]
mod examples;
