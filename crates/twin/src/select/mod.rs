//! Which units get twins, and which twins their originals lead to.

pub(crate) mod before_runtime;
pub(crate) mod hazards;
pub(crate) mod own_base;
pub(crate) mod replaced_calls;
pub(crate) mod restartable;
pub(crate) mod return_addresses;
pub(crate) mod sites;

use crate::layout::escapes_after;
use crate::report::{EntryKept, Refusal};
use crate::select::hazards::ENDBR64;
use crate::select::return_addresses::Readers;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use image::Module;
use image::code::insn::Flow;
use image::code::reads;
use image::elf::abi;
use image::elf::imports::{Import, is_of_stubs};
use image::unwind::cfi::Steps;
use rayon::prelude::*;
use std::collections::HashSet;
use units::Svma;

/// What is decided about a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitChoice {
    Refused(Refusal),
    Twin(EntryChoice),
}

/// What happens to the original's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryChoice {
    /// Five bytes at this offset become a jump.
    Patched(u32),
    Kept(EntryKept),
}

/// The size of the jump that is put at an original's entry.
pub(crate) const PATCH_SIZE: u32 = 5;

/// How far behind an entry the jump to its twin may stand: what is before it runs as it is.
const LAST_PATCH_AT: u32 = 32;

/// Decides for every unit. Where the jump does not fit at an entry, it may stand `behind_entry`:
/// behind the entry's first instructions.
pub(crate) fn choose(module: &Module<'_>, behind_entry: bool) -> Vec<UnitChoice> {
    let readers = Readers::of(module);
    let twice = twice_returning(module);
    let odd = module.odd_targets();
    let reads = module.reads_of_code();
    let linkage = linkage(module);
    let restartable = crate::select::restartable::units(module);
    let data = module.image.data_among_code();
    (0..module.units.len())
        .into_par_iter()
        .with_min_len(64)
        .map(|unit| match refusal(module, unit, &readers, &twice, &linkage) {
            Some(refusal) => UnitChoice::Refused(refusal),
            None if leads_into(module, unit, &data) => UnitChoice::Refused(Refusal::LeadsIntoData),
            None if restartable.contains(&unit) => UnitChoice::Refused(Refusal::RestartableSequence),
            None => UnitChoice::Twin(entry(module, unit, &odd, &reads, behind_entry)),
        })
        .collect()
}

fn refusal(
    module: &Module<'_>,
    index: usize,
    readers: &Readers,
    twice: &HashSet<u64>,
    linkage: &[(u64, u64)],
) -> Option<Refusal> {
    let unit = &module.units[index];
    let decoded = &module.decoded[index];
    if unit.is_overlapped {
        return Some(Refusal::OverlapsAnother);
    }
    if holds(linkage, unit.start) || module.imports.stub(unit.start).is_some() {
        return Some(Refusal::LinkageStub);
    }
    let Some(fde) = unit.fde else { return Some(Refusal::NoUnwindEntry) };
    let fde = &module.frames.fdes[fde as usize];
    let cie = &module.frames.cies[fde.cie as usize];
    if cie.is_signal {
        return Some(Refusal::SignalFrame);
    }
    if decoded.insns.first().is_none_or(|insn| insn.at != 0) {
        return Some(Refusal::NotDecodable);
    }
    if decoded.overlaps {
        return Some(Refusal::OverlappingInstructions);
    }
    if decoded.reads_own_address || Readers::look_back(module, index) {
        return Some(Refusal::ReadsOwnAddress);
    }
    if decoded.calls.iter().any(|&call| readers.hold(module, call)) {
        return Some(Refusal::CallsAddressReader);
    }
    let calls_twice = |slot| matches!(module.imports.slot(slot), Some(Import::Named(n)) if returns_twice(n));
    let code = module.code(index);
    if decoded.calls.iter().any(|call| twice.contains(&call.0) || is_twice_stub(module, *call))
        || decoded
            .insns
            .iter()
            .filter(|insn| insn.flow == Flow::CallIndirect)
            .filter_map(|insn| insn.rip_target(unit.start, code))
            .any(calls_twice)
    {
        return Some(Refusal::CallsTwiceReturning);
    }
    if cie.is_long()
        || Steps::new(module.frames.program(&fde.program)).any(|step| step.is_err())
        || Steps::new(module.frames.program(&cie.program)).any(|step| step.is_err())
        || cie.code_align != 1
        || cie.return_register != 16
    {
        return Some(Refusal::UnportableUnwind);
    }
    match module.exceptions(index) {
        Some(None) => Some(Refusal::UnreadableExceptions),
        Some(Some(lsda)) if !crate::output::exceptions::is_portable(&lsda) => {
            Some(Refusal::UnreadableExceptions)
        }
        _ => None,
    }
}

/// Whether control may get from a unit into these ranges outside of it: nobody looks among data for
/// what would run there.
fn leads_into(module: &Module<'_>, index: usize, data: &[(u64, u64)]) -> bool {
    if data.is_empty() {
        return false;
    }
    let (unit, decoded) = (&module.units[index], &module.decoded[index]);
    let insns = &decoded.insns;
    let escapes = (0..insns.len()).filter(|&insn| escapes_after(insns, insn));
    let behind = escapes.map(|insn| Svma(unit.start.0 + u64::from(insns[insn].end())));
    let mut ways = decoded.jumps_out.iter().chain(&decoded.calls).copied().chain(behind);
    ways.any(|to| !unit.holds(to) && holds(data, to))
}

