//! Rule R19: units that no frame description covers. What other units have by the word of the
//! unwind table - where they begin and end, that they are code, that they are called as functions
//! are - has to show in the code itself.
//!
//! A *plain leaf* is code that goes on from where it is come to, by what follows and by direct
//! jumps not backwards beyond that, to returns, to jumps by pointers or to traps, and in which
//! nothing but returns names the stack or frame pointer.

use crate::Context;
use crate::code::computed;
use crate::code::unit::View;
use crate::container::elf::{self, Elf};
use crate::container::mapping::{IDENTITY, POISON};
use crate::container::read::number;
use crate::container::relocations::Relocations;
use crate::container::stream::Item;
use crate::liveness::effects;
use crate::liveness::set::{ALL, RED_ZONE, RESERVED, Set};
use crate::rule::Rule;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use object::elf::{
    DT_FINI, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_PREINIT_ARRAY,
    DT_PREINIT_ARRAYSZ, SHT_DYNSYM, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, SymbolBind,
};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use units::Svma;

const SHORTEST: usize = 5;
const LONGEST_LEAF: usize = 64;
/// By these bytes unwinders know the end of a signal handler.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
const GENERAL: Set = 0xffff;

/// Where functions begin by what symbols, headers and relocations say: those that are [`known`],
/// and what has a name at all. Ascending.
pub(crate) fn named(original: &Elf<'_>, known: &[u64]) -> Vec<u64> {
    let mut found = known.to_vec();
    found.extend(functions(original, |_| true));
    found.sort_unstable();
    found.dedup();
    found
}

/// Where functions begin of which others may know: all but what a local symbol alone names.
/// Ascending.
pub(crate) fn known(original: &Elf<'_>, relocations: &Relocations) -> Vec<u64> {
    let mut found = vec![original.entry()];
    found.extend([DT_INIT, DT_FINI].into_iter().filter_map(|tag| original.dynamic_value(tag)));
    for (at, size) in [
        (DT_INIT_ARRAY, DT_INIT_ARRAYSZ),
        (DT_FINI_ARRAY, DT_FINI_ARRAYSZ),
        (DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ),
    ] {
        let (Some(at), Some(size)) = (original.dynamic_value(at), original.dynamic_value(size)) else {
            continue;
        };
        let bytes = original.bytes_from(Svma(at)).unwrap_or(&[]);
        let bytes = &bytes[..bytes.len().min(size as usize)];
        found.extend(bytes.chunks_exact(8).filter_map(|word| number(word, 0, 8)));
    }
    found.extend(relocations.addresses.iter().map(|address| address.1));
    found.extend(functions(original, |binding| binding != STB_LOCAL));
    found.sort_unstable();
    found.dedup();
    found
}

/// Addresses of function symbols whose binding is right.
fn functions(original: &Elf<'_>, is_right: impl Fn(SymbolBind) -> bool) -> Vec<u64> {
    let tables = original.symbol_tables(SHT_SYMTAB).chain(original.symbol_tables(SHT_DYNSYM));
    tables
        .flat_map(|table| table.symbols)
        .filter(|symbol| matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) && elf::is_defined(symbol))
        .filter(|symbol| is_right(symbol.st_bind()))
        .map(elf::value)
        .collect()
}

impl Context<'_> {
    /// R19: the address of each of these units is known outside. Runs after all units.
    pub(crate) fn known_outside(&self) {
        let mut unknown: BTreeSet<u64> = self
            .bare
            .iter()
            .zip(&self.met)
            .filter(|((start, _), met)| !met.load(Relaxed) && self.known.binary_search(start).is_err())
            .map(|((start, _), _)| *start)
            .collect();
        if unknown.is_empty() {
            return;
        }
        // Its caller may have no twin itself.
        for &(start, end) in &self.functions {
            let code = self.original.bytes_at(Svma(start), (end - start) as usize).unwrap_or(&[]);
            for (at, branch) in code.windows(5).enumerate() {
                let is_branch = matches!(branch[0], 0xe8 | 0xe9)
                    || matches!(branch[0], 0x80..=0x8f) && at > 0 && code[at - 1] == 0x0f;
                if is_branch {
                    let by = i64::from(i32::from_le_bytes([branch[1], branch[2], branch[3], branch[4]]));
                    unknown.remove(&(start + at as u64 + 5).wrapping_add_signed(by));
                }
            }
        }
        for start in unknown {
            self.findings.at(
                Rule::Bare,
                start,
                "without frame description, and not known as a function otherwise",
            );
        }
    }
}

