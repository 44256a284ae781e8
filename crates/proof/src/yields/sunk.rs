//! Registers that yields of a loop leave in their slots (rule R21): code that takes a guest's state
//! in the midst of its code goes by what the guest's yield says of that, and finds them there.
//!
//! A yield that does not load a live register behind its switch has a note: these registers, from
//! one place of the twin to another. Two things make that right. Wherever such a register may hold
//! anything, control is between those places, and the yield that it came from is one with that
//! note; no instruction there uses the register, nor does control leave the twin. And everywhere
//! between those places, whichever way control got there, the slots of all registers of the note
//! hold them: then it does no harm to take them from there, also if the note is an older one of the
//! same loop's.

use super::hoisted::kept_by;
use super::run::Done;
use super::state::{EarlierSaves, SunkNote};
use super::{Buffers, Work};
use crate::code::copy;
use crate::liveness::set::{ALL, Set};
use crate::rule::Rule;
use iced_x86::{FlowControl, InstructionInfoFactory};

/// rax, in which the context comes back; rsp; r11, by which the runtime goes on at home when it has
/// loaded the others.
const NEVER_LEFT: u16 = 1 | 1 << 4 | 1 << 11;

/// Bytes that a note may speak of.
const FARTHEST: u64 = 0x8000;

impl Work<'_, '_> {
    /// R21 for a unit in which there are notes.
    pub(super) fn left(&self, live: &[Set], entries: &[(u32, u32)], buffers: &mut Buffers) {
        let mut done = Done::default();
        let mut factory = InstructionInfoFactory::new();
        let mut notes: Vec<SunkNote> = Vec::new();
        // What is known before each instruction, behind its piece.
        let mut behind = Vec::with_capacity(self.items.len());
        for (index, item) in self.items.iter().enumerate() {
            let known = self.known(index, entries, buffers);
            let wrong = |what: &str| self.wrong(Rule::SunkRestores, item, what);
            let (begin, copy, end) =
                [item.place, item.copy(), item.copy_end()].map(|at| self.unit.twin + u64::from(at)).into();
            done.again();
            let live = live.get(index).copied().unwrap_or(ALL);
            let mut now = known;
            if item.inserted > 0 {
                let code = self.code(item, &buffers.instructions[index], live);
                let ran = self.run(&code, &mut buffers.pieces, &mut done, known);
                let Some(state) = done.state.as_ref().filter(|_| ran.is_ok()) else {
                    wrong("inserted code fails its check where registers are in their slots alone");
                    behind.push(EarlierSaves::NOTHING);
                    continue;
                };
                now = known.behind(state, &done);
                // All else is R13's.
                let here = Set::from((known.away | done.note.map_or(0, |note| note.registers)) & !now.away);
                if state.lost(live, self.context.note.vector_bytes) & here != 0 {
                    wrong("what may be live is neither in its register nor in its slot");
                }
                if now.away != 0 && done.yields > 0 && (done.yields > 1 || done.note.is_none()) {
                    wrong("a yield leaves registers in their slots without a note");
                }
            }
            behind.push(now);
            if let Some(note) = done.note.filter(|note| !notes.contains(note)) {
                notes.push(note);
            }
            if known.away != 0 && !(known.is_noted() && known.note.from <= begin && copy <= known.note.to) {
                wrong("registers are in their slots alone without a note");
            }
            if now.away == 0 {
                continue;
            }
            if !(now.is_noted() && now.note.from <= begin && end <= now.note.to) {
                wrong("registers are in their slots alone without a note");
            }
            let insn = &buffers.instructions[index];
            if kept_by(insn, &mut factory) & now.away != now.away || reads(insn, now.away, &mut factory) {
                wrong("uses a register that is in its slot alone");
            }
            let original = &self.unit.code[item.at as usize..item.end() as usize];
            let bytes = &self.unit.copy[item.copy() as usize..item.copy_end() as usize];
            let stays = || {
                let to = copy::branch_target(original, bytes, end);
                to.is_some_and(|to| (now.note.from..=now.note.to).contains(&to))
                    && self.index(insn.near_branch64()).is_some()
            };
            let follows = self.items.get(index + 1).is_some_and(|next| next.at == item.end());
            let right = match insn.flow_control() {
                FlowControl::Next => follows,
                FlowControl::ConditionalBranch => follows && stays(),
                FlowControl::UnconditionalBranch => stays(),
                _ => false,
            };
            if !right || item.escape {
                wrong("continues elsewhere with registers in their slots alone");
            }
        }
        for note in notes {
            self.holds(note, &behind, entries, buffers);
        }
    }

