//! Loops that busy-wait: for a time, or for memory that another thread writes.
//!
//! A loop in which no round leaves anything to the next one (no register, no place in the frame),
//! which stores nowhere else and calls nothing but what tells the time, can only end by the clock
//! or by a store of another thread. So all of its iterations but the last are idle, and a guest
//! that runs meanwhile takes nothing from the program. A loop that says `pause` says so itself.
//!
//! To let another call be part of a wait: its name in [`TELLS_TIME`].

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};
use image::Module;
use image::code::effects::effect;
use image::code::regs::RegSet;
use image::elf::imports::Import;
use image::flow::loops::Loop;
use image::loads::{Base, Place, Region, Unit};
use records::plan::{Spin, WaitsFor};
use units::Svma;

/// Functions that tell the time and change nothing but what they are given, or give way to others.
const TELLS_TIME: &[&[u8]] = &[
    b"clock_gettime",
    b"__clock_gettime",
    b"clock_gettime64",
    b"gettimeofday",
    b"__gettimeofday",
    b"time",
    b"clock",
    b"timespec_get",
    b"sched_yield",
    b"__sched_yield",
    b"pthread_yield",
    b"_ZNSt6chrono3_V212steady_clock3nowEv",
    b"_ZNSt6chrono3_V212system_clock3nowEv",
];

/// So deep are functions of the module looked into.
const DEPTH: u32 = 3;

/// A loop that waits.
pub(super) struct Wait {
    /// The instruction before which to yield.
    at: u32,
    waits_for: WaitsFor,
    depth: u32,
}

impl Wait {
    pub(super) fn told(self, module: &Module<'_>, index: usize, unit: &Unit, live: &[RegSet]) -> Spin {
        let address = unit.instructions[self.at as usize].ip();
        Spin {
            place: super::place(module, index, address),
            waits_for: self.waits_for,
            loop_depth: self.depth,
            live: super::saved(live.get(self.at as usize).copied().unwrap_or(RegSet::ALL)).into(),
        }
    }
}

/// The waits of a unit, one for each place.
pub(super) fn of(module: &Module<'_>, unit: &Unit, live: &[RegSet]) -> Vec<Wait> {
    let mut found: Vec<Wait> = Vec::new();
    for (number, around) in unit.loops.all.iter().enumerate() {
        let innermost = !unit.loops.all.iter().any(|other| other.parent == Some(number as u32));
        let Some(waits_for) = waits(module, unit, around, innermost, live) else { continue };
        let at = turning_point(unit, around);
        if !found.iter().any(|other| other.at == at) {
            found.push(Wait { at, waits_for, depth: around.depth });
        }
    }
    found
}

/// The instruction that a round passes only if there is another one, or else its first.
fn turning_point(unit: &Unit, around: &Loop) -> u32 {
    let pauses =
        instructions(unit, around).find(|&at| unit.instructions[at as usize].mnemonic() == Mnemonic::Pause);
    if let Some(pause) = pauses {
        return pause;
    }
    match around.latches[..] {
        // A block of its own that leads nowhere but back.
        [latch] if latch != around.header && unit.cfg.edges_from(latch as usize).len() == 1 => {
            unit.cfg.blocks[latch as usize].first
        }
        _ => unit.cfg.blocks[around.header as usize].first,
    }
}

fn instructions<'u>(unit: &'u Unit, around: &'u Loop) -> impl Iterator<Item = u32> + 'u {
    around.body.iter().flat_map(|&block| {
        let block = unit.cfg.blocks[block as usize];
        block.first..block.end
    })
}

fn waits(
    module: &Module<'_>,
    unit: &Unit,
    around: &Loop,
    innermost: bool,
    live: &[RegSet],
) -> Option<WaitsFor> {
    let all = || instructions(unit, around).map(|at| (at, &unit.instructions[at as usize]));
    if innermost && all().any(|(_, instruction)| instruction.mnemonic() == Mnemonic::Pause) {
        return Some(WaitsFor::Pause);
    }
    let mut waits_for = None;
    for (at, instruction) in all() {
        if unit.is_call(at) {
            if !tells_time(module, instruction, DEPTH) {
                return None;
            }
            waits_for = Some(WaitsFor::Clock);
        } else if matches!(instruction.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp) {
            waits_for = Some(WaitsFor::Clock);
        } else if !is_harmless(unit, at) {
            return None;
        } else if unit.access(at).is_some_and(|access| access.read) && !in_frame(unit, at) {
            waits_for = waits_for.or(Some(WaitsFor::Memory));
        }
    }
    (waits_for.is_some() && leaves_nothing(unit, around, live)).then_some(waits_for).flatten()
}

