//! Prefetches ahead of loads that walk through memory: before such a load, one instruction that
//! fetches the line which it will read some steps later.
//!
//! ```text
//!   prefetcht0 [rdi + 8*rcx + 4096]     inserted: the load's own address, and a distance
//!   mov rax, [rdi + 8*rcx]
//! ```
//!
//! A prefetch reads registers that the load reads anyhow, writes none and no flags, and never
//! faults. So nothing need be known of the code around it. Loads whose address hangs on what
//! another one reads are in `indexed.rs`. For the same reason a prefetch of the program's own may
//! be left out: a jump over it stands before it.

use crate::TwinError;
use crate::layout::insertions::Insertions;
use crate::modes::indexed;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, OpKind, Register};
use image::Module;
use image::code::regs::RegSet;
use rayon::prelude::*;
use std::collections::BTreeMap;
use units::Svma;

/// By the address of a load in the module: how far ahead, and perhaps several prefetches of it.
pub type Prefetches = BTreeMap<u64, Vec<Ahead>>;

/// How far ahead of a load its data is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// This number of bytes, which may be negative.
    Bytes(i32),
    /// This number of steps of the load that its address comes from.
    Steps(i32),
    /// Not at all: what is there is a prefetch of the program's own, which is jumped over.
    Never,
}

/// All loads that can be prefetched, this many steps or lines ahead: to test what is inserted, not
/// to be faster.
pub fn everywhere(data: &[u8], ahead: i32) -> Result<Prefetches, TwinError> {
    let module = Module::analyse(data, None)?;
    let of_unit = |unit: usize| {
        let all: Vec<Instruction> = module.instructions(unit).collect();
        let one = |at: usize| match indexed::indexed(&all, at) {
            Some(_) => Some((all[at].ip(), vec![Ahead::Steps(ahead)])),
            None if is_own_prefetch(&all[at]) => Some((all[at].ip(), vec![Ahead::Never])),
            None => {
                prefetch(&all[at], LINE * ahead).map(|_| (all[at].ip(), vec![Ahead::Bytes(LINE * ahead)]))
            }
        };
        (0..all.len()).filter_map(one).collect::<Vec<_>>()
    };
    Ok((0..module.units.len()).into_par_iter().flat_map_iter(of_unit).collect())
}

/// Bytes of a cache line.
const LINE: i32 = 64;

/// Whether liveness has to be known.
pub(crate) fn minds_registers(wanted: &Prefetches) -> bool {
    wanted.values().flatten().any(|ahead| matches!(ahead, Ahead::Steps(_)))
}

/// What is put into one unit, of whose instructions this is live before each, if it is known.
pub(crate) fn unit(
    module: &Module<'_>,
    unit: usize,
    wanted: &Prefetches,
    live: Option<&[RegSet]>,
) -> Insertions {
    let mut insertions = Insertions::default();
    let of_unit = &module.units[unit];
    if wanted.range(of_unit.start.0..of_unit.end().0).next().is_none() {
        return insertions;
    }
    let all: Vec<Instruction> = module.instructions(unit).collect();
    let mut code: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (at, load) in all.iter().enumerate() {
        for &ahead in wanted.get(&load.ip()).into_iter().flatten() {
            let found = match ahead {
                Ahead::Bytes(ahead) => prefetch(load, ahead).map(|code| (at, code)),
                Ahead::Steps(steps) => indexed::indexed(&all, at).and_then(|indexed| {
                    let live = *live?.get(indexed.index_load)?;
                    Some((indexed.index_load, indexed.code(&all, load, live, steps)?))
                }),
                Ahead::Never => jump_over(load).map(|code| (at, code)),
            };
            if let Some((at, found)) = found {
                code.entry(at).or_default().extend(found);
            }
        }
    }
    for at in 0..all.len() {
        insertions.push(code.get(&at).map_or(&[], Vec::as_slice));
    }
    insertions
}

/// The prefetches that the function at this address has by itself, as far as they can be left out.
pub fn own_prefetches(module: &Module<'_>, function: u64) -> Vec<u64> {
    let unit = module.unit_at(Svma(function));
    let own = unit.into_iter().flat_map(|unit| module.instructions(unit)).filter(is_own_prefetch);
    own.map(|instruction| instruction.ip()).collect()
}

