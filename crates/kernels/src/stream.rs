//! Passes over memory that is too large to keep: read, write, copy and their like, at three widths.
//!
//! One shape for all: `LINES_PER_LOOP` lines of each array a loop, unrolled, addresses ahead of
//! time, and a chain of adds in parallel with it all that holds the loop back where a lower
//! bandwidth is wanted. To add an operation: a variant of [`StreamOp`] and an arm in `chunk`.

use crate::emit::{last_word, repeat};
use crate::error::in_range;
use crate::{KernelError, StreamOp, Width};
use iced_x86::code_asm::{
    CodeAssembler, eax, ptr, r8, r8d, r9, rax, rcx, rdi, rdx, rsi, rsp, xmm0, ymm0, zmm0,
};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// 64-byte lines of each array that one loop of [`Spec::Stream`](crate::Spec::Stream) goes over.
pub const LINES_PER_LOOP: u64 = 4;
const BYTES_PER_LOOP: u32 = 64 * LINES_PER_LOOP as u32;

const MAX_DELAY: u32 = 4096;

/// Register numbers: 0 holds the constant, 1 to 4 sums, 5 to 12 what is on its way.
const SUMS: u32 = 4;
const IN_FLIGHT: u32 = 8;

pub(crate) fn emit(a: &mut CodeAssembler, op: StreamOp, width: Width, delay: u32) -> Result<(), KernelError> {
    in_range("delay", delay, 0, MAX_DELAY)?;
    let v = Vectors::of(width);
    a.mov(r9, rsi)?;
    v.set_constant(a, constant(op))?;
    if op == StreamOp::Read {
        for sum in 1..=SUMS {
            v.zero(a, sum)?;
        }
    }
    a.xor(eax, eax)?;
    a.mov(r8d, 1)?;
    repeat(a, rsi, |a| {
        for (i, at) in (0..BYTES_PER_LOOP).step_by(width.bytes() as usize).enumerate() {
            chunk(a, &v, op, i as u32, at)?;
        }
        for _ in 0..delay {
            a.add(rax, r8)?;
        }
        a.add(rdi, BYTES_PER_LOOP as i32)?;
        if matches!(op, StreamOp::Copy | StreamOp::NtCopy | StreamOp::Triad) {
            a.add(rdx, BYTES_PER_LOOP as i32)?;
        }
        if op == StreamOp::Triad {
            a.add(rcx, BYTES_PER_LOOP as i32)?;
        }
        Ok(())
    })?;
    if matches!(op, StreamOp::NtWrite | StreamOp::NtCopy) {
        a.sfence()?; // what went past the caches is in memory's hands before the clock is read
    }
    if op == StreamOp::Read {
        v.total(a)?;
    } else {
        last_word(a, r9, rdi)?;
    }
    if width != Width::Bytes16 {
        a.vzeroupper()?;
    }
    a.ret()?;
    Ok(())
}

/// What every lane of register 0 holds.
fn constant(op: StreamOp) -> u64 {
    match op {
        StreamOp::Triad => 3f64.to_bits(),
        StreamOp::Update => 1,
        _ => 1f64.to_bits(),
    }
}

/// The work on the `i`th vector of a loop, `at` bytes from where the arrays stand.
fn chunk(a: &mut CodeAssembler, v: &Vectors, op: StreamOp, i: u32, at: u32) -> Result<(), KernelError> {
    let [a_at, b_at, c_at] = [Register::RDI, Register::RDX, Register::RCX]
        .map(|array| MemoryOperand::with_base_displ(array, at.into()));
    let x = 1 + SUMS + i % IN_FLIGHT;
    match op {
        StreamOp::Read => v.with_memory(a, v.add_words, 1 + i % SUMS, a_at),
        StreamOp::Write => v.store(a, v.store, a_at, 0),
        StreamOp::NtWrite => v.store(a, v.store_past_caches, a_at, 0),
        StreamOp::Copy | StreamOp::NtCopy => {
            v.load(a, x, b_at)?;
            v.store(a, if op == StreamOp::Copy { v.store } else { v.store_past_caches }, a_at, x)
        }
        StreamOp::Triad => {
            v.load(a, x, c_at)?;
            v.with_register(a, v.multiply_doubles, x, 0)?;
            v.with_memory(a, v.add_doubles, x, b_at)?;
            v.store(a, v.store, a_at, x)
        }
        StreamOp::Update => {
            v.load(a, x, a_at)?;
            v.with_register(a, v.add_words, x, 0)?;
            v.store(a, v.store, a_at, x)
        }
    }
}

/// One width's instructions. Those that compute have two operands for 16 bytes (SSE2) and three for
/// the others.
struct Vectors {
    width: Width,
    first: Register,
    load: Code,
    store: Code,
    store_unaligned: Code,
    store_past_caches: Code,
    add_words: Code,
    add_doubles: Code,
    multiply_doubles: Code,
    zero: Code,
}

