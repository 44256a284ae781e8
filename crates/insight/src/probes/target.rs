//! Which load is behind a sample, and how its address is made up.

use crate::code::{Cause, Code, accesses};
use iced_x86::{Instruction, Register};
use image::{Image, Module};
use std::collections::BTreeMap;
use units::FileOffset;

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

/// The loads behind samples at these places of a file, by their own place.
pub fn targets(data: &[u8], sampled: &[FileOffset]) -> BTreeMap<FileOffset, (FileOffset, Operand)> {
    let Ok(image) = Image::parse(data) else { return BTreeMap::new() };
    let stated = sampled.iter().filter_map(|offset| image.address_of(*offset));
    let Ok(module) = Module::around(data, None, stated) else { return BTreeMap::new() };
    let code = Code::of(module, false);
    let target = |offset: &FileOffset| {
        let Cause::Load(load) = code.cause(image.address_of(*offset)?) else { return None };
        let operand = operand(&code.instruction(load)?)?;
        Some((*offset, (image.file_offset(load)?, operand)))
    };
    sampled.iter().filter_map(target).collect()
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
    use iced_x86::{Decoder, DecoderOptions};

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
