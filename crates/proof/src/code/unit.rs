//! One unit against its twin, instruction by instruction (rules R4-R7), and what its original
//! refers to (R2). A rule about single instructions goes here.

use crate::code::claims::Claim;
use crate::code::computed;
use crate::code::copy;
use crate::code::references;
use crate::code::traced;
use crate::container::mapping::{IDENTITY, TRACE, Table, Unit};
use crate::container::read::Reader;
use crate::container::stream::{self, Item};
use crate::decode::skipped_lock::to_the_prefix;
use crate::decode::{Opinion, Second, is_branch, is_relative_to};
use crate::rule::Rule;
use crate::{Context, Counts};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// Buffers for one unit at a time, used again for the next.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) items: Vec<Item>,
    /// For each byte of the original: where the twin of the instruction that begins there is, or
    /// [`NOWHERE`].
    places: Vec<u32>,
    /// The tables by the instructions that read them: places of both.
    loads: Vec<(u64, u32)>,
    jumps: Vec<u64>,
    second: Second,
    pub(crate) claims: Vec<Claim>,
    pub(crate) counts: Counts,
}

const NOWHERE: u32 = u32::MAX;

impl Scratch {
    /// Where the twin of the instruction is that begins at an offset of the unit, with what is
    /// inserted before it.
    pub(crate) fn place(&self, at: u32) -> Option<u32> {
        self.places.get(at as usize).copied().filter(|&place| place != NOWHERE)
    }
}

/// A unit while it is looked at.
pub(crate) struct View<'c, 'd> {
    pub(crate) context: &'c Context<'d>,
    pub(crate) unit: &'c Unit<'d>,
    pub(crate) tables: &'c [Table],
}

impl View<'_, '_> {
    /// Looks at the whole unit; `false` if its stream cannot be followed.
    pub(crate) fn instructions(&self, scratch: &mut Scratch) -> bool {
        let unit = self.unit;
        if let Err((at, what)) = stream::read(unit, &mut scratch.items) {
            self.context.findings.at(Rule::Mapping, unit.start + u64::from(at), what);
            return false;
        }
        scratch.places.clear();
        scratch.places.resize(unit.code.len(), NOWHERE);
        for item in &scratch.items {
            scratch.places[item.at as usize] = item.place;
        }
        scratch.loads.clear();
        scratch.loads.extend(self.tables.iter().zip(0..).map(|(table, index)| (table.load, index)));
        scratch.loads.sort_unstable();
        scratch.jumps.clear();
        scratch.jumps.extend(self.tables.iter().map(|table| table.jump));
        scratch.jumps.sort_unstable();
        let items = std::mem::take(&mut scratch.items);
        let mut decoder = Decoder::with_ip(64, unit.code, unit.start, DecoderOptions::NONE);
        let mut insn = Instruction::default();
        let mut last_end = 0;
        let mut jumps_anywhere = false;
        let sound = items.iter().enumerate().all(|(index, item)| {
            if item.at != last_end {
                self.gap(last_end, item.at);
                decoder.set_ip(unit.start + u64::from(item.at));
                if decoder.set_position(item.at as usize).is_err() {
                    return false;
                }
            }
            last_end = item.end();
            decoder.decode_out(&mut insn);
            if insn.is_invalid() || insn.len() != usize::from(item.len) {
                let address = unit.start + u64::from(item.at);
                self.context.findings.at(
                    Rule::Mapping,
                    address,
                    "the mapping lists an instruction that cannot be decoded",
                );
                return false;
            }
            if !self.both_decoders_agree(&insn, item, scratch) {
                return false;
            }
            to_the_prefix(&mut insn, &unit.code[item.end() as usize..]);
            jumps_anywhere |= self.instruction(&decoder, &insn, item, items.get(index + 1), scratch);
            true
        });
        if sound {
            self.gap(last_end, unit.code.len() as u32);
            self.patch(&items, jumps_anywhere, scratch);
        }
        scratch.counts.instructions += items.len();
        scratch.items = items;
        sound
    }

