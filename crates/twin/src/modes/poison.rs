//! Poisoning: before every instruction, garbage in everything claimed dead. A program that still
//! works shows that nothing of it was needed.
//!
//! A register that holds garbage already is not filled again, unless the code may be reached from
//! elsewhere: what is claimed dead holds garbage before every instruction all the same. Nothing is
//! stored, so neither stack nor red zone is touched. Flags get what comparing the stack pointer
//! with some number leaves in them.
//!
//! Not poisoned though dead: x87, MMX, MXCSR and the direction flag, of which nobody claims that;
//! the upper parts of a vector register whose lower part lives; and single flags, but for the carry
//! flag, beside ones that live.

use crate::layout::insertions::Insertions;
use crate::modes::width::VectorWidth;
use iced_x86::{Code, Encoder, Instruction, InstructionInfoFactory, Register};
use image::Module;
use image::code::effects::effect;
use image::code::regs::{Flag, RSP, RegSet};
use image::flow::cfg::Cfg;

/// Instructions that fill registers, assembled once.
pub(crate) struct Poison {
    /// `pcmpeqd x, x`: all ones in the low part, the rest kept.
    low: Vec<Vec<u8>>,
    /// All ones in the low 256 or 512 bits, the rest zeroed.
    whole: Vec<Vec<u8>>,
    /// All ones in a mask register.
    masks: Vec<Vec<u8>>,
}

impl Poison {
    pub(crate) fn new(width: VectorWidth) -> Self {
        use Register::{K0, XMM0, YMM0, ZMM0};
        let same = |code, register: Register| Instruction::with3(code, register, register, register);
        let low =
            (0..16).map(|n| assemble(Instruction::with2(Code::Pcmpeqd_xmm_xmmm128, XMM0 + n, XMM0 + n)));
        let whole: Vec<Vec<u8>> = match width {
            VectorWidth::Sse => Vec::new(),
            // No comparison of numbers: that would leave its mark in MXCSR.
            VectorWidth::Avx => (0..16)
                .map(|n| {
                    let (x, y) = (XMM0 + n, YMM0 + n);
                    let low = Instruction::with3(Code::VEX_Vpcmpeqd_xmm_xmm_xmmm128, x, x, x);
                    let high = Instruction::with4(Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8, y, y, x, 1u32);
                    [assemble(low), assemble(high)].concat()
                })
                .collect(),
            VectorWidth::Avx512 => (0..32)
                .map(|n| {
                    let r = ZMM0 + n;
                    let code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
                    assemble(Instruction::with4(code, r, r, r, 0xffu32))
                })
                .collect(),
        };
        let masks = match width {
            VectorWidth::Avx512 => {
                (0..8).map(|n| assemble(same(Code::VEX_Kxnorw_kr_kr_kr, K0 + n))).collect()
            }
            _ => Vec::new(),
        };
        Self { low: low.collect(), whole, masks }
    }

    /// The poison for one unit, whose live registers before each instruction are given.
    pub(crate) fn unit(&self, module: &Module<'_>, unit: usize, live: &[RegSet]) -> Insertions {
        let decoded = &module.decoded[unit];
        let code = module.code(unit);
        let start = module.units[unit].start;
        let cfg = Cfg::build(start, code, &decoded.insns, &decoded.tables, module.roots(unit));
        let mut heads = cfg.blocks.iter().map(|block| block.first).peekable();
        let mut factory = InstructionInfoFactory::new();
        let mut insertions = Insertions::default();
        let mut poisoned = RegSet::EMPTY;
        let mut piece = Vec::new();
        for (index, insn) in decoded.insns.iter().enumerate() {
            if heads.next_if_eq(&(index as u32)).is_some() {
                poisoned = RegSet::EMPTY;
            }
            let dead = !live.get(index).copied().unwrap_or(RegSet::ALL) - RegSet::general(RSP);
            piece.clear();
            let seed = garbage(start.0 + u64::from(insn.at));
            poisoned = self.fill(dead, poisoned & dead, seed, &mut piece);
            insertions.push(&piece);
            if insn.flow.is_call() {
                poisoned = RegSet::EMPTY;
            } else {
                let at = start.0 + u64::from(insn.at);
                let bytes = insn.bytes(code);
                let instruction =
                    iced_x86::Decoder::with_ip(64, bytes, at, iced_x86::DecoderOptions::NONE).decode();
                poisoned = poisoned - effect(&instruction, &mut factory).writes;
            }
        }
        insertions
    }

    /// Fills what is dead and not yet poisoned; what is poisoned then.
    fn fill(&self, dead: RegSet, mut poisoned: RegSet, seed: u32, piece: &mut Vec<u8>) -> RegSet {
        for number in 0..16u32 {
            let register = RegSet::general(number);
            if dead.contains(register) && !poisoned.contains(register) {
                // mov r64, imm32, sign-extended to an address nobody may use
                piece.extend([0x48 | (number >> 3) as u8, 0xc7, 0xc0 | (number & 7) as u8]);
                piece.extend((0x8000_0000 | seed.wrapping_mul(number * 2 + 1) & 0x7fff_ffff).to_le_bytes());
                poisoned |= register;
            }
        }
        for number in 0..32u32 {
            let (whole, low) = (RegSet::vector(number), RegSet::xmm(number));
            if let (true, Some(bytes)) = (dead.contains(whole), self.whole.get(number as usize)) {
                if !poisoned.contains(whole) {
                    piece.extend_from_slice(bytes);
                    poisoned |= whole;
                }
            } else if let (true, Some(bytes)) = (dead.contains(low), self.low.get(number as usize)) {
                if !poisoned.contains(low) {
                    piece.extend_from_slice(bytes);
                    poisoned |= low;
                }
            }
        }
        for number in 0..8u32 {
            let mask = RegSet::mask(number);
            if let (true, Some(bytes)) = (dead.contains(mask), self.masks.get(number as usize)) {
                if !poisoned.contains(mask) {
                    piece.extend_from_slice(bytes);
                    poisoned |= mask;
                }
            }
        }
        poisoned | poison_flags(dead, poisoned, seed, piece)
    }
}

fn poison_flags(dead: RegSet, poisoned: RegSet, seed: u32, piece: &mut Vec<u8>) -> RegSet {
    const CARRY: RegSet = RegSet::flag(Flag::Carry);
    let all = RegSet::ARITHMETIC_FLAGS;
    let others = all - CARRY;
    if dead.contains(all) && !poisoned.contains(all) {
        piece.extend([0x81, 0xfc]); // cmp esp, imm32
        piece.extend(seed.to_le_bytes());
        return all;
    }
    if dead.contains(others) && !dead.contains(CARRY) && !poisoned.contains(others) {
        // dec r32 leaves only the carry flag; of a register that holds garbage anyhow
        let spare = (0..16u32).find(|&number| dead.contains(RegSet::general(number)));
        if let Some(number) = spare {
            piece.extend([0x40 | (number >> 3) as u8, 0xff, 0xc8 | (number & 7) as u8]);
            return others;
        }
    }
    if dead.contains(CARRY) && !dead.meets(others) && !poisoned.contains(CARRY) {
        piece.push(0xf5); // cmc
        return CARRY;
    }
    RegSet::EMPTY
}

fn garbage(address: u64) -> u32 {
    let mut x = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    (x.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}

fn assemble(instruction: Result<Instruction, iced_x86::IcedError>) -> Vec<u8> {
    let mut encoder = Encoder::new(64);
    match instruction.and_then(|instruction| encoder.encode(&instruction, 0)) {
        Ok(_) => encoder.take_buffer(),
        Err(_) => Vec::new(),
    }
}
