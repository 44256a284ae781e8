//! Timed shots: a handful of accesses between two readings of the TSC, fenced off from what is
//! before and after.
//!
//! `r8` holds the TSC at the start, `r9` where the next result goes, `rsi` the shots left. `rax`,
//! `rbx`, `rcx`, `rdx` belong to the timing instructions.

use crate::emit::repeat;
use crate::error::in_range;
use crate::filler::{fill, framed};
use crate::{Fence, Filler, KernelError};
use iced_x86::code_asm::{CodeAssembler, eax, ptr, r8, r9, rax, rbx, rdi, rdx, rsi};

const MAX_ACCESSES: u32 = 64;

/// Independent accesses, whose addresses come from a table.
pub(crate) fn burst(
    a: &mut CodeAssembler,
    accesses: u32,
    gap: u32,
    filler: Filler,
    fence: Fence,
) -> Result<(), KernelError> {
    in_range("accesses", accesses, 1, MAX_ACCESSES)?;
    let row = 8 * accesses as i32;
    framed(a, |a| {
        a.mov(r9, rdx)?;
        a.xor(r8, r8)?;
        repeat(a, rsi, |a| {
            for line in (0..row).step_by(64) {
                a.mov(rax, ptr(rdi + line))?;
            }
            a.mov(rax, ptr(rdi + (row - 8)))?; // a row need not begin with a line, so it may end in one more
            start(a, fence)?;
            for access in 0..accesses {
                if access == accesses - 1 {
                    fill(a, filler, gap)?;
                }
                a.mov(rax, ptr(rdi + 8 * access))?;
                a.mov(rbx, ptr(rax))?;
            }
            stop(a, fence, |a| Ok(a.mov(r8, rbx)?))?;
            a.add(rdi, row)?;
            Ok(())
        })?;
        a.mov(rax, r8)?;
        Ok(())
    })?;
    a.ret()?;
    Ok(())
}

/// Dependent accesses, along one chain.
pub(crate) fn sequence(a: &mut CodeAssembler, accesses: u32, fence: Fence) -> Result<(), KernelError> {
    in_range("accesses", accesses, 0, MAX_ACCESSES)?;
    crate::emit::saving(a, &[rbx], |a| {
        a.mov(r9, rdx)?;
        repeat(a, rsi, |a| {
            start(a, fence)?;
            for _ in 0..accesses {
                a.mov(rdi, ptr(rdi))?;
            }
            stop(a, fence, |_| Ok(()))
        })?;
        a.mov(rax, rdi)?;
        Ok(())
    })?;
    a.ret()?;
    Ok(())
}

/// Leaves the carry flag clear.
fn start(a: &mut CodeAssembler, fence: Fence) -> Result<(), KernelError> {
    match fence {
        Fence::Lfence => {
            a.mfence()?; // the result of the shot before has left the store buffer
            a.lfence()?;
        }
        Fence::Cpuid => {
            a.xor(eax, eax)?;
            a.cpuid()?;
        }
    }
    a.rdtsc()?;
    a.shl(rdx, 32)?;
    a.or(rax, rdx)?;
    a.mov(r8, rax)?;
    if fence == Fence::Lfence {
        a.lfence()?; // no access before the clock is read
    }
    Ok(())
}

/// `keep` is the place to save what `cpuid` would overwrite; `r8` is free from there on.
fn stop(
    a: &mut CodeAssembler,
    fence: Fence,
    keep: impl FnOnce(&mut CodeAssembler) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    a.rdtscp()?; // waits for every load before it
    a.shl(rdx, 32)?;
    a.or(rax, rdx)?;
    a.sub(rax, r8)?;
    keep(a)?;
    if fence == Fence::Lfence {
        a.lfence()?; // nothing of what follows starts before the clock is read
    }
    a.mov(ptr(r9), rax)?;
    a.add(r9, 8)?;
    if fence == Fence::Cpuid {
        a.xor(eax, eax)?;
        a.cpuid()?;
    }
    Ok(())
}
