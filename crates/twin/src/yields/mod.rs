//! Site yields, bound yields and spin yields, as `docs/harvest-abi.md` has them.
//!
//! Two forms: the short one where the flags and some register are dead, and a general one, which makes room first. To add
//! one that is cheaper somewhere: a function beside [`short`], a case in [`assemble_yield`], its listing in the document.
//!
//! What is done only if somebody else is there, or the budget used up, lies out of the way in the piece's cold part: a jump
//! over it cost a search loop of six instructions a tenth of its pace. But the sites of scavengers have it in line, since they
//! nearly always find somebody. Those of primaries are switched on only while there are guests: to ask each time cost a search in a
//! tree a twentieth.

pub(crate) mod assembler;
pub(crate) mod bounds;
pub(crate) mod hoisted_saves;
pub(crate) mod leaves;
pub(crate) mod load_store_balance;
pub(crate) mod operands;
pub(crate) mod relays;
pub(crate) mod sunk_restores;
pub(crate) mod tls;

use crate::layout::insertions::{Part, Piece};
use crate::modes::mode::VectorWidth;
use crate::yields::assembler::{Assembler, Extent, Inert, Label, RAX, RSP, Register, assemble};
use crate::yields::load_store_balance::Traffic;
use crate::yields::relays::Thrown;
use crate::yields::sunk_restores::Loop;
use image::code::regs::{Flag, RegSet};
use runtime_abi::{area, context};
use twin_format::YieldKind;

/// What a yield is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Site,
    /// In a loop of a primary that only waits by turning round: to whom its own context names for that, and not counted.
    Spin,
    /// Taken when the budget is used up by so many cycles.
    Bound(u32),
}

/// What a site or spin yield stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetch {
    /// Prefetches, whose operands use only what is live; a spin yield has none.
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
pub(crate) struct Yield<'a> {
    pub kind: Kind,
    /// What is live before the instruction that follows.
    pub live: RegSet,
    /// What its slots hold already, RSP standing for the stack pointer: it is not stored again.
    pub held: RegSet,
    /// A dead register that holds the context already, and is to hold it behind the yield too.
    pub base: Option<Register>,
    /// The loop around it that leaves registers in their slots.
    pub left: Option<Loop>,
    /// Its code may hold who is next for a while: who takes a guest's state away meanwhile sees to it. A sibling's handlers do not.
    pub asks_once: bool,
    /// Of what slots hold, so much is stored again that loads do not outnumber stores.
    pub even: bool,
    /// What it stands for; of a bound yield: nothing.
    pub fetch: &'a Fetch,
    pub width: VectorWidth,
    /// What becomes of exceptions that are thrown at the instruction: where they land, its switch has no relay.
    pub thrown: Thrown,
    /// What the budget is set to by a bound yield; `None` in primaries.
    pub quantum: Option<u32>,
}

/// Registers in the order in which they are best used: the context comes back in `rax`, and the last ones take longer
/// instructions.
const PREFERRED: [Register; 15] = [0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 14, 15, 13, 12];

/// Registers that may hold the context throughout a loop: not `rax`, in which it comes back, and in which the general form works.
pub(crate) fn bases() -> impl Iterator<Item = Register> {
    PREFERRED.into_iter().filter(|&register| register != RAX)
}

/// A register that is dead, but for those in `not`.
pub(crate) fn dead(live: RegSet, not: RegSet) -> Option<Register> {
    PREFERRED.into_iter().find(|&register| !(live | not).contains(RegSet::general(register)))
}

pub(crate) fn flags_live(live: RegSet) -> bool {
    live.meets(RegSet::ARITHMETIC_FLAGS)
}

