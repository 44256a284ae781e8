//! Runs one piece of inserted code on all ways at once (rules R13, R16 and R18). Jumps lead forward
//! only, so every instruction is looked at once, with what holds on all ways to it.
//!
//! A piece may have a cold part elsewhere. Its stretches are looked at in between, as if each stood
//! behind the jump that leads to it: what is in front of that jump is done with, what is behind it
//! is still to come, and a stretch ends where control can no longer be in it. A jump to what was
//! looked at is one back, in whichever part it is.

use super::accesses::{load, prefetch, set, store, sum, vector};
use super::label_jumps::{self, ComputedJump};
use super::ops::{Field, General, Op, RAX, When, Word, field, op};
use super::state::{ContextSlots, EarlierSaves, Flags, PieceSpot, State, SunkNote, Terms, Value};
use crate::container::mapping::Relay;
use crate::decode::{Opinion, Second};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use runtime_abi::area::budget_alone;
use runtime_abi::context;
use std::ops::Range;

/// What a piece does, besides leaving things as they were.
#[derive(Default)]
pub(crate) struct Done {
    /// What is known behind it.
    pub(crate) state: Option<State>,
    /// What it takes from the budget.
    pub(crate) charge: Option<u32>,
    pub(crate) prefetches: Vec<Instruction>,
    pub(crate) yields: u32,
    /// The byte that changes where it is switched on and off.
    pub(crate) switch: Option<u64>,
    /// Where it goes on behind a yield.
    pub(crate) resume: Option<u64>,
    /// Its yields, in the order of control.
    pub(crate) recognised: Vec<RecognisedYield>,
    /// Whether it reads what the jump behind it jumps to.
    loads_target: bool,
    /// Whether it goes on in the twin of a label, where there is one.
    pub(crate) jumps_to_labels: bool,
    /// What is said of registers that its yield leaves in their slots.
    pub(crate) note: Option<SunkNote>,
}

impl Done {
    /// For another piece.
    pub(crate) fn again(&mut self) {
        self.state = None;
        (self.charge, self.yields) = (None, 0);
        (self.loads_target, self.jumps_to_labels) = (false, false);
        (self.switch, self.resume, self.note) = (None, None, None);
        self.prefetches.clear();
        self.recognised.clear();
    }
}

/// A yield that was found in a piece.
#[derive(Clone, Debug)]
pub(crate) struct RecognisedYield {
    /// Its jump to the next context, and where it goes on.
    pub(crate) jump: u64,
    pub(crate) resume: u64,
    /// What it fetches, in [`Done::prefetches`]: whatever is fetched behind the yield before it.
    pub(crate) prefetches: Range<usize>,
}

/// Buffers for a piece.
#[derive(Default)]
pub(crate) struct Buffers {
    /// For each part, ways that wait for control to come by their place, ascending.
    waiting: [Vec<(u32, State)>; 2],
    second: Second,
}