/// Where the jump to the twin goes: at the entry, or else `behind` it, if all that is before the
/// jump goes on to it.
fn entry(module: &Module<'_>, index: usize, odd: &[Svma], reads: &[(u64, u64)], behind: bool) -> EntryChoice {
    if module.units[index].is_part {
        return EntryChoice::Kept(EntryKept::SplitPart);
    }
    let begin = if module.code(index).starts_with(&ENDBR64) { ENDBR64.len() as u32 } else { 0 };
    let at_entry = patch(module, index, odd, reads, begin);
    if !behind || matches!(at_entry, EntryChoice::Patched(_)) {
        return at_entry;
    }
    let mut reached = 0;
    let code = module.code(index);
    let straight = module.decoded[index].insns.iter().map_while(|insn| {
        // Neither a system call nor a trap, which may go on elsewhere.
        let decoded = Decoder::new(64, insn.bytes(code), DecoderOptions::NONE).decode();
        let goes_on = insn.at == reached && decoded.flow_control() == FlowControl::Next;
        reached = insn.end();
        goes_on.then_some(reached)
    });
    let later = straight.skip_while(|&at| at <= begin).take_while(|&at| at <= LAST_PATCH_AT);
    later
        .map(|at| patch(module, index, odd, reads, at))
        .find(|choice| matches!(choice, EntryChoice::Patched(_)))
        .unwrap_or(at_entry)
}

/// Whether the jump may stand at this offset, between instructions.
fn patch(module: &Module<'_>, index: usize, odd: &[Svma], reads: &[(u64, u64)], patch: u32) -> EntryChoice {
    let unit = &module.units[index];
    let decoded = &module.decoded[index];
    let code = module.code(index);
    let end = patch + PATCH_SIZE;
    if unit.size < end {
        return EntryChoice::Kept(EntryKept::TooShort);
    }
    let (from, to) = (unit.start.0 + u64::from(patch), unit.start.0 + u64::from(end));
    if reads::meet(reads, from, to) {
        return EntryChoice::Kept(EntryKept::Read);
    }
    let inner = patch + 1..end;
    let mut boundaries = 0;
    let mut reached = 0;
    for insn in decoded.insns.iter().take_while(|insn| insn.at < end) {
        if insn.at != reached {
            break;
        }
        boundaries += usize::from(inner.contains(&insn.at));
        reached = insn.end();
    }
    if reached < end {
        return EntryChoice::Kept(EntryKept::NotAllCode);
    }
    let branched_to = |at: u32| {
        let target = Svma(unit.start.0 + u64::from(at));
        odd.binary_search(&target).is_ok()
    };
    let from_inside = || {
        decoded
            .insns
            .iter()
            .filter(|insn| insn.flow != Flow::Next)
            .filter_map(|insn| insn.target(unit.start, code))
            .chain(decoded.tables.iter().flat_map(|table| table.targets.iter().copied()))
            .any(|target| {
                let at = target.0.wrapping_sub(unit.start.0);
                at < u64::from(end) && inner.contains(&(at as u32))
            })
    };
    if inner.clone().any(branched_to)
        || module.roots(index).iter().any(|root| inner.contains(root))
        || from_inside()
    {
        return EntryChoice::Kept(EntryKept::BranchIntoEntry);
    }
    if boundaries > 0 && decoded.open_jumps.iter().any(|jump| !jump.is_pointer) {
        return EntryChoice::Kept(EntryKept::ComputedJumps);
    }
    EntryChoice::Patched(patch)
}

/// The sections of linkage stubs: where each begins and ends, ascending and apart.
fn linkage(module: &Module<'_>) -> Vec<(u64, u64)> {
    module.image.ranges(|section| section.flags & abi::SHF_EXECINSTR != 0 && is_of_stubs(section.name))
}

fn holds(ranges: &[(u64, u64)], address: Svma) -> bool {
    let after = ranges.partition_point(|range| range.0 <= address.0);
    ranges[..after].last().is_some_and(|range| address.0 < range.1)
}

fn twice_returning(module: &Module<'_>) -> HashSet<u64> {
    module
        .symbols
        .all()
        .iter()
        .filter(|symbol| returns_twice(symbol.name))
        .map(|symbol| symbol.address.0)
        .collect()
}

fn is_twice_stub(module: &Module<'_>, call: Svma) -> bool {
    matches!(module.imports.stub(call), Some(Import::Named(name)) if returns_twice(name))
}

fn returns_twice(name: &[u8]) -> bool {
    const NAMES: &[&[u8]] = &[
        b"setjmp",
        b"_setjmp",
        b"__setjmp",
        b"sigsetjmp",
        b"__sigsetjmp",
        b"savectx",
        b"vfork",
        b"__vfork",
        b"getcontext",
        b"__getcontext",
        b"swapcontext",
        b"mcount",
        b"_mcount",
        b"__fentry__",
    ];
    let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    NAMES.contains(&name)
}
