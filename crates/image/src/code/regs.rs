//! Sets of registers, as 128 bits.
//!
//! Vector registers have three parts each (bits 0-127, 128-255, 256-511), since the old
//! instructions leave the upper ones alone and the new ones zero them. x87, MMX, MXCSR, segment
//! bases and the protection keys have no bit: nobody here may ever say that they are dead. The
//! direction flag has one, but is treated the same.

use iced_x86::Register;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not, Sub};

#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct RegSet(pub u128);

/// The six arithmetic flags and the direction flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flag {
    Carry = 16,
    Parity = 17,
    Adjust = 18,
    Zero = 19,
    Sign = 20,
    Overflow = 21,
    Direction = 22,
}

const MASKS_AT: u32 = 24;
const XMM_AT: u32 = 32;
const YMM_AT: u32 = 64;
const ZMM_AT: u32 = 96;

pub const RAX: u32 = 0;
pub const RCX: u32 = 1;
pub const RDX: u32 = 2;
pub const RBX: u32 = 3;
pub const RSP: u32 = 4;
pub const RBP: u32 = 5;
pub const RSI: u32 = 6;
pub const RDI: u32 = 7;
pub const R11: u32 = 11;

impl RegSet {
    pub const EMPTY: Self = Self(0);
    pub const ALL: Self = Self(!(1 << 23));
    pub const GENERAL: Self = Self(0xffff);
    pub const ARITHMETIC_FLAGS: Self = Self(0x3f << 16);
    pub const MASK_REGISTERS: Self = Self(0xff << MASKS_AT);
    pub const VECTORS: Self = Self(!0 << XMM_AT);

    pub const fn general(number: u32) -> Self {
        Self(1 << number)
    }
    pub const fn flag(flag: Flag) -> Self {
        Self(1 << flag as u32)
    }
    pub const fn mask(number: u32) -> Self {
        Self(1 << (MASKS_AT + number))
    }
    /// The low 128 bits of a vector register.
    pub const fn xmm(number: u32) -> Self {
        Self(1 << (XMM_AT + number))
    }
    /// Bits 128-255 alone.
    pub const fn ymm_upper(number: u32) -> Self {
        Self(1 << (YMM_AT + number))
    }
    /// Bits 256-511 alone.
    pub const fn zmm_upper(number: u32) -> Self {
        Self(1 << (ZMM_AT + number))
    }
    pub const fn vector(number: u32) -> Self {
        Self(Self::xmm(number).0 | Self::ymm_upper(number).0 | Self::zmm_upper(number).0)
    }
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The parts that hold something of this register: what reading it reads.
    pub fn of(register: Register) -> Self {
        let number = register.number() as u32;
        if register.is_gpr() {
            Self::general(register.full_register().number() as u32)
        } else if register.is_xmm() {
            Self::xmm(number)
        } else if register.is_ymm() {
            Self::xmm(number) | Self::ymm_upper(number)
        } else if register.is_zmm() {
            Self::vector(number)
        } else if register.is_k() {
            Self::mask(number)
        } else {
            Self::EMPTY
        }
    }
}

impl BitOr for RegSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl BitOrAssign for RegSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
impl BitAnd for RegSet {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
impl Sub for RegSet {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
impl Not for RegSet {
    type Output = Self;
    fn not(self) -> Self {
        Self::ALL - self
    }
}

impl std::fmt::Debug for RegSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const GENERAL: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15",
        ];
        const FLAGS: [&str; 7] = ["cf", "pf", "af", "zf", "sf", "of", "df"];
        let mut list = f.debug_set();
        for bit in (0..128u32).filter(|&bit| bit != 23 && self.0 >> bit & 1 != 0) {
            match bit {
                0..16 => list.entry(&format_args!("{}", GENERAL[bit as usize])),
                16..24 => list.entry(&format_args!("{}", FLAGS[bit as usize - 16])),
                24..32 => list.entry(&format_args!("k{}", bit - MASKS_AT)),
                32..64 => list.entry(&format_args!("xmm{}", bit - XMM_AT)),
                64..96 => list.entry(&format_args!("ymm{}+", bit - YMM_AT)),
                _ => list.entry(&format_args!("zmm{}+", bit - ZMM_AT)),
            };
        }
        list.finish()
    }
}

/// What the System V ABI says. Assumed only of calls whose target is not known, or lies in another
/// module.
pub mod abi {
    use super::{RBP, RBX, RSP, RegSet};

    const fn vectors(count: u32) -> RegSet {
        let mut set = RegSet::EMPTY;
        let mut number = 0;
        while number < count {
            set = set.union(RegSet::vector(number));
            number += 1;
        }
        set
    }

    /// rbx, rsp, rbp, r12-r15.
    pub const CALLEE_SAVED: RegSet = RegSet(1 << RBX | 1 << RSP | 1 << RBP | 0xf000);
    /// What a function of unknown type may be passed something in: rdi, rsi, rdx, rcx, r8, r9, the
    /// vector registers 0-7, al (how many of them), and r10 (a static chain). Not r11, which
    /// linkage stubs and the dynamic linker use for themselves: who takes that for read by calls
    /// takes what is written there for nothing else, and so for dead where it is handed back.
    pub const ARGUMENTS: RegSet = RegSet(0x07c7).union(vectors(8));
    /// What a function may return something in: by the ABI rax, rdx and the vector registers 0 and
    /// 1; LLVM also uses rcx and r8 and vector registers 2 and 3 for wide values.
    pub const RETURNED: RegSet = RegSet(0x0107).union(vectors(4));
    /// What a call may change: everything else that there is a bit for, but the direction flag.
    pub const CLOBBERED: RegSet = RegSet(
        (0xffff & !CALLEE_SAVED.0)
            | RegSet::ARITHMETIC_FLAGS.0
            | RegSet::MASK_REGISTERS.0
            | RegSet::VECTORS.0,
    );
    /// Where what is read behind a call may have been left by it, whatever its convention.
    pub const LEFT: RegSet = RegSet(RETURNED.0 | RegSet::ARITHMETIC_FLAGS.0);
}