/// A piece's bytes.
#[derive(Clone, Copy)]
pub(crate) struct Code<'c> {
    /// What stands before the instruction, and what lies behind the unit: bytes and address.
    pub(crate) parts: [(&'c [u8], u64); 2],
    /// Of switches in the first part.
    pub(crate) relays: &'c [Relay],
    /// The computed jump that it stands before, if its unit has a label table.
    pub(crate) jump: Option<ComputedJump>,
}

const HOT: usize = 0;
const COLD: usize = 1;

type Wrong = (u64, &'static str);

/// Runs `code`, where so much is `known` before it; says what is wrong, and where.
pub(crate) fn run(
    code: &Code<'_>,
    terms: &Terms,
    buffers: &mut Buffers,
    done: &mut Done,
    known: EarlierSaves,
) -> Result<(), Wrong> {
    let mut state = State::program();
    state.kept.general = known.slots;
    for (number, value) in state.general.iter_mut().enumerate() {
        if known.bases >> number & 1 == 1 {
            *value = Value::Context;
        } else if known.away >> number & 1 == 1 {
            *value = Value::Anything;
        }
    }
    let mut decoders =
        code.parts.map(|(bytes, address)| Decoder::with_ip(64, bytes, address, DecoderOptions::NONE));
    let Buffers { waiting, second } = buffers;
    let mut runner =
        Runner { code, terms, waiting, next: [0; 2], done, state: Some(state), away: known.away, said: None };
    runner.waiting.iter_mut().for_each(Vec::clear);
    let mut insn = Instruction::default();
    let mut part = HOT;
    // Where control is in the part before the instruction, while a cold stretch is looked at.
    let mut hot = None;
    loop {
        if part == COLD && runner.state.is_none() && runner.waiting[COLD].is_empty() {
            runner.state = hot.take();
            part = HOT;
        }
        let decoder = &mut decoders[part];
        runner.arrive(part)?;
        if !decoder.can_decode() {
            break;
        }
        decoder.decode_out(&mut insn);
        let bytes = &code.parts[part].0[runner.next[part] as usize..];
        runner.next[part] = decoder.position() as u32;
        let wrong = |what| (insn.ip(), what);
        if let Opinion::Contradicts(_) = second.of(bytes, &insn, false) {
            return Err(wrong("the decoders read inserted code differently"));
        }
        let op = (!insn.is_invalid()).then(|| runner.loads_target(&insn).or_else(|| op(&insn))).flatten();
        let op = op.ok_or(wrong("inserted code that is not one of the permitted instructions"))?;
        let Some(state) = runner.state.take() else {
            runner.unreached(op, &insn).map_err(wrong)?;
            continue;
        };
        runner.step(op, &insn, state).map_err(wrong)?;
        if part == HOT && !runner.waiting[COLD].is_empty() {
            hot = runner.state.take();
            part = COLD;
        }
    }
    let (bytes, address) = code.parts[COLD];
    if part == COLD || runner.next[COLD] as usize != bytes.len() {
        let at = address + u64::from(runner.next[COLD]);
        return Err((at, "a cold part that does not end, or that no jump leads to"));
    }
    runner.done.state = runner.state;
    Ok(())
}

struct Runner<'r> {
    code: &'r Code<'r>,
    terms: &'r Terms,
    waiting: &'r mut [Vec<(u32, State)>; 2],
    /// For each part, where what was not looked at begins.
    next: [u32; 2],
    done: &'r mut Done,
    /// Here, if control gets here at all.
    state: Option<State>,
    /// Registers that were left in their slots before.
    away: u16,
    /// The note that is being read: its registers, and where it begins to hold.
    said: Option<(u16, Option<u64>)>,
}

impl Runner<'_> {
    /// Takes along the ways that lead to the next instruction of a part.
    fn arrive(&mut self, part: usize) -> Result<(), Wrong> {
        let at = self.next[part];
        while let Some(&(to, state)) = self.waiting[part].first() {
            if to > at {
                break;
            }
            if to < at {
                let address = self.code.parts[part].1 + u64::from(to);
                return Err((address, "inserted code jumps between its instructions"));
            }
            match &mut self.state {
                Some(here) => here.meet(&state),
                None => self.state = Some(state),
            }
            self.waiting[part].remove(0);
        }
        Ok(())
    }

    #[expect(clippy::large_types_passed_by_value, reason = "it is kept")]
    fn wait(&mut self, to: PieceSpot, state: State) -> Result<(), &'static str> {
        if to.at < self.next[to.part] {
            return Err("inserted code jumps back, or out");
        }
        if to.part == COLD && self.leaves_away(&state) {
            return Err("continues in a cold part with registers in their slots alone, without a note");
        }
        let waiting = &mut self.waiting[to.part];
        let place = waiting.partition_point(|&(at, _)| at <= to.at);
        waiting.insert(place, (to.at, state));
        Ok(())
    }

    /// Whether a register that was left in its slot before is still there alone.
    fn leaves_away(&self, state: &State) -> bool {
        let away = |number: &General| self.away >> number & 1 == 1;
        (0..16).filter(away).any(|number| state.general[usize::from(number)] != Value::Program(number))
    }

    /// A note stands right before the place where the piece's yield goes on, and no way leads to
    /// it.
    fn unreached(&mut self, op: Op, insn: &Instruction) -> Result<(), &'static str> {
        let resumes = self.done.resume == Some(insn.next_ip());
        match (op, self.said) {
            (Op::Note(registers), None) if self.terms.scavenger => self.said = Some((registers, None)),
            (Op::Place(RAX, from), Some((registers, None))) => self.said = Some((registers, Some(from))),
            (Op::Place(RAX, to), Some((registers, Some(from)))) if resumes && self.done.note.is_none() => {
                self.done.note = Some(SunkNote { registers, from, to });
                self.said = None;
            }
            _ => return Err("unreachable inserted code"),
        }
        Ok(())
    }

    /// The place of an address: also behind the part before the instruction, but not behind the
    /// cold one.
    fn here(&self, address: u64) -> Option<PieceSpot> {
        let spot = |part: usize, most: usize| {
            let at = u32::try_from(address.checked_sub(self.code.parts[part].1)?).ok()?;
            (at as usize <= most).then_some(PieceSpot { part, at })
        };
        let [hot, cold] = self.code.parts.map(|(bytes, _)| bytes.len());
        spot(HOT, hot).or_else(|| spot(COLD, cold.checked_sub(1)?))
    }

    fn loads_target(&self, insn: &Instruction) -> Option<Op> {
        self.code.jump.as_ref()?.loads(insn, self.state.as_ref()?)
    }

    fn step(&mut self, op: Op, insn: &Instruction, mut state: State) -> Result<(), &'static str> {
        let scavenger = self.terms.scavenger;
        let general = |number: General| usize::from(number);
        match op {
            Op::SetBudget(_) | Op::Charge(_) | Op::TestGuest | Op::Leave if !scavenger => {
                return Err("an instruction for scavengers only");
            }
            Op::Sum { .. } | Op::Subtract(..) | Op::CompareNumber(..)
                if !scavenger && self.code.jump.is_none() =>
            {
                return Err("an instruction for scavengers, and before computed jumps, only");
            }
            Op::CompareBoth(..) if !scavenger => {
                return Err("an instruction for scavengers only");
            }
            Op::CompareBoth(a, b) => {
                if (state.general[general(a)], state.general[general(b)]) != (Value::Next, Value::Context) {
                    return Err("does not compare the next context with the current one");
                }
                state.flags = Flags::Alone;
            }
            Op::LoadArea(to, word) => {
                let value = match word {
                    Word::Current => state.current,
                    Word::Scratch(at) => state.scratch[usize::from(at)],
                };
                set(&mut state, to, value)?;
            }
            Op::StoreArea(word, from) => {
                let value = state.general[general(from)];
                match word {
                    // Capturing a guest takes its registers only.
                    Word::Scratch(_) if value == Value::Next => {
                        return Err("stores the next context in a scratch word");
                    }
                    Word::Scratch(at) => state.scratch[usize::from(at)] = value,
                    Word::Current if value == Value::Next => state.current = value,
                    Word::Current => return Err("makes a value current that is not the next context"),
                }
            }
            Op::SetBudget(number) => {
                let right = match (state.facts.switched, state.facts.alone) {
                    (true, false) => self.terms.quantum,
                    (false, true) => budget_alone(self.terms.quantum),
                    _ => return Err("sets the budget without a yield before"),
                };
                if number != right {
                    return Err("sets the budget to another value than the quantum asks for");
                }
                state.facts.budget = true;
            }
            Op::Charge(number) => {
                if i32::try_from(number).is_ok_and(|number| number > 0) && self.done.charge.is_none() {
                    self.done.charge = Some(number);
                    state.flags = Flags::Budget;
                } else {
                    return Err("does not subtract from the budget exactly once");
                }
            }
            Op::Pass if scavenger => {
                return Err("an instruction for those that host guests only");
            }
            Op::Pass if !state.facts.others || state.flags != Flags::Alone => {
                return Err("skips a switch without comparing contexts, or twice");
            }
            Op::Pass => state.flags = Flags::Passes,
            Op::Switch { .. } | Op::ToRelay if scavenger => {
                return Err("an instruction for those that host guests only");
            }
            Op::Switch { sets, to } => {
                let to = self.here(to).ok_or("inserted code jumps back, or out")?;
                // The byte that becomes that of a jump.
                let changes = insn.next_ip() - 5;
                if self.done.switch.replace(changes).is_some() {
                    return Err("two switches");
                }
                self.wait(to, state)?;
                match sets {
                    Some(register) => set(&mut state, register, Value::Anything)?,
                    None => state.flags = Flags::Anything,
                }
            }
            Op::ToRelay => {
                let relay = self.code.relays.iter().find(|relay| relay.switch == insn.ip());
                let relay = relay.ok_or("a switch that is not listed, or leads to no relay")?;
                let to = self.here(relay.to).ok_or("a relay that leads out of its inserted code")?;
                if self.done.switch.replace(insn.ip()).is_some() {
                    return Err("two switches");
                }
                self.wait(to, state)?;
            }
            Op::TestGuest => state.flags = Flags::Home,
            Op::Copy(to, from) => {
                let value = state.general[general(from)];
                let held = value == Value::Next && scavenger;
                if value != Value::Context && !held {
                    return Err("copies a value that is not the current context");
                }
                set(&mut state, to, value)?;
            }
            Op::Load(to, base, displacement) => {
                let value = load(&state, base, displacement)?;
                if !scavenger && matches!(value, Value::Return | Value::Local(_)) {
                    return Err("an instruction for scavengers only");
                }
                set(&mut state, to, value)?;
            }
            Op::Store(base, displacement, from) => store(&mut state, base, displacement, from)?,
            Op::Compare(of, base, displacement) => {
                let both = (state.general[general(of)], state.general[general(base)]);
                if both != (Value::Context, Value::Context) || field(displacement) != Some(Field::Next) {
                    return Err("does not compare a context with the next one");
                }
                state.flags = Flags::Alone;
            }
            Op::Place(to, address) => {
                let of_jump = self.code.jump.and_then(|jump| jump.at(address));
                let value = match self.here(address) {
                    _ if of_jump.is_some() => of_jump.unwrap_or(Value::Anything),
                    _ if address == self.terms.text.0 && scavenger => Value::Text,
                    Some(at) => Value::Here(at),
                    None => return Err("computes an address that it has no use for"),
                };
                set(&mut state, to, value)?;
            }
            Op::Sum { to, base, index, scale } => {
                let value = sum(&state, base, index, scale)?;
                set(&mut state, to, value)?;
            }
            Op::FlagsToAh => {
                let kept = state.flags == Flags::Program;
                state.general[0] = if kept { Value::Ah } else { Value::Anything };
            }
            Op::OverflowToAl => {
                let kept = state.flags == Flags::Program && state.general[0] == Value::Ah;
                state.general[0] = if kept { Value::Flags } else { Value::Anything };
            }
            Op::OverflowFromAl => {
                let kept = state.general[0] == Value::Flags;
                state.general[0] = if kept { Value::Restoring } else { Value::Anything };
                state.flags = if kept { Flags::Overflow } else { Flags::Anything };
            }
            Op::FlagsFromAh => {
                let kept = state.general[0] == Value::Restoring && state.flags == Flags::Overflow;
                state.flags = if kept { Flags::Program } else { Flags::Anything };
            }
            Op::Subtract(a, b) => {
                state.general[general(a)] = match (state.general[general(a)], state.general[general(b)]) {
                    (Value::Return, Value::Text) => Value::ReturnInText,
                    (Value::Target, Value::UnitBegin) => Value::TargetInUnit,
                    _ => return Err("subtracts what is no address from where it leads to"),
                };
                state.flags = Flags::Anything;
            }
            Op::CompareNumber(of, number) => {
                let size = self.code.jump.map(|jump| jump.unit.1);
                state.flags = match state.general[general(of)] {
                    Value::ReturnInText if u64::from(number) == self.terms.text.1 => Flags::Inside,
                    Value::TargetInUnit if size == Some(u64::from(number)) => Flags::InUnit,
                    _ => return Err("compares no address with the size of where it may lie"),
                };
            }
            Op::LoadTarget(to) => {
                // All that is known of a target, of its place, and of what the table has there, is
                // known of one number: so it may be known of all registers that hold that.
                if std::mem::replace(&mut self.done.loads_target, true) {
                    return Err("reads what a computed jump jumps to twice");
                }
                set(&mut state, to, Value::Target)?;
            }
            Op::LoadDistance { to, base, index } => label_jumps::load_distance(&mut state, to, base, index)?,
            Op::Test(of) => label_jumps::test(&mut state, of)?,
            Op::ToLabel => {
                label_jumps::leads_to_label(&state, self.code.jump.as_ref(), self.terms)?;
                self.done.jumps_to_labels = true;
                return Ok(());
            }
            Op::Prefetch => self.done.prefetches.push(prefetch(&state, insn)?),
            Op::Vector { store, number, level, base, displacement } => {
                vector(&mut state, store, number, level, base, displacement)?;
            }
            Op::Mask { store, number, base, displacement } => {
                let right = state.general[general(base)] == Value::Context
                    && displacement == context::mask(number)
                    && number < 8;
                if !right {
                    return Err("a mask register outside its own slot");
                }
                let bit = 1 << number;
                if store {
                    state.kept.masks = state.kept.masks & !bit | state.masks & bit;
                } else {
                    state.masks = state.masks & !bit | state.kept.masks & bit;
                }
            }
            Op::Jump(when, to) => {
                let to = self.here(to).ok_or("inserted code jumps back, or out")?;
                return self.jump(when, to, state);
            }
            Op::Through(base, displacement) => {
                let to = state.general[general(base)];
                let next = to == Value::Next && base == RAX;
                if !next || displacement != context::RIP || state.current != to {
                    return Err(
                        "does not jump to the next context's resume address, or has not made it current",
                    );
                }
                // Handlers run in a context without slots, which nobody may save to: also a guest
                // asks for another one.
                let asked = if scavenger { state.facts.others } else { state.facts.turn };
                if !asked {
                    return Err("switches without testing whether to skip the switch");
                }
                let rip = state.kept.rip.ok_or("switches without storing a resume address")?;
                self.done.yields += 1;
                let resume = self.code.parts[rip.part].1 + u64::from(rip.at);
                self.done.resume = Some(resume);
                let begin = self.done.recognised.last().map_or(0, |before| before.prefetches.end);
                self.done.recognised.push(RecognisedYield {
                    jump: insn.ip(),
                    resume,
                    prefetches: begin..self.done.prefetches.len(),
                });
                let resumed = state.resumed();
                return self.wait(rip, resumed);
            }
            Op::Note(_) => return Err("a note in the path of execution"),
            Op::Leave => {
                if self.leaves_away(&state) {
                    return Err("leaves with registers in their slots alone");
                }
                if !state.facts.aboard {
                    return Err("leaves without testing whether it is aboard");
                }
                let Value::Here(at) = state.scratch[1] else {
                    return Err("leaves without storing a resume address");
                };
                state.general[0] = state.scratch[0];
                state.scratch = [Value::Anything; 3];
                // Its slots go home with a guest.
                state.kept = ContextSlots { general: state.kept.general, ..ContextSlots::NOTHING };
                state.facts.aboard = false;
                (state.facts.home, state.facts.returns, state.facts.met) = (true, true, true);
                return self.wait(at, state);
            }
        }
        self.state = Some(state);
        Ok(())
    }

    fn jump(&mut self, when: When, to: PieceSpot, mut state: State) -> Result<(), &'static str> {
        let mut taken = state;
        match (when, state.flags) {
            (When::Always, _) => return self.wait(to, taken),
            (When::Equal, Flags::Alone) => {
                (taken.facts.met, taken.facts.alone) = (true, true);
                state.facts.others = true;
            }
            (When::NotEqual, Flags::Alone) => {
                taken.facts.others = true;
                (state.facts.met, state.facts.alone) = (true, true);
            }
            // It passes by only while no guest takes part.
            (When::NotNegative, Flags::Passes) => state.facts.turn = true,
            (When::Equal, Flags::Home) => {
                (taken.facts.home, taken.facts.returns, taken.facts.met) = (true, true, true);
                state.facts.aboard = true;
            }
            (When::Below, Flags::Inside) => taken.facts.returns = true,
            (When::NotBelow, Flags::InUnit) => state.is_found(Value::TargetInUnit, Value::PlaceInUnit),
            (When::Equal, Flags::NoLabel) => state.is_found(Value::DistanceOrNone, Value::Distance),
            (When::NotNegative, Flags::Budget) => {
                taken.facts.met = true;
                state.facts.budget = false;
            }
            (When::Negative, Flags::Budget) => {
                taken.facts.budget = false;
                state.facts.met = true;
            }
            _ => return Err("a conditional jump without its comparison"),
        }
        self.state = Some(state);
        self.wait(to, taken)
    }
}