impl Yield<'_> {
    /// The word of the context that says who is next.
    fn next(&self) -> i32 {
        if self.kind == Kind::Spin { context::SPIN } else { context::NEXT }
    }

    /// Live general registers that have a slot.
    fn general(&self) -> impl Iterator<Item = Register> {
        let live = self.live;
        (0..16).filter(move |&register| register != RSP && live.contains(RegSet::general(register)))
    }

    /// Those of them that are stored.
    fn stored(&self) -> impl Iterator<Item = Register> {
        let left_out = self.held - self.again();
        self.general().filter(move |&register| !left_out.contains(RegSet::general(register)))
    }

    /// What is stored though its slot holds it.
    fn again(&self) -> RegSet {
        if !self.even || self.kind != Kind::Site {
            return RegSet::EMPTY;
        }
        let left = self.left.map_or(RegSet::EMPTY, |left| left.registers);
        let count = |not: RegSet| {
            let loaded = |&register: &Register| !not.contains(RegSet::general(register));
            self.general().filter(loaded).count() as u32
        };
        let vectors = (0..32).filter(|&number| self.live.meets(RegSet::xmm(number))).count() as u32;
        let asks = 1 + u32::from(!self.asks_once) + u32::from(self.base.is_none());
        let passes = u32::from(self.quantum.is_none());
        let stack = u32::from(!self.held.contains(RegSet::general(RSP)));
        // Besides registers: where to go on, the stack pointer, and the instruction itself; where to go on, and who is current.
        let traffic = Traffic {
            loads: 3 + asks + passes + vectors + count(left),
            stores: 2 + stack + passes + vectors + count(self.held),
        };
        traffic.evened_with(self.held & ((self.live | RegSet::general(RSP)) - left))
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

    /// A register that holds who is next from where that is asked up to the switch, so that it is loaded once: what a core can have under
    /// way ends with its places for loads, and a tenth of all steps went with two more at each switch on Zen 4.
    fn holds_next(&self, base: Register) -> Option<Register> {
        let asks = self.asks_once && !self.is_cold() && base != RAX;
        asks.then(|| dead(self.live, RegSet::general(base) | RegSet::general(RAX))).flatten()
    }

    /// From "all but `base` and `free` is saved, `base` is the context" to "back again, the context in rax". `next` holds who is next already.
    fn switch(&self, asm: &mut Assembler, base: Register, free: Register, next: Option<Register>) {
        let resume = asm.label();
        self.vectors(asm, true, base);
        if !(self.held - self.again()).contains(RegSet::general(RSP)) {
            asm.store(base, context::RSP, RSP);
        }
        asm.load_place(free, resume);
        asm.store(base, context::RIP, free);
        match next {
            Some(next) => asm.copy(RAX, next),
            None => asm.load(RAX, base, self.next()),
        }
        asm.store_area(area::CUR, RAX);
        let jump = asm.spot();
        asm.jump_through(RAX, context::RIP);
        if let Some(left) = self.left {
            let registers = (0..16).filter(|&register| left.registers.contains(RegSet::general(register)));
            let bits = registers.fold(0, |bits, register| bits | 1 << register);
            asm.note_left(bits, left.first as u32, left.behind as u32);
        }
        asm.place(resume);
        match self.kind {
            Kind::Site => asm.list(YieldKind::Site, jump, &self.fetch.origins),
            Kind::Spin => asm.list(YieldKind::Spin, jump, &self.fetch.origins),
            Kind::Bound(_) => {}
        }
    }

    /// Everything but rax, the context being there.
    fn restore(&self, asm: &mut Assembler) {
        if let Some(base) = self.base.filter(|&base| base != RAX) {
            asm.copy(base, RAX);
        }
        asm.load(RSP, RAX, context::RSP);
        let left = self.left.map_or(RegSet::EMPTY, |left| left.registers);
        let loaded = |&register: &Register| register != RAX && !left.contains(RegSet::general(register));
        for register in self.general().filter(loaded) {
            asm.load(register, RAX, context::slot(register as u8));
        }
        self.vectors(asm, false, RAX);
    }

    /// A primary passes by while it is counted without guests.
    fn pass_by(&self, asm: &mut Assembler, to: Label) {
        if self.quantum.is_none() && self.kind == Kind::Site {
            asm.decrement_area(area::PASSES);
            asm.jump_if_not_negative(to);
        }
    }

    /// Behind a bound yield.
    fn set_budget(&self, asm: &mut Assembler) {
        if let (Kind::Bound(_), Some(quantum)) = (self.kind, self.quantum) {
            asm.set_area32(area::BUDGET, quantum);
        }
    }

    /// What its switch does while it is off. Only sites of primaries have one. To load a dead register, or to compare, takes room for
    /// the result until it retires, which ends what a core looks ahead sooner: a twentieth of the pace of a search in a tree.
    fn switch_by(&self) -> Option<Inert> {
        if self.kind != Kind::Site || !self.is_cold() {
            return None;
        }
        if self.thrown != Thrown::Lands {
            return Some(Inert::Nothing(self.thrown));
        }
        let base = self.base.map_or(RegSet::EMPTY, RegSet::general);
        let register = dead(self.live, base).map(Inert::Loads);
        register.or_else(|| (!flags_live(self.live)).then_some(Inert::Compares))
    }

    fn labels(&self, asm: &mut Assembler) -> [Label; 3] {
        [(); 3].map(|()| if self.is_cold() { asm.label_across() } else { asm.label() })
    }

    /// Whether what it does if there is somebody lies out of the way.
    fn is_cold(&self) -> bool {
        self.kind != Kind::Site || self.quantum.is_none()
    }
}

