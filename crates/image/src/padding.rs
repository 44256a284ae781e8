//! Padding between blocks: no-operation instructions behind a jump, which nothing reaches. They are taken for code all the
//! same, so that a copy of the unit keeps its blocks where they lie in cache lines.

use crate::insn::{Flow, Insn};

/// The length of the no-operation that begins here, if it is one that assemblers pad with.
pub fn nop(bytes: &[u8]) -> Option<usize> {
    const LONGEST: usize = 15;
    let prefixes = bytes.iter().take_while(|&&byte| matches!(byte, 0x66 | 0x2e)).count();
    let operation = match bytes.get(prefixes..)? {
        [0x90, ..] => 1,
        [0x0f, 0x1f, 0x00, ..] => 3,
        [0x0f, 0x1f, 0x40, 0, ..] => 4,
        [0x0f, 0x1f, 0x44, 0, 0, ..] => 5,
        [0x0f, 0x1f, 0x80, 0, 0, 0, 0, ..] => 7,
        [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, ..] => 8,
        _ => return None,
    };
    (prefixes + operation <= LONGEST).then_some(prefixes + operation)
}

/// The padding in the gaps between instructions, which ascend; only gaps that are nothing else, up to an instruction.
pub(crate) fn between(insns: &[Insn], code: &[u8]) -> Vec<Insn> {
    let mut found = Vec::new();
    for pair in insns.windows(2) {
        let (from, to) = (pair[0].end(), pair[1].at);
        let goes_on = pair[0].flow.falls_through() && !pair[0].never_returns;
        if from >= to || goes_on {
            continue;
        }
        let (known, mut at) = (found.len(), from);
        while at < to {
            let Some(len) = nop(&code[at as usize..to as usize]) else { break };
            found.push(Insn {
                at,
                len: len as u8,
                flow: Flow::Next,
                rip_displacement: 0,
                never_returns: false,
            });
            at += len as u32;
        }
        if at != to {
            found.truncate(known);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUMP: Insn = Insn { at: 0, len: 2, flow: Flow::Jump8, rip_displacement: 0, never_returns: false };

    #[test]
    fn what_assemblers_pad_with() {
        assert_eq!(nop(&[0x90]), Some(1));
        assert_eq!(nop(&[0x66, 0x90]), Some(2));
        assert_eq!(nop(&[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), Some(11));
        for other in
            [&[0xf3, 0x90][..], &[0x0f, 0x1f, 0x44, 0x75, 3], &[0x0f, 0x1f], &[0xcc], &[], &[0x66; 15]]
        {
            assert_eq!(nop(other), None, "{other:x?}");
        }
    }

    #[test]
    fn only_between_a_jump_and_what_follows() {
        let code = [0xeb, 0x04, 0x66, 0x90, 0x66, 0x90, 0xc3];
        let last = Insn { at: 6, len: 1, flow: Flow::Return, ..JUMP };
        let places = |insns: &[Insn], code: &[u8]| -> Vec<u32> {
            between(insns, code).iter().map(|insn| insn.at).collect()
        };
        assert_eq!(places(&[JUMP, last], &code), [2, 4]);
        assert_eq!(places(&[Insn { flow: Flow::Next, ..JUMP }, last], &code), [] as [u32; 0]);
        assert_eq!(
            places(&[JUMP, last], &[0xeb, 4, 0x66, 0x90, 0x66, 0x91, 0xc3]),
            [] as [u32; 0],
            "not only padding"
        );
        assert_eq!(places(&[JUMP], &code), [] as [u32; 0], "nothing to align behind it");
    }
}