    /// R12: the second decoder reads the instruction and its copy as the first one does; where
    /// liveness counts, it says the same of what the instruction reads and overwrites.
    fn both_decoders_agree(&self, insn: &Instruction, item: &Item, scratch: &mut Scratch) -> bool {
        let second = &mut scratch.second;
        let effect_counts = self.context.note.mode != IDENTITY;
        let opinion = second.of(&self.unit.code[item.at as usize..], insn, effect_counts);
        if let Opinion::Contradicts(what) = opinion {
            let what = format!("the decoders read this instruction differently: {what}");
            self.context.findings.at(Rule::Mapping, insn.ip(), what);
            return false;
        }
        let (from, to) = (item.copy() as usize, item.copy_end() as usize);
        let copy = &self.unit.copy[from..to];
        if *copy == self.unit.code[item.at as usize..item.end() as usize] {
            return true;
        }
        // A copy in several instructions is a branch, which is compared byte by byte.
        let first = Decoder::with_ip(64, copy, self.unit.twin + from as u64, DecoderOptions::NONE).decode();
        let Opinion::Contradicts(what) = second.of(copy, &first, false) else { return true };
        self.wrong(Rule::Copy, item, format!("the decoders read this copy differently: {what}"));
        false
    }

    fn wrong(&self, rule: Rule, item: &Item, what: impl Into<String>) {
        self.context.findings.at(rule, self.unit.twin + u64::from(item.copy()), what);
    }

    /// R2 for bytes that were not decoded.
    fn gap(&self, from: u32, to: u32) {
        if from < to {
            let code = &self.unit.code[from as usize..];
            let address = self.unit.start + u64::from(from);
            references::hidden(code, (to - from) as usize, address, &|at, to, what| {
                self.refers(at, to, what);
            });
        }
    }
    fn refers(&self, from: u64, to: u64, what: &str) {
        references::refers(&self.context.patched, &self.context.findings, (from, to), what);
    }

    /// R7 for trace twins.
    fn traced(&self, insn: &Instruction, item: &Item, scratch: &mut Scratch) {
        let unit = self.unit;
        let code = &unit.copy[item.place as usize..][..item.inserted as usize];
        let at = unit.twin + u64::from(item.place);
        if let Err(what) = traced::check(code, at, insn, &mut scratch.second) {
            self.context.findings.at(Rule::Inserted, at, what);
        }
    }

    /// One instruction; says whether it is a jump to anywhere.
    fn instruction(
        &self,
        decoder: &Decoder<'_>,
        insn: &Instruction,
        item: &Item,
        next: Option<&Item>,
        scratch: &mut Scratch,
    ) -> bool {
        let (unit, context) = (self.unit, self.context);
        let original = &unit.code[item.at as usize..item.end() as usize];
        let twin = &unit.copy[item.copy() as usize..item.copy_end() as usize];
        let (end, twin_end) = (unit.start + u64::from(item.end()), unit.twin + u64::from(item.copy_end()));
        if item.cold.1 > 0 && !context.note.harvests() {
            let at = unit.twin + u64::from(item.cold.0);
            context.findings.at(Rule::Inserted, at, "a cold part where there are no yields");
        }
        if item.inserted > 0 && context.note.mode == IDENTITY {
            context.findings.at(
                Rule::Inserted,
                unit.twin + u64::from(item.place),
                "inserted code in an identity twin",
            );
        }
        if item.inserted > 0 && context.note.mode == TRACE {
            self.traced(insn, item, scratch);
        }
        let fixed = !context.position_independent;
        references::operands(insn, fixed, &|at, to, what| self.refers(at, to, what));
        references::reads(insn, fixed, &context.patched, &context.findings);
        let flow = insn.flow_control();
        if is_branch(insn) {
            if insn.op0_kind() != OpKind::NearBranch64 {
                self.wrong(Rule::Copy, item, "a branch that processors decode in different ways");
            } else if let Some(to) = copy::branch_target(original, twin, twin_end) {
                let rule = if flow == FlowControl::Call { Rule::Calls } else { Rule::Flow };
                self.leads(rule, twin_end - twin.len() as u64, insn.near_branch64(), to, scratch);
                if flow == FlowControl::Call {
                    self.call(insn.near_branch64(), item);
                }
            } else if let Some(slot) = copy::slot(original, twin, twin_end) {
                let rule = if flow == FlowControl::Call { Rule::Calls } else { Rule::Flow };
                if self.slot_of_stub(insn.near_branch64()) != Some(slot) {
                    self.wrong(
                        rule,
                        item,
                        "jumps through a slot, but not through that of the stub that its original calls",
                    );
                }
            } else {
                self.wrong(Rule::Copy, item, "a branch whose copy is another instruction");
            }
        } else if let Some(table) = self.table_read_by(insn.ip(), scratch) {
            if !copy::shifted_operand(insn, twin, twin_end - twin.len() as u64, table.delta()) {
                self.wrong(
                    Rule::Tables,
                    item,
                    "does not read the twin's table as the original reads its own",
                );
            }
        } else if insn.is_ip_rel_memory_operand() {
            let narrow = insn.memory_base() == Register::EIP;
            let offsets = decoder.get_constant_offsets(insn);
            if !copy::relative_operand(original, twin, offsets, narrow, twin_end.wrapping_sub(end)) {
                self.wrong(Rule::Copy, item, "differs from its original, or its operand has another address");
            }
        } else if original != twin && !self.may_be_local(insn) {
            self.wrong(Rule::Copy, item, "differs from its original");
        }
        self.goes_on(insn, item, next, scratch);
        flow == FlowControl::IndirectBranch && scratch.jumps.binary_search(&insn.ip()).is_err()
    }

