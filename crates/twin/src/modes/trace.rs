//! The address of each memory access, written down just before it.
//!
//! ```text
//!         mov   fs:[FIRST], rcx
//!         mov   fs:[SECOND], rdx
//!         lea   rdx, [rdi + 8*rcx]        the access's own operand
//! check:  movzx ecx, word fs:[CURSOR]
//!         jrcxz full                      at a chunk's end, or there is none
//!         mov   rcx, fs:[CURSOR]
//!         lea   rcx, [rcx + 16]
//!         mov   fs:[CURSOR], rcx          first: a signal's handler writes behind
//!         mov   [rcx - 16], rdx
//!         mov   rdx, PLACE
//!         mov   [rcx - 8], rdx
//!         jmp   done
//! full:   mov   rcx, fs:[FULL]
//!         jrcxz done                      this thread writes nothing down
//!         lea   rcx, [rip + check]
//!         mov   fs:[RETURN], rcx
//!         jmp   fs:[FULL]
//! done:   mov   rdx, fs:[SECOND]
//!         mov   rcx, fs:[FIRST]
//!         mov   rax, [rdi + 8*rcx]        the copy
//! ```
//!
//! No flag is written and the stack is not touched, so nothing need be known of the code around it.

use crate::layout::insertions::{Insertions, Part, Piece, Reference};
use iced_x86::{
    Code, CodeSize, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, OpAccess, Register,
    UsedMemory,
};
use image::Module;
use twin_format::trace::{COUNT, CURSOR, FIRST, FULL, Place, RETURN, SECOND};

/// What is put into one unit.
pub(crate) fn unit(module: &Module<'_>, unit: usize, number: u16) -> Insertions {
    let mut insertions = Insertions::default();
    let mut factory = InstructionInfoFactory::new();
    let mut piece = Piece::default();
    for instruction in module.instructions(unit) {
        piece.clear();
        before(&instruction, number, &mut factory, &mut piece.hot);
        insertions.push_piece(&piece);
    }
    insertions
}

/// What tells the accesses of one instruction.
fn before(instruction: &Instruction, number: u16, factory: &mut InstructionInfoFactory, part: &mut Part) {
    let Ok(address) = u32::try_from(instruction.ip()) else { return };
    let is_repeated = (instruction.has_rep_prefix() || instruction.has_repne_prefix())
        && instruction.is_string_instruction();
    let mut counted = is_repeated;
    for (access, memory) in (0..COUNT).zip(factory.info(instruction).used_memory()) {
        let Some((lea, target)) = address_of(memory) else { continue };
        if counted {
            counted = false;
            let (count, _) = lea_of(Register::RCX, Register::None, 1, 0).unwrap_or_default();
            entry(part, &count, None, false, Place { address, module: number, access: COUNT });
        }
        let is_local = memory.segment() == Register::FS;
        entry(part, &lea, target, is_local, Place { address, module: number, access });
    }
}

/// `lea rdx` of what an instruction accesses, and the target if it is relative to RIP; `None` for
/// what is no access, or whose address is not told by general registers.
fn address_of(memory: &UsedMemory) -> Option<(Vec<u8>, Option<u64>)> {
    if memory.access() == OpAccess::NoMemAccess || memory.address_size() != CodeSize::Code64 {
        return None;
    }
    if memory.vsib_size() != 0 || memory.segment() == Register::GS {
        return None;
    }
    if memory.base() == Register::RIP {
        return Some((vec![0x48, 0x8d, 0x15, 0, 0, 0, 0], Some(memory.displacement())));
    }
    lea_of(memory.base(), memory.index(), memory.scale(), memory.displacement() as i64)
}

fn lea_of(base: Register, index: Register, scale: u32, displacement: i64) -> Option<(Vec<u8>, Option<u64>)> {
    let is_general = |register: Register| register == Register::None || register.is_gpr64();
    if !is_general(base) || !is_general(index) {
        return None;
    }
    i32::try_from(displacement).ok()?;
    let is_short = base != Register::None && i8::try_from(displacement).is_ok();
    let size = if is_short { 1 } else { 8 };
    let operand = MemoryOperand::new(base, index, scale, displacement, size, false, Register::None);
    let lea = Instruction::with2(Code::Lea_r64_m, Register::RDX, operand).ok()?;
    let mut encoder = Encoder::new(64);
    encoder.encode(&lea, 0).ok()?;
    Some((encoder.take_buffer(), None))
}

/// `mov fs:[at], reg` and its reverse, by the second byte of the opcode and the register's number.
fn local(part: &mut Part, opcode: u8, register: u8, at: u32) {
    part.bytes.extend([0x64, 0x48, opcode, register << 3 | 4, 0x25]);
    part.bytes.extend(at.to_le_bytes());
}

const STORE: u8 = 0x89;
const LOAD: u8 = 0x8b;
const RCX: u8 = 1;
const RDX: u8 = 2;