/// Whether nothing that a round writes is read by the next one before it is written there.
fn leaves_nothing(unit: &Unit, around: &Loop, live: &[RegSet]) -> bool {
    let first = unit.cfg.blocks[around.header as usize].first;
    let entering = live.get(first as usize).copied().unwrap_or(RegSet::ALL);
    let region = Region { unit, around: Some(around) };
    let comes_from_before = |place, at| {
        let last = region.reaching(place, at);
        !last.definitions.is_empty() && last.from_outside
    };
    let in_frame = instructions(unit, around).any(|at| match unit.near(at) {
        Some(place @ Place::Slot(_, offset)) if unit.access(at).is_some_and(|access| access.read) => {
            offset == i64::MIN || comes_from_before(place, at)
        }
        _ => false,
    });
    if in_frame {
        return false;
    }
    if !instructions(unit, around).any(|at| unit.is_call(at)) {
        let kept = RegSet::of(Register::RSP) | RegSet::ARITHMETIC_FLAGS;
        let written = instructions(unit, around).fold(RegSet::EMPTY, |all, at| all | unit.writes(at));
        return !(written & !kept).meets(entering);
    }
    // What a call is given seems to be live before it; and what comes through one is in general
    // registers, or in the frame.
    let mut factory = InstructionInfoFactory::new();
    !instructions(unit, around).filter(|&at| !unit.is_call(at)).any(|at| {
        let reads = effect(&unit.instructions[at as usize], &mut factory).reads;
        (0..16_u8)
            .filter(|&number| u32::from(number) != Register::RSP.number() as u32)
            .filter(|&number| reads.meets(RegSet::general(u32::from(number))))
            .any(|number| comes_from_before(Place::General(number), at))
    })
}

fn in_frame(unit: &Unit, at: u32) -> bool {
    matches!(unit.near(at), Some(Place::Slot(Base::Stack | Base::Frame, _)))
}

/// Whether an instruction that is no call changes nothing but registers and known places of its
/// frame, and is none that acts on more than memory.
fn is_harmless(unit: &Unit, at: u32) -> bool {
    let instruction = &unit.instructions[at as usize];
    let stores = unit.access(at).is_some_and(|access| access.written);
    let known = matches!(unit.near(at), Some(Place::Slot(_, offset)) if offset != i64::MIN);
    (!stores || known) && !instruction.has_lock_prefix() && !acts(instruction)
}

fn acts(instruction: &Instruction) -> bool {
    let strings =
        instruction.has_rep_prefix() || instruction.has_repne_prefix() || instruction.is_string_instruction();
    let mnemonic = instruction.mnemonic();
    strings
        || instruction.is_privileged()
        || matches!(
            mnemonic,
            Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int | Mnemonic::Int3 | Mnemonic::Xchg
        )
        || matches!(mnemonic, Mnemonic::Push | Mnemonic::Pop) && instruction.op0_register() == Register::RSP
}

/// Whether a call does nothing but tell the time.
fn tells_time(module: &Module<'_>, call: &Instruction, depth: u32) -> bool {
    let listed = |name: &[u8]| TELLS_TIME.contains(&name.split(|&byte| byte == b'@').next().unwrap_or(name));
    let imported = |import| matches!(import, Some(Import::Named(name)) if listed(name));
    if call.is_call_near_indirect() {
        return call.is_ip_rel_memory_operand()
            && imported(module.imports.slot(Svma(call.ip_rel_memory_address())));
    }
    let target = Svma(call.near_branch64());
    if module.imports.stub(target).is_some() {
        return imported(module.imports.stub(target));
    }
    let Some(index) = module.unit_at(target).filter(|&unit| module.units[unit].start == target) else {
        return false;
    };
    if module.name(index).is_some_and(listed) {
        return true;
    }
    let decoded = &module.decoded[index];
    if depth == 0 || decoded.overlaps || decoded.insns.is_empty() || decoded.insns.len() > 200 {
        return false;
    }
    let unit = Unit::of(module, index);
    let mut told = false;
    unit.loops.all.is_empty()
        && (0..unit.instructions.len() as u32).all(|at| {
            let instruction = &unit.instructions[at as usize];
            if unit.is_call(at) {
                let tells = tells_time(module, instruction, depth - 1);
                told |= tells;
                // The check of a stack protector never comes back, and is never made.
                return tells || never_comes_back(module, instruction);
            }
            told |= matches!(instruction.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp);
            is_harmless(&unit, at)
        })
        && told
}

fn never_comes_back(module: &Module<'_>, call: &Instruction) -> bool {
    let named = |import| matches!(import, Some(Import::Named(name)) if name == b"__stack_chk_fail");
    if call.is_call_near_indirect() {
        return call.is_ip_rel_memory_operand()
            && named(module.imports.slot(Svma(call.ip_rel_memory_address())));
    }
    named(module.imports.stub(Svma(call.near_branch64())))
}