impl View<'_, '_> {
    /// R19 for a unit without frame description, all of whose instructions are known to decode.
    pub(crate) fn bare(&self, items: &[Item]) {
        let (unit, context) = (self.unit, self.context);
        let wrong = |at: u64, what: &str| context.findings.at(Rule::Bare, at, what);
        if !matches!(context.note.mode, IDENTITY | POISON) {
            wrong(unit.start, "a unit without frame description in a file with yields");
        }
        if unit.code.len() < SHORTEST
            || unit.code.starts_with(&SIGNAL_RETURN)
            || context.named.binary_search(&unit.start).is_err()
            || context
                .original
                .load_at(Svma(unit.start))
                .is_none_or(crate::container::elf::Segment::is_writable)
        {
            wrong(unit.start, "known as a function neither by a frame description nor otherwise");
        }
        let mut end = 0;
        for (at, next) in items.iter().map(|item| (item.at, item.end())).chain([(unit.code.len() as u32, 0)])
        {
            if !is_padding(&unit.code[end as usize..at as usize]) {
                wrong(unit.start + u64::from(end), "code without frame description that is not whole");
            }
            end = next;
        }
        let begins = |to: u64| {
            let at = to.wrapping_sub(unit.start);
            items.binary_search_by_key(&at, |item| u64::from(item.at)).is_ok()
        };
        let (mut calls, mut reaches_below, mut jumps) = (false, false, false);
        for item in items {
            let insn = self.decode(item);
            let at = insn.ip();
            if item.escape {
                wrong(at, "code without frame description that runs past its end");
            }
            let flow = insn.flow_control();
            let is_call = matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
                && insn.mnemonic() == Mnemonic::Call;
            calls |= is_call;
            jumps |= flow == FlowControl::IndirectBranch;
            reaches_below |= insn.memory_base() == Register::RSP && (insn.memory_displacement64() as i64) < 0;
            if insn.is_ip_rel_memory_operand() && unit.holds(insn.ip_rel_memory_address()) {
                wrong(at, "code without frame description that refers to itself");
            }
            if insn.op_count() == 0 || insn.op0_kind() != OpKind::NearBranch64 {
                continue;
            }
            let to = insn.near_branch64();
            let is_right = match is_call {
                true => self.is_known(to) || self.is_plain_leaf(to),
                false if unit.holds(to) => begins(to),
                false => {
                    self.is_known(to) || context.named.binary_search(&to).is_ok() || self.is_plain_leaf(to)
                }
            };
            if !is_right {
                wrong(at, "code without frame description that branches to what may not be a function");
            }
        }
        if calls && reaches_below {
            wrong(unit.start, "code without frame description that may read its calls' return addresses");
        }
        if !self.tables.is_empty() || jumps && computed::jumps(unit, items, self.tables) {
            wrong(unit.start, "code without frame description that has indirect jumps");
        }
    }

    /// R19 for an instruction of another unit: it reads nothing of such units, and names no address
    /// inside of them.
    pub(crate) fn meets_bare(&self, insn: &Instruction) {
        let bare = &self.context.bare;
        if bare.is_empty() || insn.op_count() == 0 {
            return;
        }
        let branches = insn.op0_kind() == OpKind::NearBranch64;
        let to = match insn.is_ip_rel_memory_operand() {
            _ if branches => insn.near_branch64(),
            true => insn.ip_rel_memory_address(),
            false => return,
        };
        let found = bare[..bare.partition_point(|range| range.0 <= to)].last();
        let Some(&(start, _)) = found.filter(|range| to < range.1) else { return };
        let at_start = to == start && (branches || insn.mnemonic() == Mnemonic::Lea);
        if at_start && branches && bare.binary_search_by_key(&self.unit.start, |range| range.0).is_err() {
            let place = bare.partition_point(|range| range.0 < start);
            self.context.met[place].store(true, Relaxed);
        }
        if start != self.unit.start && !at_start {
            let what =
                format!("code without frame description may contain data: referred to at {:#x}", insn.ip());
            self.context.findings.at(Rule::Bare, to, what);
        }
    }

