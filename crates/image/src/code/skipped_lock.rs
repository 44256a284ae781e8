//! Branches over a `lock` prefix: `je +1; lock cmpxchg …`, by which code for a single thread saves
//! the price of an atomic instruction (glibc's malloc does so).
//!
//! Both ways do the same to registers and memory, and with the prefix no other thread comes in
//! between. So such a branch is taken to lead to the prefix: then no two instructions overlap.

/// Whether what stands there begins with a `lock` prefix that it may have.
pub(crate) fn is_locked(code: &[u8]) -> bool {
    let [0xf0, rest @ ..] = code else { return false };
    let rest = match rest {
        [0x40..=0x4f, rest @ ..] => rest,
        rest => rest,
    };
    let in_memory = |byte: &u8| byte >> 6 != 3;
    match rest {
        [0x0f, 0xb0 | 0xb1 | 0xc0 | 0xc1, operand, ..] => in_memory(operand),
        // add, or, adc, sbb, and, sub, xor
        [
            0x00 | 0x01 | 0x08 | 0x09 | 0x10 | 0x11 | 0x18 | 0x19 | 0x20 | 0x21 | 0x28 | 0x29 | 0x30 | 0x31,
            operand,
            ..,
        ] => in_memory(operand),
        [0x80 | 0x81 | 0x83, operand, ..] => in_memory(operand) && operand >> 3 & 7 != 7,
        // inc, dec
        [0xfe | 0xff, operand, ..] => in_memory(operand) && operand >> 3 & 7 < 2,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_locked() {
        let locked: [&[u8]; 5] = [
            &[0xf0, 0x48, 0x0f, 0xb1, 0x37],    // lock cmpxchg [rdi], rsi
            &[0xf0, 0x0f, 0xc1, 0x07],          // lock xadd [rdi], eax
            &[0xf0, 0x83, 0x2d, 1, 2, 3, 4, 1], // lock sub dword [rip+…], 1
            &[0xf0, 0xff, 0x00],                // lock inc dword [rax]
            &[0xf0, 0x49, 0x09, 0x00],          // lock or [r8], rax
        ];
        for code in locked {
            assert!(is_locked(code), "{code:x?}");
            let mut decoder = iced_x86::Decoder::new(64, code, iced_x86::DecoderOptions::NONE);
            assert!(decoder.decode().has_lock_prefix());
        }
    }

    #[test]
    fn what_may_not() {
        let others: [&[u8]; 5] = [
            &[0x48, 0x0f, 0xb1, 0x37],
            &[0xf0, 0x48, 0x0f, 0xb1, 0xf7], // a register
            &[0xf0, 0x83, 0x38, 0],          // cmp
            &[0xf0, 0xff, 0x10],             // call
            &[0xf0],
        ];
        assert!(others.iter().all(|code| !is_locked(code)));
    }
}
