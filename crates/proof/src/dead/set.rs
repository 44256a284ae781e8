//! Sets of parts of the processor's state, a bit for each part.

use iced_x86::{Register, RflagsBits};

pub(crate) type Set = u128;

/// Everything that may be live.
pub(crate) const ALL: Set = (1 << 82) - 1;
/// The 128 bytes below the stack pointer.
pub(crate) const RED_ZONE: Set = 1 << 81;
const X87: Set = 1 << 80;
const FLAGS_AT: u32 = 16;
const LOW_AT: u32 = 24;
const HIGH_AT: u32 = 40;
const UPPER_AT: u32 = 56;
const MASKS_AT: u32 = 72;

/// Carry, parity, adjust, zero, sign, overflow, direction.
const FLAGS: [u32; 7] = [
    RflagsBits::CF,
    RflagsBits::PF,
    RflagsBits::AF,
    RflagsBits::ZF,
    RflagsBits::SF,
    RflagsBits::OF,
    RflagsBits::DF,
];
pub(crate) const STATUS_FLAGS: Set = 0x3f << FLAGS_AT;

const fn general(numbers: &[u32]) -> Set {
    let mut set = 0;
    let mut at = 0;
    while at < numbers.len() {
        set |= 1 << numbers[at];
        at += 1;
    }
    set
}

/// rdi, rsi, rdx, rcx, r8, r9, al (how many vectors), r10 (static chain), and the vectors of arguments, at any width.
pub(crate) const ARGUMENTS: Set =
    general(&[7, 6, 2, 1, 8, 9, 0, 10]) | 0xff << LOW_AT | 0xff << HIGH_AT | 1 << 22 | RESERVED;
/// rbx, rsp, rbp, r12-r15, the direction flag, x87 state.
pub(crate) const CALLEE_SAVED: Set = general(&[3, 4, 5, 12, 13, 14, 15]) | RESERVED;
/// Never dead, whatever is written.
pub(crate) const RESERVED: Set = 1 << 4 | 1 << 22 | X87;
/// rax, rdx, xmm0, xmm1, at any width; and what LLVM returns wider values in besides: rcx, r8, xmm2, xmm3.
pub(crate) const RESULTS: Set = general(&[0, 1, 2, 8]) | 0xf << LOW_AT | 0xf << HIGH_AT;
/// What may be changed by a call of a function that is known by the ABI alone.
pub(crate) const CLOBBERED: Set = ALL & !CALLEE_SAVED;
/// Bits 0-127 of the first sixteen vector registers, and what is above those.
pub(crate) const LOWS: Set = 0xffff << LOW_AT;
pub(crate) const UPPERS: Set = 0xffff << HIGH_AT;

/// The general registers among these, which are numbered as unwind tables do.
pub(crate) fn unwinding(registers: u32) -> Set {
    const ORDER: [u32; 8] = [0, 2, 1, 3, 6, 7, 5, 4];
    let low = ORDER.iter().enumerate().filter(|(at, _)| registers >> at & 1 == 1);
    low.map(|(_, register)| 1 << register).sum::<Set>() | Set::from(registers & 0xff00)
}

pub(crate) fn flags(bits: u32) -> Set {
    FLAGS
        .iter()
        .enumerate()
        .filter(|(_, flag)| bits & **flag != 0)
        .map(|(at, _)| 1 << (FLAGS_AT + at as u32))
        .sum()
}

/// Every part that a register touches.
pub(crate) fn touched(register: Register) -> Set {
    if register.is_gpr() {
        1 << register.full_register().number()
    } else if register.is_vector_register() {
        let number = register.number() as u32;
        match number {
            16.. => 1 << (UPPER_AT + number - 16),
            _ if register.is_xmm() => 1 << (LOW_AT + number),
            _ => 1 << (LOW_AT + number) | 1 << (HIGH_AT + number),
        }
    } else if register.is_k() {
        1 << (MASKS_AT + register.number() as u32)
    } else if register.is_st() || register.is_mm() {
        X87
    } else {
        0
    }
}

/// For people.
pub(crate) fn names(set: Set) -> String {
    const GENERAL: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
    const FLAG: [&str; 8] = ["cf", "pf", "af", "zf", "sf", "of", "df", "?"];
    let name = |bit: u32| match bit {
        0..FLAGS_AT => GENERAL[bit as usize].to_owned(),
        FLAGS_AT..LOW_AT => FLAG[(bit - FLAGS_AT) as usize].to_owned(),
        LOW_AT..HIGH_AT => format!("xmm{}", bit - LOW_AT),
        HIGH_AT..UPPER_AT => format!("the upper part of zmm{}", bit - HIGH_AT),
        UPPER_AT..MASKS_AT => format!("zmm{}", bit - UPPER_AT + 16),
        MASKS_AT..80 => format!("k{}", bit - MASKS_AT),
        80 => "x87".to_owned(),
        _ => "the red zone".to_owned(),
    };
    let found: Vec<String> = (0..82).filter(|bit| set >> bit & 1 == 1).map(name).collect();
    found.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names() {
        assert_eq!(names(touched(Register::EAX) | flags(RflagsBits::CF | RflagsBits::OF)), "rax, cf, of");
        assert_eq!(names(touched(Register::YMM3)), "xmm3, the upper part of zmm3");
        assert_eq!(
            names(touched(Register::XMM17) | touched(Register::K2) | RED_ZONE),
            "zmm17, k2, the red zone"
        );
        assert_eq!(ARGUMENTS & STATUS_FLAGS, 0);
    }
}