    /// Whether the slots hold a note's registers wherever it speaks of.
    fn holds(&self, note: SunkNote, behind: &[EarlierSaves], entries: &[(u32, u32)], buffers: &mut Buffers) {
        if note.registers & NEVER_LEFT != 0 {
            return self.wrong(
                Rule::SunkRestores,
                &self.items[0],
                "a note on registers that must not be left in slots",
            );
        }
        let place = |at: u32| self.unit.twin + u64::from(at);
        let first = self.items.iter().position(|item| place(item.place) == note.from);
        let end = self.items.iter().position(|item| place(item.copy()) == note.to);
        let (Some(first), Some(end)) = (first, end) else {
            return self.wrong(
                Rule::SunkRestores,
                &self.items[0],
                "a note with addresses that are not those of instructions",
            );
        };
        if first >= end || note.to - note.from > FARTHEST {
            return self.wrong(
                Rule::SunkRestores,
                &self.items[first],
                "a note on an empty range, or on one too long",
            );
        }
        for (index, &behind) in behind.iter().enumerate().take(end + 1).skip(first) {
            let item = &self.items[index];
            let known = self.known(index, entries, buffers);
            let holds = |known: EarlierSaves| note.registers & !known.slots == 0;
            if !holds(known) || index < end && !holds(behind) {
                self.wrong(Rule::SunkRestores, item, "a note names a slot that does not hold its register");
            }
            if index < end && (item.cold.1 > 0 || item.escape) {
                self.wrong(Rule::SunkRestores, item, "a note covers code that lies elsewhere");
            }
        }
    }
}

impl EarlierSaves {
    /// Whether its note speaks of all that is away, and the slots have it.
    fn is_noted(&self) -> bool {
        self.away & !(self.note.registers & self.slots) == 0
    }
}

/// Whether an instruction has anything to do with these registers.
fn reads(insn: &iced_x86::Instruction, registers: u16, factory: &mut InstructionInfoFactory) -> bool {
    factory.info(insn).used_registers().iter().any(|used| {
        let register = used.register().full_register();
        register.is_gpr() && registers >> register.number() & 1 == 1
    })
}

#[cfg(test)]
mod tests {
    use super::super::run::{Buffers, Code, Done, run};
    use super::super::state::EarlierSaves;
    use super::super::state::Terms;
    use super::*;
    use runtime_abi::{area, context};

    const RBX: u16 = 1 << 3;

    /// Inserted code that goes on in a cold part, and loads rbx from its slot in front of that, or
    /// does not.
    fn is_accepted(loads: bool, known: EarlierSaves) -> bool {
        let mut hot = vec![0x65, 0x48, 0x8b, 0x04, 0x25, area::CUR as u8, 0, 0, 0]; // mov rax, gs:[CUR]
        if loads {
            hot.extend([0x48, 0x8b, 0x58, context::slot(3) as u8]); // mov rbx, [rax + slot]
        }
        hot.extend([0x48, 0x3b, 0x00]); // cmp rax, [rax]
        let end = 0x1000 + hot.len() as u32 + 6;
        hot.extend([0x0f, 0x85]); // jne cold
        hot.extend((0x2000 - end).to_le_bytes());
        let mut cold = vec![0xe9]; // jmp end
        cold.extend(end.wrapping_sub(0x2005).to_le_bytes());
        let parts = [(&hot[..], 0x1000), (&cold[..], 0x2000)];
        let code = Code { parts, relays: &[], jump: None };
        let terms = Terms { scavenger: true, quantum: 1, vector_bytes: 16, text: (0, 0) };
        run(&code, &terms, &mut Buffers::default(), &mut Done::default(), known).is_ok()
    }

    #[test]
    fn what_is_left_does_not_go_into_cold_parts() {
        let note = SunkNote { registers: RBX, from: 0xf00, to: 0x1f00 };
        let away = EarlierSaves { slots: RBX, away: RBX, note, ..EarlierSaves::NOTHING };
        assert!(is_accepted(false, EarlierSaves::NOTHING));
        assert!(is_accepted(true, away));
        assert!(!is_accepted(false, away));
    }
}
