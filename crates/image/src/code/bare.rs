//! Functions that no unwind table knows: hand-written assembly, and what the compiler's start files
//! bring. Nobody vouches for where they end, for their conventions, or that they are code at all;
//! so each is looked at until no doubt is left.
//!
//! Without doubt is code that is known outside of such code: by a header, a relocation, a symbol of
//! a function that is global, or by a symbol of one and a direct call or jump (what nobody knows by
//! its address may be there to be copied elsewhere, as V8's builtins are, and what is patched is
//! not to run in another place); that decodes from its first byte to its last, with nothing between
//! its instructions but padding; out of which control goes by returns, by pointers, and by jumps
//! and calls to where functions begin; of which nobody knows an address but the first; and that
//! calls nothing which could look at its return address.
//!
//! What is called without being known to unwinders has to be a *plain leaf*: it never names the
//! stack.

use crate::code::code_units::entry_points;
use crate::code::insn::{Insn, index_at};
use crate::code::reads;
use crate::elf::symbols::Symbols;
use crate::module::Module;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::HashSet;
use units::Svma;

/// Why one is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Known to nobody outside, or in memory that may be written to.
    Unnamed,
    /// Shorter than what is put at entries.
    Short,
    /// Not code from the first byte to the last, or control runs on behind it.
    NotWhole,
    /// Something refers to an address inside of it.
    Entered,
    /// It jumps to computed places, or where no function is known to begin.
    Jumps,
    /// It calls what may look at its return address.
    Calls,
    /// It refers to its own code.
    ReadsItself,
}

/// What is asked about all of a module's functions without unwind entry.
pub struct Bare<'m, 'd> {
    module: &'m Module<'d>,
    /// Where functions begin, by what the file itself says.
    named: HashSet<u64>,
    /// Those of them that something else refers to.
    known: HashSet<u64>,
    /// What may be known of addresses inside of units, ascending.
    odd: &'m [Svma],
    /// What is read among the code, ascending.
    reads: &'m [(u64, u64)],
}

/// The size of a jump to anywhere.
const JUMP: u32 = 5;
/// What a handler's return looks like to unwinders that know no better.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// A leaf longer than this is not looked at to its end.
const LONGEST_LEAF: usize = 64;

impl<'m, 'd> Bare<'m, 'd> {
    pub fn of(module: &'m Module<'d>, odd: &'m [Svma], reads: &'m [(u64, u64)]) -> Self {
        let own = Symbols::of(&module.image, None);
        let functions = || own.all().iter().filter(|symbol| symbol.is_function);
        let mut named: HashSet<u64> = functions().map(|symbol| symbol.address.0).collect();
        let mut known: HashSet<u64> =
            functions().filter(|symbol| symbol.is_global).map(|symbol| symbol.address.0).collect();
        for (unit, decoded) in module.units.iter().zip(&module.decoded).filter(|(unit, _)| unit.fde.is_some())
        {
            let to = decoded.calls.iter().chain(&decoded.jumps_out).map(|to| to.0);
            known.extend(to.filter(|to| !unit.holds(Svma(*to)) && named.contains(to)));
        }
        let entries = entry_points(&module.image, &module.relocations);
        named.extend(entries.iter().map(|address| address.0));
        known.extend(entries.iter().map(|address| address.0));
        Self { module, named, known, odd, reads }
    }

    /// What is doubtful about a unit without unwind entry.
    pub fn doubt(&self, index: usize) -> Option<Doubt> {
        let module = self.module;
        let (unit, decoded, code) = (&module.units[index], &module.decoded[index], module.code(index));
        let written = module.image.load_at(unit.start).is_none_or(crate::elf::Segment::is_writable);
        if written || !self.known.contains(&unit.start.0) {
            return Some(Doubt::Unnamed);
        }
        let Some(last) = decoded.insns.last() else { return Some(Doubt::NotWhole) };
        if last.end() < JUMP {
            return Some(Doubt::Short);
        }
        let is_code = decoded.undecoded.is_empty() && !decoded.overlaps && !code.starts_with(&[0, 0]);
        if !is_code || code.starts_with(&SIGNAL_RETURN) || !self.is_whole(index) {
            return Some(Doubt::NotWhole);
        }
        let holds_any = |addresses: &[Svma], from: u64| {
            let first = addresses.partition_point(|address| address.0 < from);
            addresses.get(first).is_some_and(|&address| address < unit.end())
        };
        if holds_any(self.odd, unit.start.0 + 1)
            || reads::meet(self.reads, unit.start.0, unit.end().0)
            || !module.roots(index).is_empty()
        {
            return Some(Doubt::Entered);
        }
        if decoded.reads_own_address || self.reads_itself(index) {
            return Some(Doubt::ReadsItself);
        }
        let computes = !decoded.tables.is_empty() || decoded.open_jumps.iter().any(|jump| !jump.is_pointer);
        if computes || !decoded.jumps_out.iter().all(|&to| self.is_start(to) || self.is_plain_leaf(to)) {
            return Some(Doubt::Jumps);
        }
        let calls = decoded.insns.iter().any(|insn| insn.flow.is_call());
        if calls && self.reaches_below(index)
            || !decoded.calls.iter().all(|&to| self.is_known(to) || self.is_plain_leaf(to))
        {
            return Some(Doubt::Calls);
        }
        None
    }

