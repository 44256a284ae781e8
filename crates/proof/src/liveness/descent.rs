//! The instructions of functions that have no twins: found by following control from the start.

use crate::container::stream::Item;
use crate::decode::skipped_lock::to_the_prefix;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

/// What is reached from the first byte and from `entries`, by direct branches. Where control goes
/// otherwise, or meets no instruction, the list has a gap: readers of the list take anything to
/// follow there.
pub(crate) fn follow(start: u64, code: &[u8], entries: &[u32], items: &mut Vec<Item>) {
    items.clear();
    let mut seen = vec![false; code.len()];
    let mut waiting: Vec<usize> = entries.iter().map(|&at| at as usize).chain([0]).collect();
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut insn = Instruction::default();
    while let Some(mut at) = waiting.pop() {
        while seen.get(at) == Some(&false) && decoder.set_position(at).is_ok() {
            decoder.set_ip(start + at as u64);
            decoder.decode_out(&mut insn);
            if insn.is_invalid() {
                break;
            }
            let end = at + insn.len();
            to_the_prefix(&mut insn, &code[end..]);
            seen[at] = true;
            let len = insn.len() as u8;
            items.push(Item {
                at: at as u32,
                place: 0,
                inserted: 0,
                len,
                twin_len: len,
                escape: false,
                cold: (0, 0),
            });
            let flow = insn.flow_control();
            if flow != FlowControl::Call && insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64 {
                let to = insn.near_branch64().wrapping_sub(start);
                waiting.extend(usize::try_from(to).ok().filter(|&to| to < code.len()));
            }
            if matches!(
                flow,
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            ) {
                break;
            }
            at += insn.len();
        }
    }
    items.sort_unstable_by_key(|item| item.at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_reached_is_listed() {
        // je +2; ret; (no instruction); ret; nop
        let mut items = Vec::new();
        follow(0x1000, &[0x74, 0x02, 0xc3, 0x06, 0xc3, 0x90], &[], &mut items);
        assert_eq!(items.iter().map(|item| item.at).collect::<Vec<_>>(), [0, 2, 4]);
        follow(0x1000, &[0xc3, 0xc3, 0x06], &[1, 2], &mut items);
        assert_eq!(items.iter().map(|item| item.at).collect::<Vec<_>>(), [0, 1]);
    }
}