    fn decode(&self, item: &Item) -> Instruction {
        let bytes = &self.unit.code[item.at as usize..item.end() as usize];
        Decoder::with_ip(64, bytes, self.unit.start + u64::from(item.at), DecoderOptions::NONE).decode()
    }

    /// The start of what a frame description covers, or a linkage stub.
    fn is_known(&self, to: u64) -> bool {
        let functions = &self.context.functions;
        let described = functions[functions.partition_point(|range| range.0 < to)..].first();
        described.is_some_and(|range| range.0 == to) && !self.context.unwind.is_odd(to)
            || self.slot_of_stub(to).is_some()
    }

    fn is_plain_leaf(&self, to: u64) -> bool {
        let image = &self.context.original;
        let load = image.load_at(Svma(to)).filter(|load| load.is_executable());
        let Some(code) = load.and_then(|_| image.bytes_from(Svma(to))) else { return false };
        let (mut waiting, mut seen) = (BTreeSet::from([to]), BTreeSet::new());
        while let Some(at) = waiting.pop_first() {
            if !seen.insert(at) {
                continue;
            }
            let bytes = usize::try_from(at - to).ok().and_then(|at| code.get(at..)).unwrap_or(&[]);
            let insn = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
            let flow = insn.flow_control();
            let is_direct = insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64;
            let stays = flow == FlowControl::Return || !names_stack(&insn);
            if insn.is_invalid() || !stays || seen.len() > LONGEST_LEAF {
                return false;
            }
            match flow {
                FlowControl::Next => {}
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch if is_direct => {
                    if insn.near_branch64() < to {
                        return false;
                    }
                    waiting.insert(insn.near_branch64());
                }
                FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => {}
                _ => return false,
            }
            if matches!(flow, FlowControl::Next | FlowControl::ConditionalBranch) {
                waiting.insert(insn.next_ip());
            }
        }
        true
    }
}

fn names_stack(insn: &Instruction) -> bool {
    let is_it = |register: Register| matches!(register.full_register(), Register::RSP | Register::RBP);
    let operands = (0..insn.op_count()).filter(|&at| insn.op_kind(at) == OpKind::Register);
    insn.is_stack_instruction()
        || operands.map(|at| insn.op_register(at)).any(is_it)
        || is_it(insn.memory_base())
        || is_it(insn.memory_index())
}

fn is_padding(bytes: &[u8]) -> bool {
    let mut insns = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).into_iter();
    insns.all(|insn| matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
}

/// What is live before each instruction of such a unit: everything but what it overwrites itself,
/// before it reads it and before it calls, returns or goes elsewhere; and never are the general
/// registers dead.
pub(crate) fn live(start: u64, code: &[u8], items: &[Item], live: &mut Vec<Set>) {
    live.clear();
    live.resize(items.len(), 0);
    let place = |at: u64| items.binary_search_by_key(&at, |item| u64::from(item.at)).ok();
    let mut factory = InstructionInfoFactory::new();
    let mut changed = true;
    while changed {
        changed = false;
        for (index, item) in items.iter().enumerate().rev() {
            let bytes = &code[item.at as usize..item.end() as usize];
            let insn = Decoder::with_ip(64, bytes, start + u64::from(item.at), DecoderOptions::NONE).decode();
            let at = |place: Option<usize>| place.map_or(ALL, |place| live[place]);
            let follows = || at(place(u64::from(item.end())));
            let to = || at(place(insn.near_branch64().wrapping_sub(start)));
            let direct = insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64;
            let after = match insn.flow_control() {
                FlowControl::Next if insn.mnemonic() != Mnemonic::Hlt => follows(),
                FlowControl::ConditionalBranch if direct => follows() | to(),
                FlowControl::UnconditionalBranch if direct => to(),
                _ => ALL,
            };
            let effect = effects::of(&insn, &mut factory);
            let kills =
                if after == ALL && insn.flow_control() != FlowControl::Next { 0 } else { effect.kills };
            let before = effect.reads | after & !kills | GENERAL | RESERVED | RED_ZONE;
            changed |= before != live[index];
            live[index] = before;
        }
    }
}
