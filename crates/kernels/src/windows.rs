//! Windows of an area, drawn at random by the caller: every double is read, sign-changed and
//! written back.

use crate::KernelError;
use crate::emit::{last_word, repeat};
use crate::error::{in_range, multiple};
use iced_x86::code_asm::{
    AsmRegisterXmm, AsmRegisterYmm, CodeAssembler, ptr, r8, r9, r10, rax, rdi, rdx, rsi, xmm0, xmm1, xmm2,
    xmm3, xmm4, xmm5, xmm6, xmm7, ymm0, ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm7,
};

const LINE_BYTES: u32 = 64;
const MAX_WINDOW_BYTES: u32 = 65536;
/// The most bytes that are unrolled.
const MAX_CHUNK_BYTES: u32 = 512;

const SCALARS: [AsmRegisterXmm; 7] = [xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7];
const VECTORS: [AsmRegisterYmm; 7] = [ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm7];

pub(crate) fn emit(a: &mut CodeAssembler, bytes: u32, vectorised: bool) -> Result<(), KernelError> {
    in_range("bytes of a window", bytes, LINE_BYTES, MAX_WINDOW_BYTES)?;
    multiple("bytes of a window", bytes, LINE_BYTES)?;
    let mut chunks = (LINE_BYTES..=MAX_CHUNK_BYTES).rev().step_by(LINE_BYTES as usize);
    let chunk = chunks.find(|chunk| bytes % chunk == 0).expect("a line divides it");

    a.mov(r10, rsi)?;
    a.mov(rax, i64::MIN)?;
    a.movq(xmm0, rax)?;
    if vectorised {
        a.vbroadcastsd(ymm0, xmm0)?;
    }
    repeat(a, rsi, |a| {
        a.mov(r8, ptr(rdx))?;
        a.add(rdx, 8)?;
        a.add(r8, rdi)?;
        if bytes > chunk {
            a.mov(r9, u64::from(bytes / chunk))?;
            repeat(a, r9, |a| negate(a, chunk, vectorised))
        } else {
            negate(a, chunk, vectorised)
        }
    })?;
    last_word(a, r10, r8)?;
    if vectorised {
        a.vzeroupper()?;
    }
    a.ret()?;
    Ok(())
}

/// Changes the sign of the doubles in the `chunk` bytes at `r8`, and moves `r8` beyond them.
fn negate(a: &mut CodeAssembler, chunk: u32, vectorised: bool) -> Result<(), KernelError> {
    let chunk = chunk as i32;
    if vectorised {
        for (at, register) in (0..chunk).step_by(32).zip(VECTORS.into_iter().cycle()) {
            a.vxorpd(register, ymm0, ptr(r8 + at))?;
            a.vmovupd(ptr(r8 + at), register)?;
        }
    } else {
        for (at, register) in (0..chunk).step_by(8).zip(SCALARS.into_iter().cycle()) {
            a.movsd_2(register, ptr(r8 + at))?;
            a.xorpd(register, xmm0)?;
            a.movsd_2(ptr(r8 + at), register)?;
        }
    }
    a.add(r8, chunk)?;
    Ok(())
}
