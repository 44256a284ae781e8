//! Two chains with fillers between their steps, after Henry Wong: the number of fillers at which
//! the misses stop overlapping is the space that the core has for them.

use crate::emit::repeat;
use crate::filler::{fill, framed};
use crate::{Filler, KernelError};
use iced_x86::code_asm::{CodeAssembler, ptr, rax, rcx, rdi, rdx, rsi};

pub(crate) fn emit(a: &mut CodeAssembler, filler: Filler, gap: u32) -> Result<(), KernelError> {
    framed(a, |a| {
        // The loop's `test` clears the carry flag and its `dec` leaves it alone, as the fillers
        // ask.
        repeat(a, rsi, |a| {
            for chain in [rdi, rcx] {
                a.mov(chain, ptr(chain))?;
                fill(a, filler, gap)?;
            }
            Ok(())
        })?;
        a.mov(ptr(rdx), rdi)?;
        a.mov(ptr(rdx + 8), rcx)?;
        a.mov(rax, rdi)?;
        Ok(())
    })?;
    a.ret()?;
    Ok(())
}