/// How many bytes ahead of a load its function prefetches by itself, by the same registers.
pub fn own_ahead(module: &Module<'_>, load: u64) -> Option<i64> {
    let unit = module.unit_at(Svma(load))?;
    let wanted = module.instructions(unit).find(|instruction| instruction.ip() == load)?;
    let registers = |one: &Instruction| (one.memory_base(), one.memory_index(), one.memory_index_scale());
    let ahead = |own: Instruction| {
        (own.memory_displacement64() as i64).wrapping_sub(wanted.memory_displacement64() as i64)
    };
    let own =
        module.instructions(unit).filter(|one| is_own_prefetch(one) && registers(one) == registers(&wanted));
    own.map(ahead).min_by_key(|bytes| bytes.abs())
}

/// Whether it is a prefetch of the program's own that can be jumped over.
fn is_own_prefetch(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw, Prefetchwt1};
    let is_one = matches!(
        instruction.mnemonic(),
        Prefetchnta | Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchw | Prefetchwt1
    );
    // One relative to its own place may have another length in its copy.
    is_one && !instruction.is_ip_rel_memory_operand()
}

fn jump_over(instruction: &Instruction) -> Option<Vec<u8>> {
    const JUMP: u8 = 0xeb;
    is_own_prefetch(instruction).then(|| vec![JUMP, instruction.len() as u8])
}

/// The prefetch before a load; `None` if its address cannot be told by its own operand alone.
fn prefetch(load: &Instruction, ahead: i32) -> Option<Vec<u8>> {
    let has_memory = (0..load.op_count()).any(|operand| load.op_kind(operand) == OpKind::Memory);
    let (base, index) = (load.memory_base(), load.memory_index());
    let is_general = |register: Register| register == Register::None || register.is_gpr64();
    let moves = base != Register::None || index != Register::None;
    if !has_memory || !moves || !is_general(base) || !is_general(index) {
        return None;
    }
    if load.segment_prefix() != Register::None || matches!(base, Register::RSP) {
        return None;
    }
    let displacement = (load.memory_displacement64() as i64).checked_add(i64::from(ahead))?;
    i32::try_from(displacement).ok()?;
    let is_short = base != Register::None && i8::try_from(displacement).is_ok();
    let size = if is_short { 1 } else { 8 };
    let operand =
        MemoryOperand::new(base, index, load.memory_index_scale(), displacement, size, false, Register::None);
    let instruction = Instruction::with1(Code::Prefetcht0_m8, operand).ok()?;
    let mut encoder = Encoder::new(64);
    encoder.encode(&instruction, 0).ok()?;
    Some(encoder.take_buffer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn before(bytes: &[u8], ahead: i32) -> Option<String> {
        let load = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        let bytes = prefetch(&load, ahead)?;
        Some(Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE).decode().to_string())
    }

    #[test]
    fn the_loads_own_address_and_a_distance() {
        let says = |bytes: &[u8], ahead| before(bytes, ahead).unwrap();
        assert_eq!(says(&[0x48, 0x8b, 0x04, 0xcf], 4096), "prefetcht0 [rdi+rcx*8+1000h]");
        assert_eq!(says(&[0x48, 0x8b, 0x47, 0xf8], -64), "prefetcht0 [rdi-48h]");
        assert_eq!(says(&[0x8b, 0x14, 0x8d, 0, 0, 0, 0], 64), "prefetcht0 [rcx*4+40h]");
        assert_eq!(says(&[0xf2, 0x0f, 0x10, 0x00], 8), "prefetcht0 [rax+8]");
    }

    #[test]
    fn what_does_not_move_or_is_told_otherwise_has_none() {
        assert_eq!(before(&[0x8b, 0x05, 0x10, 0, 0, 0], 64), None, "mov eax, [rip + 16]");
        assert_eq!(before(&[0x48, 0x8b, 0x44, 0x24, 8], 64), None, "mov rax, [rsp + 8]");
        assert_eq!(before(&[0x64, 0x48, 0x8b, 0x00], 64), None, "mov rax, fs:[rax]");
        assert_eq!(before(&[0x48, 0x01, 0xc8], 64), None, "add rax, rcx");
        assert_eq!(before(&[0x48, 0x8b, 0x87, 0xff, 0xff, 0xff, 0x7f], 64), None, "too far");
    }
}
