//! Rule R7 for trace twins: what stands before a copy writes down addresses that this instruction
//! accesses, and leaves everything else as it was.
//!
//! The code is a fixed sequence of bytes with two gaps: the operand whose address is taken, and the
//! place. So that it preserves registers, flags and stack is seen once, here, and each copy of it
//! is compared byte by byte. The operand is compared with what the decoder says that the
//! instruction accesses.

use crate::decode::{Opinion, Second};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpAccess, Register, UsedMemory};
use twin_format::trace::{COUNT, CURSOR, FIRST, FULL, Place, RETURN, SECOND};

/// `mov fs:[at], reg`, `mov reg, fs:[at]`.
const fn local(opcode: u8, register: u8, at: u32) -> [u8; 9] {
    let [a, b, c, d] = at.to_le_bytes();
    [0x64, 0x48, opcode, register << 3 | 4, 0x25, a, b, c, d]
}

const STORE: u8 = 0x89;
const LOAD: u8 = 0x8b;
const RCX: u8 = 1;
const RDX: u8 = 2;

/// What one entry is made of, from its begin.
struct Reading<'c> {
    code: &'c [u8],
    at: usize,
}

impl Reading<'_> {
    fn is(&mut self, bytes: &[u8]) -> bool {
        let is = self.code[self.at..].starts_with(bytes);
        if is {
            self.at += bytes.len();
        }
        is
    }

    fn all(&mut self, pieces: &[&[u8]]) -> bool {
        pieces.iter().all(|piece| self.is(piece))
    }
}

/// Whether `code`, at `address`, is entries for accesses of `insn`, each at most once; what is
/// wrong if not.
pub(super) fn check(
    code: &[u8],
    address: u64,
    insn: &Instruction,
    second: &mut Second,
) -> Result<(), &'static str> {
    let accesses = second.accessed(insn);
    let mut reading = Reading { code, at: 0 };
    let mut told = 0_u16;
    while reading.at < code.len() {
        let (place, lea, is_local) = entry(&mut reading, address, second)?;
        if u64::from(place.address) != insn.ip() {
            return Err("an entry for another instruction than the one behind it");
        }
        if told & 1 << place.access != 0 {
            return Err("two entries for the same access");
        }
        told |= 1 << place.access;
        let is_right = if place.access == COUNT {
            is_counted(insn) && is_of(&lea, Register::RCX) && !is_local
        } else {
            accesses.get(usize::from(place.access)).is_some_and(|access| is_same(&lea, is_local, access))
        };
        if !is_right {
            return Err("an entry with another address than the instruction accesses");
        }
    }
    Ok(())
}

/// One entry: its place, the instruction that takes the address, and whether the thread pointer is
/// added to it.
fn entry(
    reading: &mut Reading<'_>,
    address: u64,
    second: &mut Second,
) -> Result<(Place, Instruction, bool), &'static str> {
    const OTHER: &str = "inserted code that is no entry of a trace";
    if !reading.all(&[&local(STORE, RCX, FIRST), &local(STORE, RDX, SECOND)]) {
        return Err(OTHER);
    }
    let rest = &reading.code[reading.at..];
    let lea = Decoder::with_ip(64, rest, address + reading.at as u64, DecoderOptions::NONE).decode();
    let takes = lea.mnemonic() == Mnemonic::Lea && lea.op0_register() == Register::RDX;
    if lea.is_invalid() || !takes || lea.segment_prefix() != Register::None {
        return Err(OTHER);
    }
    if matches!(second.of(rest, &lea, false), Opinion::Contradicts(_)) {
        return Err("the decoders read an inserted instruction differently");
    }
    reading.at += lea.len();
    let is_local = reading.all(&[&local(LOAD, RCX, 0)]);
    if is_local && !reading.is(&[0x48, 0x8d, 0x14, 0x0a]) {
        return Err(OTHER);
    }
    // movzx ecx, word fs:[CURSOR]
    let mut low = [0x64, 0x0f, 0xb7, 0x0c, 0x25, 0, 0, 0, 0];
    low[5..].copy_from_slice(&CURSOR.to_le_bytes());
    let is_cursor = reading.all(&[
        &low,
        &[0xe3, 0x2a], // jrcxz full
        &local(LOAD, RCX, CURSOR),
        &[0x48, 0x8d, 0x49, 0x10], // lea rcx, [rcx + 16]
        &local(STORE, RCX, CURSOR),
        &[0x48, 0x89, 0x51, 0xf0], // mov [rcx - 16], rdx
        &[0x48, 0xba],             // mov rdx, imm64
    ]);
    let place = reading.code.get(reading.at..reading.at + 8).filter(|_| is_cursor).ok_or(OTHER)?;
    let place = u64::from_le_bytes(place.try_into().map_err(|_| OTHER)?);
    reading.at += 8;
    let mut jump = [0x64, 0xff, 0x24, 0x25, 0, 0, 0, 0];
    jump[4..].copy_from_slice(&FULL.to_le_bytes());
    let is_end = reading.all(&[
        &[0x48, 0x89, 0x51, 0xf8], // mov [rcx - 8], rdx
        &[0xeb, 0x23],             // jmp done
        &local(LOAD, RCX, FULL),   // full:
        &[0xe3, 0x18],             // jrcxz done
        // lea rcx, [rip + …], to the begin of the movzx
        &[0x48, 0x8d, 0x0d, 0xb9, 0xff, 0xff, 0xff],
        &local(STORE, RCX, RETURN),
        &jump,
        &local(LOAD, RDX, SECOND), // done:
        &local(LOAD, RCX, FIRST),
    ]);
    let told = place;
    let place = Place::decode(told);
    if !is_end || place.access > COUNT || place.encode() != told {
        return Err(OTHER);
    }
    Ok((place, lea, is_local))
}

/// A string instruction that is repeated RCX times.
fn is_counted(insn: &Instruction) -> bool {
    insn.is_string_instruction() && (insn.has_rep_prefix() || insn.has_repne_prefix())
}

fn is_of(lea: &Instruction, register: Register) -> bool {
    lea.memory_base() == register && lea.memory_index() == Register::None && lea.memory_displacement64() == 0
}

fn is_same(lea: &Instruction, is_local: bool, access: &UsedMemory) -> bool {
    let is_access = access.access() != OpAccess::NoMemAccess && access.segment() != Register::GS;
    let is_scaled = lea.memory_index() != Register::None;
    is_access
        && lea.memory_base() == access.base()
        && lea.memory_index() == access.index()
        && (!is_scaled || lea.memory_index_scale() == access.scale())
        && lea.memory_displacement64() == access.displacement()
        && is_local == (access.segment() == Register::FS)
}