fn entry(part: &mut Part, lea: &[u8], target: Option<u64>, is_local: bool, place: Place) {
    local(part, STORE, RCX, FIRST);
    local(part, STORE, RDX, SECOND);
    part.bytes.extend(lea);
    if let Some(target) = target {
        part.references.push((part.bytes.len() as u32 - 4, Reference::Address(target)));
    }
    if is_local {
        local(part, LOAD, RCX, 0);
        part.bytes.extend([0x48, 0x8d, 0x14, 0x0a]); // lea rdx, [rdx + rcx]
    }
    let check = part.bytes.len();
    part.bytes.extend([0x64, 0x0f, 0xb7, 0x0c, 0x25]); // movzx ecx, word fs:[CURSOR]
    part.bytes.extend(CURSOR.to_le_bytes());
    let to_full = jump(part, JRCXZ);
    local(part, LOAD, RCX, CURSOR);
    part.bytes.extend([0x48, 0x8d, 0x49, 0x10]); // lea rcx, [rcx + 16]
    local(part, STORE, RCX, CURSOR);
    part.bytes.extend([0x48, 0x89, 0x51, 0xf0]); // mov [rcx - 16], rdx
    part.bytes.extend([0x48, 0xba]); // mov rdx, imm64
    part.bytes.extend(place.encode().to_le_bytes());
    part.bytes.extend([0x48, 0x89, 0x51, 0xf8]); // mov [rcx - 8], rdx
    let to_done = jump(part, JMP);
    land(part, to_full);
    local(part, LOAD, RCX, FULL);
    let past = jump(part, JRCXZ);
    part.bytes.extend([0x48, 0x8d, 0x0d]); // lea rcx, [rip + check]
    let back = check as i32 - (part.bytes.len() as i32 + 4);
    part.bytes.extend(back.to_le_bytes());
    local(part, STORE, RCX, RETURN);
    part.bytes.extend([0x64, 0xff, 0x24, 0x25]); // jmp fs:[FULL]
    part.bytes.extend(FULL.to_le_bytes());
    land(part, to_done);
    land(part, past);
    local(part, LOAD, RDX, SECOND);
    local(part, LOAD, RCX, FIRST);
}

const JRCXZ: u8 = 0xe3;
const JMP: u8 = 0xeb;

/// A short jump whose distance is not known yet; where that distance stands.
fn jump(part: &mut Part, opcode: u8) -> usize {
    part.bytes.extend([opcode, 0]);
    part.bytes.len() - 1
}

/// Leads a short jump to here.
fn land(part: &mut Part, jump: usize) {
    part.bytes[jump] = (part.bytes.len() - jump - 1) as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn told(bytes: &[u8]) -> Vec<String> {
        let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        let mut part = Part::default();
        before(&instruction, 3, &mut InstructionInfoFactory::new(), &mut part);
        let mut lines = Vec::new();
        let decoder = Decoder::with_ip(64, &part.bytes, 0x2000, DecoderOptions::NONE);
        for instruction in decoder {
            assert!(!instruction.is_invalid());
            lines.push(instruction.to_string());
        }
        lines
    }

    #[test]
    fn the_code_before_a_load() {
        assert_eq!(
            told(&[0x48, 0x8b, 0x04, 0xcf]), // mov rax, [rdi + 8*rcx]
            [
                "mov fs:[80h],rcx",
                "mov fs:[88h],rdx",
                "lea rdx,[rdi+rcx*8]",
                "movzx ecx,word ptr fs:[98h]",
                "jrcxz 000000000000204Ch",
                "mov rcx,fs:[98h]",
                "lea rcx,[rcx+10h]",
                "mov fs:[98h],rcx",
                "mov [rcx-10h],rdx",
                "mov rdx,300001000h",
                "mov [rcx-8],rdx",
                "jmp short 000000000000206Fh",
                "mov rcx,fs:[0A0h]",
                "jrcxz 000000000000206Fh",
                "lea rcx,[2017h]",
                "mov fs:[90h],rcx",
                "jmp qword ptr fs:[0A0h]",
                "mov rdx,fs:[88h]",
                "mov rcx,fs:[80h]",
            ]
        );
    }

    /// The operands whose addresses are taken.
    fn operands(bytes: &[u8]) -> Vec<String> {
        let lines = told(bytes);
        let takes = |line: &&String| line.starts_with("lea rdx");
        lines.iter().filter(takes).map(|line| line["lea rdx,".len()..].to_owned()).collect()
    }

    #[test]
    fn what_is_an_access() {
        assert_eq!(operands(&[0x55]), ["[rsp-8]"], "push rbp");
        assert_eq!(operands(&[0xc3]), ["[rsp]"], "ret");
        assert_eq!(operands(&[0x48, 0x01, 0x07]), ["[rdi]"], "add [rdi], rax");
        assert_eq!(operands(&[0x64, 0x48, 0x8b, 0x03]), ["[rbx]", "[rdx+rcx]"], "mov rax, fs:[rbx]");
        assert_eq!(operands(&[0xf3, 0xa4]), ["[rcx]", "[rdi]", "[rsi]"], "rep movsb");
        assert_eq!(operands(&[0x48, 0x8d, 0x07]), [""; 0], "lea rax, [rdi]");
        assert_eq!(operands(&[0x0f, 0x1f, 0x00]), [""; 0], "nop [rax]");
        assert_eq!(operands(&[0x65, 0x48, 0x8b, 0x03]), [""; 0], "mov rax, gs:[rbx]");
        assert_eq!(operands(&[0xc4, 0xe2, 0x7d, 0x90, 0x04, 0x88]), [""; 0], "a gather");
    }
}
