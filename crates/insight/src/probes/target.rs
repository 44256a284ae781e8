//! Which load is behind a sample, and how its address is made up.

use crate::code::cause::{Cause, accesses, waited_at_end};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Register};
use image::Image;
use image::unwind::starts::Starts;
use std::collections::{BTreeMap, HashMap};
use units::{FileOffset, Svma};

/// The address of a load: base + index · scale + displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub base: Part,
    pub index: Part,
    pub scale: u8,
    pub displacement: u64,
    /// Relative to the thread pointer.
    pub by_thread: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    None,
    /// The address of the load itself.
    OwnAddress,
    /// A register, by the number that instructions have for it.
    General(u8),
}

/// Larger functions are not looked at: they are no functions, but code without unwind entries.
const LARGEST_FUNCTION: u64 = 512 << 10;

/// The loads behind samples at these places of a file, by their own place.
///
/// The program runs meanwhile, so this is quick, not thorough: a function is decoded from its first
/// byte to its last, and where more than one load may come before, it is the first of them. What a
/// probe tells is true of the load that it stops, whether that is the one or not.
///
/// Of `data`, only headers and `.eh_frame_hdr` are looked at; `code` reads a function's bytes.
pub fn targets(
    data: &[u8],
    sampled: &[FileOffset],
    code: &dyn Fn(FileOffset, usize) -> Option<Vec<u8>>,
) -> BTreeMap<FileOffset, (FileOffset, Operand)> {
    let Ok(image) = Image::parse(data) else { return BTreeMap::new() };
    let Some(starts) = Starts::of(&image) else { return BTreeMap::new() };
    let mut functions: HashMap<Svma, Vec<Instruction>> = HashMap::new();
    let target = |offset: &FileOffset| {
        let address = image.address_of(*offset)?;
        let (start, next) = starts.around(address)?;
        let function = functions.entry(start).or_insert_with(|| decoded(&image, start, next, code));
        let load = load_before(function, address)?;
        Some((*offset, (image.file_offset(Svma(load.ip()))?, operand(load)?)))
    };
    sampled.iter().filter_map(target).collect()
}

fn decoded(
    image: &Image<'_>,
    start: Svma,
    next: Option<Svma>,
    code: &dyn Fn(FileOffset, usize) -> Option<Vec<u8>>,
) -> Vec<Instruction> {
    let there = image.bytes_from(start).map_or(0, <[u8]>::len) as u64;
    let size = next.map_or(there, |next| next.0 - start.0).min(there);
    let is_function = (1..=LARGEST_FUNCTION).contains(&size);
    let bytes = image.file_offset(start).filter(|_| is_function).and_then(|at| code(at, size as usize));
    let bytes = bytes.unwrap_or_default();
    Decoder::with_ip(64, &bytes, start.0, DecoderOptions::NONE).into_iter().collect()
}

/// The load that is executed before the instruction at an address.
fn load_before(function: &[Instruction], address: Svma) -> Option<&Instruction> {
    let index = function.binary_search_by_key(&address.0, Instruction::ip).ok()?;
    let falls_through = |instruction: &Instruction| {
        matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
    };
    let in_front = index.checked_sub(1).filter(|&before| falls_through(&function[before]));
    let jumps_here = |(_, instruction): &(usize, &Instruction)| {
        let is_branch = matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        is_branch && instruction.near_branch_target() == address.0
    };
    let branches = function.iter().enumerate().filter(jumps_here).map(|(at, _)| at);
    in_front.into_iter().chain(branches).find_map(|last| {
        let Cause::Load(load) = waited_at_end(&function[last.saturating_sub(1)..=last]) else { return None };
        function[last.saturating_sub(1)..=last].iter().find(|instruction| instruction.ip() == load.0)
    })
}

