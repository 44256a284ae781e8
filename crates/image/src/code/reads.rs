//! Code that is read as data, as far as instructions themselves name the address: a program could
//! see that such code was changed.

use crate::Module;
use crate::elf::joined;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use rayon::prelude::*;

/// More than any instruction reads whose size is not said (those that restore all state).
const MOST: u64 = 1 << 14;

/// The address of an operand in memory that no register has a part in; one that is not relative to
/// the instruction only where addresses are `fixed`.
pub(crate) fn place(instruction: &Instruction, fixed: bool) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let is_plain = fixed
        && (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
        && instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None
        && !matches!(instruction.memory_segment(), Register::FS | Register::GS);
    is_plain.then(|| instruction.memory_displacement64())
}

/// What is read, or written, there: from where to where. Taking the address alone reads nothing.
pub(crate) fn range(instruction: &Instruction, place: u64) -> Option<(u64, u64)> {
    let size = match instruction.memory_size().size() as u64 {
        0 => MOST,
        size => size,
    };
    (instruction.mnemonic() != Mnemonic::Lea).then(|| (place, place.saturating_add(size)))
}

impl Module<'_> {
    /// What instructions read among the code: where each range begins and ends, ascending and
    /// apart.
    pub fn reads_of_code(&self) -> Vec<(u64, u64)> {
        let all = self.decoded.par_iter().with_min_len(256);
        joined(all.flat_map_iter(|decoded| decoded.reads.iter().copied()).collect())
    }
}

/// Whether any of these ranges, which ascend and are apart, has a byte from `from` to `to`.
pub fn meet(ranges: &[(u64, u64)], from: u64, to: u64) -> bool {
    ranges[ranges.partition_point(|range| range.1 <= from)..].first().is_some_and(|range| range.0 < to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn what_is_read_is_where_the_operand_says() {
        let read = |bytes: &[u8], fixed| {
            let insn = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
            place(&insn, fixed).and_then(|place| range(&insn, place))
        };
        assert_eq!(read(&[0x8a, 0x05, 1, 0, 0, 0], false), Some((0x1007, 0x1008)), "mov al, [rip + 1]");
        assert_eq!(
            read(&[0x48, 0x8b, 0x05, 1, 0, 0, 0], false),
            Some((0x1008, 0x1010)),
            "mov rax, [rip + 1]"
        );
        assert_eq!(read(&[0x48, 0x8d, 0x05, 1, 0, 0, 0], false), None, "lea rax, [rip + 1]");
        assert_eq!(
            read(&[0x0f, 0xae, 0x2d, 1, 0, 0, 0], false),
            Some((0x1008, 0x1008 + MOST)),
            "xrstor [rip + 1]"
        );
        assert_eq!(
            read(&[0x0f, 0xb6, 0x04, 0x25, 0, 0x20, 0, 0], true),
            Some((0x2000, 0x2001)),
            "movzx eax, byte [0x2000]"
        );
        assert_eq!(read(&[0x0f, 0xb6, 0x04, 0x25, 0, 0x20, 0, 0], false), None);
        assert_eq!(read(&[0x64, 0x8b, 0x04, 0x25, 0, 0x20, 0, 0], true), None, "mov eax, fs:[0x2000]");
        assert_eq!(read(&[0x8b, 0x04, 0x85, 0, 0x20, 0, 0], true), None, "mov eax, [0x2000 + rax*4]");
    }

    #[test]
    fn ranges_meet_what_they_share_a_byte_with() {
        let ranges = [(4, 8), (10, 11)];
        let met: Vec<u64> = (0..14).filter(|&at| meet(&ranges, at, at + 2)).collect();
        assert_eq!(met, [3, 4, 5, 6, 7, 9, 10]);
    }
}
