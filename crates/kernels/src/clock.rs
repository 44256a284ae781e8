//! Kernels that touch no memory: chains whose length in core cycles is known, a busy loop, and
//! nothing at all.

use crate::KernelError;
use crate::emit::repeat;
use crate::error::in_range;
use iced_x86::code_asm::{CodeAssembler, eax, ecx, r8, r8d, r9, r9d, r10, r10d, rax, rcx, rsi};

/// Longer bodies than this would leave the instruction cache.
const MAX_UNROLL: u32 = 4096;

pub(crate) fn nothing(a: &mut CodeAssembler) -> Result<(), KernelError> {
    a.xor(eax, eax)?;
    a.ret()?;
    Ok(())
}

/// Register-register adds: some cores execute `inc` and `add` with a small immediate at rename, in
/// no time at all.
pub(crate) fn adds(a: &mut CodeAssembler, unroll: u32) -> Result<(), KernelError> {
    in_range("unroll", unroll, 1, MAX_UNROLL)?;
    a.xor(eax, eax)?;
    a.mov(ecx, 1)?;
    repeat(a, rsi, |a| {
        for _ in 0..unroll {
            a.add(rax, rcx)?;
        }
        Ok(())
    })?;
    a.ret()?;
    Ok(())
}

pub(crate) fn muls(a: &mut CodeAssembler, unroll: u32) -> Result<(), KernelError> {
    in_range("unroll", unroll, 1, MAX_UNROLL)?;
    a.mov(eax, 1)?;
    a.mov(ecx, 3)?;
    repeat(a, rsi, |a| {
        for _ in 0..unroll {
            a.imul_2(rax, rcx)?;
        }
        Ok(())
    })?;
    a.ret()?;
    Ok(())
}

/// Keeps the execution units as busy as ordinary integer code does, so that a sibling thread on the
/// same core slows down: four independent chains.
pub(crate) fn spin(a: &mut CodeAssembler, unroll: u32) -> Result<(), KernelError> {
    in_range("unroll", unroll, 1, MAX_UNROLL / 4)?;
    a.xor(eax, eax)?;
    a.xor(r8d, r8d)?;
    a.xor(r9d, r9d)?;
    a.xor(r10d, r10d)?;
    a.mov(ecx, 1)?;
    repeat(a, rsi, |a| {
        for _ in 0..unroll {
            for chain in [rax, r8, r9, r10] {
                a.add(chain, rcx)?;
            }
        }
        Ok(())
    })?;
    for chain in [r8, r9, r10] {
        a.add(rax, chain)?;
    }
    a.ret()?;
    Ok(())
}
