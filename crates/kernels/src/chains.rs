//! Several dependent chains side by side: what of their misses overlaps.

use crate::KernelError;
use crate::emit::{repeat, saving};
use crate::error::in_range;
use iced_x86::code_asm::{
    AsmRegister64, CodeAssembler, ptr, r8, r9, r10, r11, r12, r13, r14, r15, rax, rbp, rbx, rcx, rdi, rdx,
    rsi,
};

const MAX_CHAINS: u32 = 64;

/// The chains that are kept in registers; those beyond are kept in the table. There a step reads
/// and writes its own word only, at an address that is known from the start, so the core never has
/// cause to let one chain wait for another.
const HELD: [AsmRegister64; 12] = [rax, rbx, rcx, rdi, rbp, r8, r9, r10, r11, r12, r13, r14];

pub(crate) fn emit(a: &mut CodeAssembler, chains: u32) -> Result<(), KernelError> {
    in_range("chains", chains, 1, MAX_CHAINS)?;
    let chains = chains as usize;
    let held = &HELD[..chains.min(HELD.len())];
    saving(a, &[rbx, rbp, r12, r13, r14, r15], |a| {
        for (i, &register) in held.iter().enumerate() {
            a.mov(register, ptr(rdx + 8 * i))?;
        }
        repeat(a, rsi, |a| {
            for &register in held {
                a.mov(register, ptr(register))?;
            }
            for i in held.len()..chains {
                a.mov(r15, ptr(rdx + 8 * i))?;
                a.mov(r15, ptr(r15))?;
                a.mov(ptr(rdx + 8 * i), r15)?;
            }
            Ok(())
        })?;
        for (i, &register) in held.iter().enumerate() {
            a.mov(ptr(rdx + 8 * i), register)?;
        }
        Ok(())
    })?;
    a.ret()?;
    Ok(())
}