    /// The first table that the instruction at an address reads; that all it reads are moved alike
    /// is another part of R8.
    fn table_read_by(&self, load: u64, scratch: &Scratch) -> Option<&Table> {
        let first = scratch.loads.partition_point(|&(at, _)| at < load);
        let &(at, index) = scratch.loads.get(first)?;
        (at == load).then(|| &self.tables[index as usize])
    }

    /// Whether the copy may be another instruction, because rule R17 looks at it.
    fn may_be_local(&self, insn: &Instruction) -> bool {
        self.context.note.goes_aboard() && is_relative_to(insn, Register::FS)
    }

    /// R5: the slot of the linkage stub at an address of the original, if that is what stands
    /// there, in code that nothing changes and that has no twin.
    pub(crate) fn slot_of_stub(&self, at: u64) -> Option<u64> {
        let context = self.context;
        let image = &context.original;
        image.load_at(units::Svma(at)).filter(|load| load.is_executable() && !load.is_writable())?;
        let (size, slot) = copy::stub(image.bytes_from(units::Svma(at))?, at)?;
        let is_kept = |address: u64| context.mapping.at(address).is_none() && !context.patched.holds(address);
        let is_still = (0..size).all(|byte| is_kept(at + byte)) && !context.relocations.touch(at, size);
        is_still.then_some(slot)
    }

    /// R5 and R6: what comes behind an instruction that may go on.
    fn goes_on(&self, insn: &Instruction, item: &Item, next: Option<&Item>, scratch: &mut Scratch) {
        let flow = insn.flow_control();
        let call = matches!(flow, FlowControl::Call | FlowControl::IndirectCall);
        let rule = if call { Rule::Calls } else { Rule::Flow };
        if item.escape {
            scratch.counts.escapes += 1;
            let at = item.copy_end() as usize + usize::from(self.unit.lead);
            let behind = self.unit.twin + at as u64 + 5;
            let distance = Reader::new(self.unit.copy, at + 1).signed(4);
            match (self.unit.copy.get(at), distance) {
                (Some(0xe9), Some(distance)) => {
                    let to = behind.wrapping_add_signed(distance);
                    self.leads(rule, behind - 5, self.unit.start + u64::from(item.end()), to, scratch);
                }
                _ => self.wrong(rule, item, "is followed by an escape that is no jump"),
            }
            return;
        }
        let ends = matches!(
            flow,
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
        ) || matches!(insn.code(), Code::Ud2 | Code::Hlt)
            || flow == FlowControl::Exception;
        if !ends && next.is_none_or(|next| next.at != item.end()) {
            self.wrong(rule, item, "continues, but not with the instruction that follows its original");
        }
    }

