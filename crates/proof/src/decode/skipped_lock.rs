//! Branches over a `lock` prefix (`je +1; lock cmpxchg …`): what is behind the prefix does the same
//! as with it, so they may lead to the prefix. Everything here that follows branches takes them so,
//! and R5 demands that their copies do.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

/// Makes such a branch one to the prefix; `behind` are the bytes from its end on.
pub(crate) fn to_the_prefix(insn: &mut Instruction, behind: &[u8]) {
    let skips = insn.flow_control() == FlowControl::ConditionalBranch
        && insn.op0_kind() == OpKind::NearBranch64
        && insn.is_jcc_short()
        && insn.near_branch64() == insn.next_ip().wrapping_add(1)
        && behind.first() == Some(&0xf0);
    if skips && Decoder::new(64, behind, DecoderOptions::NONE).decode().has_lock_prefix() {
        insn.set_near_branch64(insn.next_ip());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(code: &[u8]) -> u64 {
        let mut insn = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode();
        let len = insn.len();
        to_the_prefix(&mut insn, &code[len..]);
        insn.near_branch64()
    }

    #[test]
    fn over_a_prefix_and_over_anything_else() {
        assert_eq!(leads(&[0x74, 1, 0xf0, 0x48, 0x0f, 0xb1, 0x37]), 0x1002); // lock cmpxchg [rdi], rsi
        assert_eq!(leads(&[0x74, 1, 0xf0, 0x48, 0x0f, 0xb1, 0xf7]), 0x1003); // not to be locked
        assert_eq!(leads(&[0x74, 1, 0x90, 0xf0, 0xff, 0x00]), 0x1003);
        assert_eq!(leads(&[0x74, 2, 0xf0, 0x48, 0x0f, 0xb1, 0x37]), 0x1004);
        assert_eq!(leads(&[0xeb, 1, 0xf0, 0x48, 0x0f, 0xb1, 0x37]), 0x1003, "without a condition");
        assert_eq!(leads(&[0x74, 1, 0xf0]), 0x1003);
    }
}