    /// From the first byte to the last there is nothing but instructions and padding, and nothing
    /// runs on behind them.
    fn is_whole(&self, index: usize) -> bool {
        let (insns, code) = (&self.module.decoded[index].insns, self.module.code(index));
        let mut end = 0;
        for insn in insns {
            if insn.at != end && !is_padding(&code[end as usize..insn.at as usize]) {
                return false;
            }
            end = insn.end();
        }
        let runs_on = |end: u32| index_at(insns, end).is_none();
        is_padding(&code[end as usize..])
            && !insns.iter().any(|insn| insn.flow.falls_through() && runs_on(insn.end()))
    }

    /// Operands that lie in the unit itself.
    fn reads_itself(&self, index: usize) -> bool {
        let (unit, code) = (&self.module.units[index], self.module.code(index));
        let mut insns = self.module.decoded[index].insns.iter();
        insns.any(|insn| insn.rip_target(unit.start, code).is_some_and(|to| unit.holds(to)))
    }

    /// Operands below the stack pointer: where the return addresses of calls were.
    fn reaches_below(&self, index: usize) -> bool {
        let code = self.module.code(index);
        self.module.decoded[index].insns.iter().any(|insn| {
            let insn = Decoder::with_ip(64, insn.bytes(code), 0, DecoderOptions::NONE).decode();
            insn.memory_base() == Register::RSP && (insn.memory_displacement64() as i64) < 0
        })
    }

    /// Whether what stands there is known to unwinders, or to other modules: other rules say what
    /// it does with its return address.
    fn is_known(&self, to: Svma) -> bool {
        let module = self.module;
        let begins = |index: usize| {
            let unit = &module.units[index];
            unit.start == to && unit.fde.is_some() && !unit.is_part
        };
        module.imports.stub(to).is_some() || module.unit_at(to).is_some_and(begins)
    }
    fn is_start(&self, to: Svma) -> bool {
        let bare = |index: usize| self.module.units[index].fde.is_none() && self.named.contains(&to.0);
        self.is_known(to) || self.module.unit_at(to).is_some_and(bare)
    }

    /// Whether code there, known to nobody, goes on to its end without naming the stack.
    fn is_plain_leaf(&self, to: Svma) -> bool {
        let known = self.module.unit_at(to).is_some_and(|index| self.module.units[index].fde.is_some());
        let Some(code) = self.module.image.bytes_from(to).filter(|_| !known && self.module.image.is_code(to))
        else {
            return false;
        };
        let mut decoder = Decoder::with_ip(64, code, to.0, DecoderOptions::NONE);
        let (mut waiting, mut seen) = (vec![0usize], HashSet::new());
        while let Some(at) = waiting.pop() {
            if !seen.insert(at) {
                continue;
            }
            if seen.len() > LONGEST_LEAF || decoder.set_position(at).is_err() {
                return false;
            }
            decoder.set_ip(to.0 + at as u64);
            let insn = decoder.decode();
            let flow = insn.flow_control();
            if insn.is_invalid() || flow != FlowControl::Return && names_stack(&insn) {
                return false;
            }
            let direct = insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64;
            let (branches, goes_on) = match flow {
                FlowControl::Next => (false, true),
                FlowControl::ConditionalBranch if direct => (true, true),
                FlowControl::UnconditionalBranch if direct => (true, false),
                FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => (false, false),
                _ => return false,
            };
            if branches {
                let Some(inside) = insn.near_branch64().checked_sub(to.0) else { return false };
                waiting.push(inside as usize);
            }
            if goes_on {
                waiting.push(at + insn.len());
            }
        }
        true
    }
}

/// Whether an instruction moves the stack pointer, or names it or the frame pointer.
fn names_stack(insn: &Instruction) -> bool {
    let is_of_stack = |register: Register| matches!(register.full_register(), Register::RSP | Register::RBP);
    let operand = |at| insn.op_kind(at) == OpKind::Register && is_of_stack(insn.op_register(at));
    insn.is_stack_instruction()
        || is_of_stack(insn.memory_base())
        || is_of_stack(insn.memory_index())
        || (0..insn.op_count()).any(operand)
}

/// What assemblers put where nothing runs.
fn is_padding(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    while decoder.can_decode() {
        if !matches!(decoder.decode().mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
            return false;
        }
    }
    true
}

/// Of a function whose size nobody tells, no more is known than was seen.
pub(crate) fn end_where_seen(module: &mut Module<'_>) {
    for (unit, decoded) in module.units.iter_mut().zip(&module.decoded) {
        if unit.fde.is_some() || unit.go.is_some() {
            continue;
        }
        let mut symbols = module.symbols.at(unit.start).iter();
        let is_sized = symbols.any(|symbol| symbol.is_function && symbol.size > 0);
        // Where instructions share bytes, the last one is not always that which reaches furthest.
        let end = decoded.insns.iter().map(Insn::end).max();
        if let (false, Some(end)) = (is_sized, end) {
            unit.size = end;
        }
    }
}