    /// R6: a call whose target takes the return address for its own position finds another one in a
    /// twin.
    fn call(&self, target: u64, item: &Item) {
        if self.context.is_made_for_its_return_address(target) {
            self.wrong(Rule::Calls, item, "a call that is made only to read its return address");
        }
        if self.context.unwind.is_odd(target) {
            self.wrong(Rule::Calls, item, "a call of code that does not start with a function's frame");
        }
    }

    /// Whether `to` is where control has to go in a twin when the original goes to `target`: the
    /// twin of it, or itself.
    pub(crate) fn leads(&self, rule: Rule, from: u64, target: u64, to: u64, scratch: &mut Scratch) {
        if !self.right(rule, from, target, to, scratch) {
            let what = format!("leads to {to:#x}, which is not where {target:#x} is in a twin");
            self.context.findings.at(rule, from, what);
        }
    }
    fn right(&self, rule: Rule, from: u64, target: u64, to: u64, scratch: &mut Scratch) -> bool {
        let unit = self.unit;
        if unit.holds(target) {
            if let Some(place) = scratch.place((target - unit.start) as u32) {
                return to == unit.twin + u64::from(place);
            }
            return to == target && !self.context.patched.holds(to);
        }
        if to == target {
            return !self.context.patched.holds(to) && !references::hold(&self.context.data, to);
        }
        let Some(other) = self.context.mapping.at(target) else { return false };
        if target == other.start && to == other.twin && other.begins_with_item() {
            return true;
        }
        scratch.claims.push(Claim { of: target, place: to, from, rule });
        other.twin_holds(to)
    }

    /// R2 for this unit's own patch.
    fn patch(&self, items: &[Item], jumps_anywhere: bool, scratch: &mut Scratch) {
        let (unit, context) = (self.unit, self.context);
        let Some(offset) = unit.patch else { return };
        let address = unit.start + u64::from(offset);
        let wrong = |what: &str| context.findings.at(Rule::Entry, address, what);
        scratch.counts.patches += 1;
        let Some(place) = scratch.place(offset) else {
            return wrong("a patch where there is no instruction with a twin");
        };
        let written = context.rewritten.bytes_at(units::Svma(address), 5).unwrap_or(&[]);
        let distance = Reader::new(written, 1).signed(4);
        let to = distance.map(|distance| (address + 5).wrapping_add_signed(distance));
        if written.first() != Some(&0xe9) || to != Some(unit.twin + u64::from(place)) {
            return wrong("a patch that is not a jump to its own unit's twin");
        }
        let first = items.partition_point(|item| item.at < offset);
        if context.note.mode == TRACE && !goes_straight(unit.code, &items[..first], offset) {
            return wrong("a patch that control does not reach from the unit's entry");
        }
        let mut end = offset;
        for item in items[first..].iter().take_while(|item| item.at < offset + 5) {
            if item.at != end {
                break;
            }
            end = item.end();
        }
        if end < offset + 5 {
            return wrong("a patch over bytes that are not instructions of the unit");
        }
        let inside = items[first..].iter().take_while(|item| item.at < offset + 5).nth(1).is_some();
        if jumps_anywhere && inside && computed::jumps(unit, items, self.tables) {
            wrong("a patch over several instructions in a unit that jumps to computed addresses");
        }
    }
}

/// Whether these instructions, from a unit's first byte on, all go on to the next one, and the last
/// one to `end`.
fn goes_straight(code: &[u8], items: &[Item], end: u32) -> bool {
    let goes_on = |item: &Item| {
        let bytes = &code[item.at as usize..item.end() as usize];
        let insn = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        !insn.is_invalid() && insn.flow_control() == FlowControl::Next
    };
    let mut reached = 0;
    for item in items {
        if item.at != reached || !goes_on(item) {
            return false;
        }
        reached = item.end();
    }
    reached == end
}