impl Vectors {
    fn of(width: Width) -> Vectors {
        match width {
            Width::Bytes16 => Vectors {
                width,
                first: Register::XMM0,
                load: Code::Movdqa_xmm_xmmm128,
                store: Code::Movdqa_xmmm128_xmm,
                store_unaligned: Code::Movdqu_xmmm128_xmm,
                store_past_caches: Code::Movntdq_m128_xmm,
                add_words: Code::Paddq_xmm_xmmm128,
                add_doubles: Code::Addpd_xmm_xmmm128,
                multiply_doubles: Code::Mulpd_xmm_xmmm128,
                zero: Code::Pxor_xmm_xmmm128,
            },
            Width::Bytes32 => Vectors {
                width,
                first: Register::YMM0,
                load: Code::VEX_Vmovdqa_ymm_ymmm256,
                store: Code::VEX_Vmovdqa_ymmm256_ymm,
                store_unaligned: Code::VEX_Vmovdqu_ymmm256_ymm,
                store_past_caches: Code::VEX_Vmovntdq_m256_ymm,
                add_words: Code::VEX_Vpaddq_ymm_ymm_ymmm256,
                add_doubles: Code::VEX_Vaddpd_ymm_ymm_ymmm256,
                multiply_doubles: Code::VEX_Vmulpd_ymm_ymm_ymmm256,
                zero: Code::VEX_Vpxor_ymm_ymm_ymmm256,
            },
            Width::Bytes64 => Vectors {
                width,
                first: Register::ZMM0,
                load: Code::EVEX_Vmovdqa64_zmm_k1z_zmmm512,
                store: Code::EVEX_Vmovdqa64_zmmm512_k1z_zmm,
                store_unaligned: Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
                store_past_caches: Code::EVEX_Vmovntdq_m512_zmm,
                add_words: Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
                add_doubles: Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er,
                multiply_doubles: Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er,
                zero: Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64,
            },
        }
    }

    fn register(&self, number: u32) -> Register {
        self.first + number
    }

    fn set_constant(&self, a: &mut CodeAssembler, constant: u64) -> Result<(), KernelError> {
        a.mov(rax, constant)?;
        a.movq(xmm0, rax)?;
        match self.width {
            Width::Bytes16 => a.punpcklqdq(xmm0, xmm0)?,
            Width::Bytes32 => a.vpbroadcastq(ymm0, xmm0)?,
            Width::Bytes64 => a.vpbroadcastq(zmm0, xmm0)?,
        }
        Ok(())
    }

    fn zero(&self, a: &mut CodeAssembler, number: u32) -> Result<(), KernelError> {
        self.with_register(a, self.zero, number, number)
    }

    fn load(&self, a: &mut CodeAssembler, to: u32, from: MemoryOperand) -> Result<(), KernelError> {
        Ok(a.add_instruction(Instruction::with2(self.load, self.register(to), from)?)?)
    }

    fn store(
        &self,
        a: &mut CodeAssembler,
        code: Code,
        to: MemoryOperand,
        from: u32,
    ) -> Result<(), KernelError> {
        Ok(a.add_instruction(Instruction::with2(code, to, self.register(from))?)?)
    }

    /// Computes `to = to (code) with`.
    fn with_register(
        &self,
        a: &mut CodeAssembler,
        code: Code,
        to: u32,
        with: u32,
    ) -> Result<(), KernelError> {
        let (to, with) = (self.register(to), self.register(with));
        Ok(a.add_instruction(match self.width {
            Width::Bytes16 => Instruction::with2(code, to, with)?,
            Width::Bytes32 | Width::Bytes64 => Instruction::with3(code, to, to, with)?,
        })?)
    }

    /// Computes `to = to (code) with`.
    fn with_memory(
        &self,
        a: &mut CodeAssembler,
        code: Code,
        to: u32,
        with: MemoryOperand,
    ) -> Result<(), KernelError> {
        let to = self.register(to);
        Ok(a.add_instruction(match self.width {
            Width::Bytes16 => Instruction::with2(code, to, with)?,
            Width::Bytes32 | Width::Bytes64 => Instruction::with3(code, to, to, with)?,
        })?)
    }

    /// `rax` = the sum of all words of all sums.
    fn total(&self, a: &mut CodeAssembler) -> Result<(), KernelError> {
        for sum in 2..=SUMS {
            self.with_register(a, self.add_words, 1, sum)?;
        }
        a.sub(rsp, 64)?;
        self.store(a, self.store_unaligned, MemoryOperand::with_base(Register::RSP), 1)?;
        a.xor(eax, eax)?;
        for word in (0..self.width.bytes()).step_by(8) {
            a.add(rax, ptr(rsp + word))?;
        }
        a.add(rsp, 64)?;
        Ok(())
    }
}