/// The one operand in memory that an instruction has, if its address is made of what a thread's
/// registers hold.
fn operand(load: &Instruction) -> Option<Operand> {
    let accesses = accesses(load);
    let [memory] = accesses[..] else { return None };
    if memory.segment() == Register::GS || !matches!(memory.address_size(), iced_x86::CodeSize::Code64) {
        return None;
    }
    let by_thread = memory.segment() == Register::FS;
    // The decoder has worked out the displacement, as an address of the file.
    if load.is_ip_rel_memory_operand() && memory.base() == Register::None {
        let displacement = memory.displacement().wrapping_sub(load.ip());
        let (base, index) = (Part::OwnAddress, Part::None);
        return Some(Operand { base, index, scale: 1, displacement, by_thread });
    }
    let part = |register: Register| match register {
        Register::None => Some(Part::None),
        register if register.is_gpr64() => Some(Part::General(register.number() as u8)),
        _ => None,
    };
    Some(Operand {
        base: part(memory.base())?,
        index: part(memory.index())?,
        scale: u8::try_from(memory.scale()).ok()?,
        displacement: memory.displacement(),
        by_thread,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_in_front_or_at_the_end_of_what_jumps_there() {
        let code = [
            0x48, 0x8b, 0x07, // 1000 mov rax, [rdi]
            0x48, 0x01, 0xc3, // 1003 add rbx, rax       <- 1009
            0x48, 0xff, 0xc7, // 1006 inc rdi
            0x48, 0x39, 0x1e, // 1009 cmp [rsi], rbx
            0x75, 0xf5, // 100c jne 1003
            0xeb, 0xf6, // 100e jmp 1006
            0x90, // 1010 nop
        ];
        let function: Vec<Instruction> =
            Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE).into_iter().collect();
        let before = |at| load_before(&function, Svma(at)).map(Instruction::ip);
        assert_eq!(before(0x1003), Some(0x1000), "the one in front comes first");
        assert_eq!(before(0x1006), None, "an addition, and a jump behind a comparison that is not its own");
        assert_eq!(before(0x100e), Some(0x1009), "a comparison and its branch are one");
        assert_eq!((before(0x1000), before(0x1001), before(0x1010)), (None, None, None));
        let second: Vec<Instruction> = function[1..].to_vec();
        assert_eq!(load_before(&second, Svma(0x1003)).map(Instruction::ip), Some(0x1009), "from behind");
    }

    #[test]
    fn addresses_are_made_of_registers() {
        let told =
            |bytes: &[u8]| operand(&Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode());
        let plain = Operand {
            base: Part::General(7),
            index: Part::None,
            scale: 1,
            displacement: 8,
            by_thread: false,
        };
        assert_eq!(told(&[0x48, 0x8b, 0x47, 0x08]), Some(plain), "mov rax, [rdi + 8]");
        let indexed = Operand { index: Part::General(1), scale: 4, displacement: 0, ..plain };
        assert_eq!(told(&[0x8b, 0x14, 0x8f]), Some(indexed), "mov edx, [rdi + rcx*4]");
        let back = Operand { displacement: (-8_i64) as u64, ..plain };
        assert_eq!(told(&[0x48, 0x8b, 0x47, 0xf8]), Some(back), "mov rax, [rdi - 8]");
        let own = Operand { base: Part::OwnAddress, displacement: 0x16, ..plain };
        assert_eq!(told(&[0x8b, 0x05, 0x10, 0, 0, 0]), Some(own), "mov eax, [rip + 16]");
        let stack = Operand { base: Part::General(4), displacement: 0, ..plain };
        assert_eq!(told(&[0x58]), Some(stack), "pop rax");
        let thread = told(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]).unwrap();
        assert!(thread.by_thread && thread.base == Part::None && thread.displacement == 0x28);
        assert_eq!(told(&[0x67, 0x8b, 0x07]), None, "mov eax, [edi]");
        assert_eq!(told(&[0xc4, 0xe2, 0x7d, 0x92, 0x04, 0x0f]), None, "a gather");
        assert_eq!(told(&[0xa4]), None, "movsb reads and writes");
    }
}
