//! Rule R4: when an instruction and its copy do the same. Only encodings are looked at here, not
//! where branches lead.

use crate::container::read::Reader;
use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction};

/// Whether `copy` is `original` but for the displacement at `at` of `size` bytes.
fn equal_around(original: &[u8], copy: &[u8], at: usize, size: usize) -> bool {
    original.len() == copy.len() && original[..at] == copy[..at] && original[at + size..] == copy[at + size..]
}

/// A copy of an instruction whose operand is relative to its own address; `moved`: how far the
/// copy's end lies from the original's. EIP-relative addresses are 32 bits wide.
pub(crate) fn relative_operand(
    original: &[u8],
    copy: &[u8],
    offsets: ConstantOffsets,
    narrow: bool,
    moved: u64,
) -> bool {
    let (at, size) = (offsets.displacement_offset(), offsets.displacement_size());
    if size != 4 || at + size > original.len() || !equal_around(original, copy, at, size) {
        return false;
    }
    let (Some(old), Some(new)) = (Reader::new(original, at).signed(4), Reader::new(copy, at).signed(4))
    else {
        return false;
    };
    let difference = (new as u64).wrapping_add(moved).wrapping_sub(old as u64);
    if narrow { difference as u32 == 0 } else { difference == 0 }
}

/// Where the copy of a direct branch or call leads, `end` being the address behind it; `None` if it
/// is no copy: another operation, prefix or condition.
pub(crate) fn branch_target(original: &[u8], copy: &[u8], end: u64) -> Option<u64> {
    let displacement = displacement_size(original)?;
    let place = if original.len() == copy.len() {
        let at = original.len() - displacement;
        equal_around(original, copy, at, displacement).then_some((at, displacement))?
    } else if displacement == 1 {
        let head = original.len() - 2;
        let operation = original[head];
        let prefixed = copy.strip_prefix(&original[..head])?;
        let long = match (operation, prefixed) {
            (0xeb, [0xe9, ..]) => 5,
            (0x70..=0x7f, [0x0f, second, ..]) if *second == operation + 0x10 => 6,
            (0xe0..=0xe3, [first, 2, 0xeb, 5, 0xe9, ..]) if *first == operation => 9,
            _ => return None,
        };
        (prefixed.len() == long).then_some((copy.len() - 4, 4))?
    } else {
        return None;
    };
    Some(end.wrapping_add(Reader::new(copy, place.0).signed(place.1)? as u64))
}

/// Where a copy that goes through a slot takes its target from, `end` being the address behind it:
/// `call [rip + d]` for a plain direct call, `jmp [rip + d]` for a plain direct jump. `None` if it
/// is neither.
pub(crate) fn slot(original: &[u8], copy: &[u8], end: u64) -> Option<u64> {
    match (original, copy) {
        ([0xe8, _, _, _, _], [0xff, 0x15, ..]) | ([0xe9, _, _, _, _], [0xff, 0x25, ..])
            if copy.len() == 6 =>
        {
            Some(end.wrapping_add(Reader::new(copy, 2).signed(4)? as u64))
        }
        _ => None,
    }
}

/// What a linkage stub is, which does nothing but jump through its slot, found at `at`:
/// `[endbr64] [bnd] jmp [rip + d]`. Gives its size, and the address of the slot.
pub(crate) fn stub(bytes: &[u8], at: u64) -> Option<(u64, u64)> {
    let mut reader = Reader::new(bytes, 0);
    if bytes.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) {
        reader.bytes(4)?;
    }
    let mut first = reader.byte()?;
    if first == 0xf2 {
        first = reader.byte()?;
    }
    if first != 0xff || reader.byte()? != 0x25 {
        return None;
    }
    let distance = reader.signed(4)?;
    Some((reader.at as u64, at.wrapping_add(reader.at as u64).wrapping_add(distance as u64)))
}

/// How many bytes at a direct branch's end say where it leads.
fn displacement_size(original: &[u8]) -> Option<usize> {
    match *original {
        [.., 0x70..=0x7f | 0xeb | 0xe0..=0xe3, _] if is_short(original) => Some(1),
        [.., 0xe8 | 0xe9, _, _, _, _]
        | [.., 0x0f, 0x80..=0x8f, _, _, _, _]
        | [.., 0xc7, 0xf8, _, _, _, _] => Some(4),
        _ => None,
    }
}

/// A long branch may end in two bytes that look like a short one: what stands before those must be
/// prefixes.
fn is_short(original: &[u8]) -> bool {
    let prefixes = &original[..original.len() - 2];
    prefixes.iter().all(
        |byte| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f),
    )
}

