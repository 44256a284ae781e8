//! Sets of parts of the processor's state, a bit for each part.

use iced_x86::{Register, RflagsBits};

pub(crate) type Set = u128;

/// Everything that may be live.
pub(crate) const ALL: Set = Set::MAX;
/// The 128 bytes below the stack pointer.
pub(crate) const RED_ZONE: Set = 1 << 23;
/// With the direction flag: neither is ever dead.
const X87: Set = 1 << 22;
const FLAGS_AT: u32 = 16;
/// Bits 0-127, 128-255 and 256-511 of the 32 vector registers.
const LOW_AT: u32 = 24;
const HIGH_AT: u32 = 56;
const TOP_AT: u32 = 88;
const MASKS_AT: u32 = 120;

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

const fn vectors(numbers: Set) -> Set {
    numbers << LOW_AT | numbers << HIGH_AT | numbers << TOP_AT
}

/// rdi, rsi, rdx, rcx, r8, r9, al (how many vectors), r10 (static chain), and the vectors of
/// arguments, at any width.
pub(crate) const ARGUMENTS: Set = general(&[7, 6, 2, 1, 8, 9, 0, 10]) | vectors(0xff) | RESERVED;
/// Vectors and masks in which the ABI passes nothing.
pub(crate) const OTHERS: Set = vectors(0xffff_ff00) | 0xff << MASKS_AT;
/// What the ABI leaves nothing in behind a call; flags aside, in which nobody returns anything.
pub(crate) const NO_RESULTS: Set = CLOBBERED & !(RESULTS | STATUS_FLAGS | RED_ZONE);
/// All that a call may read whose convention nobody knows: clang's `regcall`, its `preserve_none`,
/// and those of Haskell, OCaml and others pass arguments in any general register, and in more
/// vectors than the ABI.
pub(crate) const ANY_ARGUMENTS: Set = ALL & !(STATUS_FLAGS | RED_ZONE);
pub(crate) const GENERAL: Set = 0xffff;
/// rbx, rsp, rbp, r12-r15, the direction flag, x87 state.
pub(crate) const CALLEE_SAVED: Set = general(&[3, 4, 5, 12, 13, 14, 15]) | RESERVED;
pub(crate) const STACK_POINTER: Set = general(&[4]);
/// Never dead, whatever is written.
pub(crate) const RESERVED: Set = STACK_POINTER | X87;
/// rdi and rsi; and with them rcx, r8 and r9, in which C returns nothing either.
pub(crate) const FIRST_ARGUMENTS: Set = general(&[7, 6]);
pub(crate) const TEMPORARIES: Set = FIRST_ARGUMENTS | general(&[1, 8, 9]);
pub(crate) const FIRST_RESULT: Set = general(&[0]);
/// All vectors and masks.
pub(crate) const VECTORS: Set = vectors(0xffff_ffff) | 0xff << MASKS_AT;
/// Bits 0-127 of xmm4 to xmm15, xmm6 to xmm15, xmm8 to xmm15.
pub(crate) const FROM_4: Set = 0xfff0 << LOW_AT;
pub(crate) const FROM_6: Set = 0xffc0 << LOW_AT;
pub(crate) const FROM_8: Set = 0xff00 << LOW_AT;
/// rax, rdx, xmm0, xmm1, at any width; and what LLVM returns wider values in besides: rcx, r8,
/// xmm2, xmm3.
pub(crate) const RESULTS: Set = general(&[0, 1, 2, 8]) | vectors(0xf);
/// What may be changed by a call of a function that is known by the ABI alone.
pub(crate) const CLOBBERED: Set = ALL & !CALLEE_SAVED;
/// Bits 0-127 of the first sixteen vector registers, and what is above those.
pub(crate) const LOWS: Set = 0xffff << LOW_AT;
pub(crate) const UPPERS: Set = 0xffff << HIGH_AT | 0xffff << TOP_AT;

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
        let (low, high, top) = (1 << LOW_AT, 1 << HIGH_AT, 1 << TOP_AT);
        let parts: Set = match register {
            _ if register.is_xmm() => low,
            _ if register.is_ymm() => low | high,
            _ => low | high | top,
        };
        parts << register.number()
    } else if register.is_k() {
        1 << (MASKS_AT + register.number() as u32)
    } else if register.is_st() || register.is_mm() {
        X87
    } else {
        0
    }
}

/// Whether these are parts of one register.
pub(crate) fn is_one_register(set: Set) -> bool {
    let vectors = (set >> LOW_AT | set >> HIGH_AT | set >> TOP_AT) & 0xffff_ffff;
    let [general, others, masks] = [set & 0xffff, set & (X87 | RED_ZONE | STATUS_FLAGS), set >> MASKS_AT];
    others == 0 && (general.count_ones() + vectors.count_ones() + masks.count_ones()) == 1
}

/// With all parts of the registers of which there is one.
pub(crate) fn whole(set: Set) -> Set {
    set | vectors((set >> LOW_AT | set >> HIGH_AT | set >> TOP_AT) & 0xffff_ffff)
}

/// The vector registers (a bit each) of which the set has any part, and the mask registers.
pub(crate) fn numbers_of_vectors_and_masks(set: Set) -> (u32, u8) {
    let vectors = set >> LOW_AT | set >> HIGH_AT | set >> TOP_AT;
    ((vectors & 0xffff_ffff) as u32, (set >> MASKS_AT) as u8)
}

/// For people.
pub(crate) fn names(set: Set) -> String {
    const GENERAL: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
    const FLAG: [&str; 8] = ["cf", "pf", "af", "zf", "sf", "of", "df and x87", "the red zone"];
    let name = |bit: u32| match bit {
        0..FLAGS_AT => GENERAL[bit as usize].to_owned(),
        FLAGS_AT..LOW_AT => FLAG[(bit - FLAGS_AT) as usize].to_owned(),
        LOW_AT..HIGH_AT => format!("xmm{}", bit - LOW_AT),
        HIGH_AT..TOP_AT => format!("the upper part of ymm{}", bit - HIGH_AT),
        TOP_AT..MASKS_AT => format!("the upper part of zmm{}", bit - TOP_AT),
        _ => format!("k{}", bit - MASKS_AT),
    };
    let is_in = |bit: u32| bit < 128 && set >> bit & 1 == 1;
    let kinds = [LOW_AT, HIGH_AT, TOP_AT, MASKS_AT, 128];
    let mut found = Vec::new();
    let mut bit = 0;
    while bit < 128 {
        let first = bit;
        bit += 1;
        if !is_in(first) {
            continue;
        }
        while first >= LOW_AT && is_in(bit) && !kinds.contains(&bit) {
            bit += 1;
        }
        found.push(match bit - first {
            1 => name(first),
            2 => format!("{}, {}", name(first), name(bit - 1)),
            _ => format!("{} to {}", name(first), name(bit - 1)),
        });
    }
    found.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names() {
        assert_eq!(names(touched(Register::EAX) | flags(RflagsBits::CF | RflagsBits::OF)), "rax, cf, of");
        assert_eq!(names(touched(Register::YMM3)), "xmm3, the upper part of ymm3");
        assert_eq!(
            names(touched(Register::XMM17) | touched(Register::K2) | RED_ZONE),
            "the red zone, xmm17, k2"
        );
        assert_eq!(ARGUMENTS & STATUS_FLAGS, 0);
    }
}