/// Stores registers into their slots ahead of yields that find them there; `base` is dead, and holds the context behind it.
/// `known` says that it does so before.
pub(crate) fn store_ahead(base: Register, known: bool, registers: RegSet) -> Piece {
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

/// Loads what a loop left in its slots.
pub(crate) fn load_left(left: &Loop) -> Piece {
    assemble(|asm| {
        for register in (0..16).filter(|&register| left.registers.contains(RegSet::general(register))) {
            asm.load(register, left.base, context::slot(register as u8));
        }
    })
}

/// The code of a yield.
pub(crate) fn assemble_yield(wanted: &Yield<'_>) -> Piece {
    match wanted.base.or_else(|| dead(wanted.live, RegSet::EMPTY)) {
        Some(base) if !flags_live(wanted.live) => assemble(|asm| short(asm, wanted, base)),
        _ => assemble(|asm| general(asm, wanted)),
    }
}

/// With a dead register for the context, and dead flags.
fn short(asm: &mut Assembler, wanted: &Yield<'_>, base: Register) {
    let cold = wanted.is_cold();
    let [go, past, skip] = wanted.labels(asm);
    let next = wanted.holds_next(base);
    let ask = |asm: &mut Assembler| {
        if wanted.base.is_none() {
            asm.load_area(base, area::CUR);
        }
        match next {
            Some(next) => {
                asm.load(next, base, wanted.next());
                asm.compare(next, base);
            }
            None => asm.compare_with(base, base, wanted.next()),
        }
    };
    if let Kind::Bound(cost) = wanted.kind {
        asm.subtract_area32(area::BUDGET, cost);
        asm.jump_if_negative(go);
        asm.go_cold(true);
        asm.place(go);
        ask(asm);
        asm.jump_if_equal(skip);
    } else if let Some(by) = wanted.switch_by() {
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
    wanted.pass_by(asm, past);
    asm.append(&wanted.fetch.prefetches);
    for register in wanted.stored() {
        asm.store(base, context::slot(register as u8), register);
    }
    // Whatever is not the base is dead or saved by now.
    let free = if base == RAX { 1 } else { RAX };
    wanted.switch(asm, base, free, next);
    wanted.restore(asm);
    if wanted.live.contains(RegSet::general(RAX)) {
        asm.load(RAX, RAX, context::slot(RAX as u8));
    }
    asm.place(skip);
    wanted.set_budget(asm);
    if cold {
        asm.jump(past);
        asm.go_cold(false);
    }
    asm.place(past);
}

/// Anywhere: rax makes room for the context, and for the flags.
fn general(asm: &mut Assembler, wanted: &Yield<'_>) {
    let cold = wanted.is_cold();
    let rax_lives = wanted.live.contains(RegSet::general(RAX));
    let flags = flags_live(wanted.live);
    let [kept, flags_kept, _] = area::SCRATCH;
    let ([go, enough, past], alone) = (wanted.labels(asm), asm.label());
    let switched = wanted.switch_by();
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
        asm.compare_with(RAX, RAX, wanted.next());
    };
    if let Kind::Bound(cost) = wanted.kind {
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
    wanted.pass_by(asm, if switched.is_some() { alone } else { enough });
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
    wanted.set_budget(asm);
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
    if matches!(wanted.kind, Kind::Bound(_)) {
        wanted.set_budget(asm);
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