/// Whether `copy` is the instruction with `delta` added to the displacement of its memory operand,
/// however wide.
pub(crate) fn shifted_operand(original: &Instruction, copy: &[u8], address: u64, delta: u64) -> bool {
    let mut decoder = Decoder::with_ip(64, copy, address, DecoderOptions::NONE);
    let mut found = decoder.decode();
    if found.is_invalid() || found.len() != copy.len() || original.is_ip_rel_memory_operand() {
        return false;
    }
    let wanted = original.memory_displacement64().wrapping_add(delta);
    if found.memory_displacement64() != wanted {
        return false;
    }
    found.set_memory_displacement64(original.memory_displacement64());
    found.set_memory_displ_size(original.memory_displ_size());
    found == *original
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_and_their_longer_forms() {
        assert_eq!(branch_target(&[0x74, 0x10], &[0x74, 0x20], 100), Some(132));
        assert_eq!(branch_target(&[0x74, 0x10], &[0x75, 0x20], 100), None);
        assert_eq!(branch_target(&[0x74, 0x10], &[0x0f, 0x84, 1, 0, 0, 0], 100), Some(101));
        assert_eq!(branch_target(&[0x74, 0x10], &[0x0f, 0x85, 1, 0, 0, 0], 100), None);
        assert_eq!(branch_target(&[0xeb, 0x10], &[0xe9, 0xff, 0xff, 0xff, 0xff], 100), Some(99));
        assert_eq!(branch_target(&[0xeb, 0x10], &[0xe8, 0xff, 0xff, 0xff, 0xff], 100), None);
        assert_eq!(branch_target(&[0xe3, 0x10], &[0xe3, 2, 0xeb, 5, 0xe9, 4, 0, 0, 0], 100), Some(104));
        assert_eq!(branch_target(&[0xe3, 0x10], &[0xe3, 2, 0xeb, 4, 0xe9, 4, 0, 0, 0], 100), None);
        assert_eq!(branch_target(&[0xe8, 0, 0, 0x74, 0], &[0xe8, 1, 0, 0, 0], 100), Some(101));
        assert_eq!(branch_target(&[0xf2, 0xe9, 0, 0, 0, 0], &[0xf2, 0xe9, 1, 0, 0, 0], 100), Some(101));
        assert_eq!(branch_target(&[0xe9, 0, 0, 0, 0], &[0xe8, 1, 0, 0, 0], 100), None);
    }

    #[test]
    fn stubs_and_what_skips_them() {
        let (call, jump) = ([0xe8, 1, 2, 3, 4], [0xe9, 1, 2, 3, 4]);
        assert_eq!(slot(&call, &[0xff, 0x15, 8, 0, 0, 0], 100), Some(108));
        assert_eq!(slot(&jump, &[0xff, 0x25, 0xf8, 0xff, 0xff, 0xff], 100), Some(92));
        assert_eq!(slot(&call, &[0xff, 0x25, 8, 0, 0, 0], 100), None, "a call made a jump");
        assert_eq!(slot(&jump, &[0xff, 0x15, 8, 0, 0, 0], 100), None, "a jump made a call");
        assert_eq!(slot(&[0xf2, 0xe8, 1, 2, 3, 4], &[0xff, 0x15, 8, 0, 0, 0], 100), None, "a prefix lost");
        assert_eq!(stub(&[0xff, 0x25, 8, 0, 0, 0], 100), Some((6, 114)));
        assert_eq!(stub(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 8, 0, 0, 0], 100), Some((11, 119)));
        assert_eq!(stub(&[0x3e, 0xff, 0x25, 8, 0, 0, 0], 100), None, "not tracked");
        assert_eq!(stub(&[0xff, 0x24, 0x25, 8, 0, 0, 0], 100), None, "an absolute slot");
        assert_eq!(stub(&[0xff, 0x25, 8, 0, 0], 100), None);
    }

    #[test]
    fn operands_shifted_by_a_distance() {
        let decode = |bytes: &[u8]| Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        let load = decode(&[0x48, 0x63, 0x04, 0x82]); // movsxd rax, [rdx+rax*4]
        assert!(shifted_operand(&load, &[0x48, 0x63, 0x84, 0x82, 0x00, 0x10, 0, 0], 0x9000, 0x1000));
        assert!(!shifted_operand(&load, &[0x48, 0x63, 0x84, 0x82, 0x04, 0x10, 0, 0], 0x9000, 0x1000));
        assert!(!shifted_operand(&load, &[0x48, 0x63, 0x84, 0x92, 0x00, 0x10, 0, 0], 0x9000, 0x1000));
        assert!(!shifted_operand(&load, &[0x48, 0x8b, 0x84, 0x82, 0x00, 0x10, 0, 0], 0x9000, 0x1000));
    }
}
