//! User-level switches around a ring of contexts, inlined at each site.
//!
//! ```text
//! rdx ─► +0      8 contexts of 512 bytes
//!        +4096   7 stacks of 16 KiB
//!
//! r15 points to 64 bytes beyond the beginning of a context. From there:
//!        -64 next, -56 rsp, -48 resume point, -40 loops left, -32 flags,
//!        0 general registers, 128 vectors
//! ```
//!
//! All contexts run the same loop, in turn. The first one entered from outside; it alone counts
//! down to 0, and leaves. The others start at the loop's head, on stacks of their own, and are left
//! behind where they stand.
//!
//! A site saves what is live, its stack pointer and where to go on, takes the next context from the
//! ring, restores that one's and jumps. The only chain through it all is from context to context:
//! one load. `rax` is live only if all 14 registers are; then it is saved first and restored last,
//! as the resume point and the flags go through it.

use crate::KernelError;
use crate::emit::saving;
use crate::error::in_range;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterXmm, CodeAssembler, CodeLabel, al, ax, eax, ptr, qword_ptr,
    r8, r9, r10, r11, r12, r13, r14, r15, r15d, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp, word_ptr, xmm0, xmm1,
    xmm2, xmm3, xmm4, xmm5, xmm6, xmm7, xmm8, xmm9, xmm10, xmm11, xmm12, xmm13, xmm14, xmm15,
};

/// Contexts in the ring of [`Spec::Switch`](crate::Spec::Switch).
pub const CONTEXTS: u64 = 8;
/// Bytes that [`Spec::Switch`](crate::Spec::Switch) wants at `rdx`.
pub const SCRATCH_BYTES: usize = 128 << 10;
const MAX_SITES: u32 = 4;

const CONTEXT_BYTES: i32 = 512;
const STACKS: i32 = CONTEXTS as i32 * CONTEXT_BYTES;
const STACK_BYTES: i32 = 16 << 10;

const ORIGIN: i32 = 64;
const NEXT: i32 = -64;
const STACK: i32 = -56;
const RESUME: i32 = -48;
const LOOPS: i32 = -40;
const FLAGS: i32 = -32;
const GENERAL: i32 = 0;
const VECTOR: i32 = 128;

/// The first `live` of these are.
const REGISTERS: [AsmRegister64; 14] = [rcx, rdx, rsi, rdi, rbx, rbp, r8, r9, r10, r11, r12, r13, r14, rax];
const VECTORS: [AsmRegisterXmm; 16] =
    [xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7, xmm8, xmm9, xmm10, xmm11, xmm12, xmm13, xmm14, xmm15];

/// What context `context` begins with in its `i`th general register; no two registers of any two
/// contexts are the same.
const fn general_value(context: i32, i: i32) -> i32 {
    (context << 16) + i + 1
}

/// Likewise in the low half of its `i`th vector register.
const fn vector_value(context: i32, i: i32) -> i32 {
    (context << 16) + i + 0x101
}

/// What [`Spec::Switch`](crate::Spec::Switch) returns if every register came back.
pub fn checksum(live: u32, vectors: u32) -> u64 {
    let general = (0..live as i32).map(|i| general_value(0, i));
    let vector = (0..vectors as i32).map(|i| vector_value(0, i));
    general.chain(vector).sum::<i32>() as u64
}

struct Live {
    general: &'static [AsmRegister64],
    vectors: &'static [AsmRegisterXmm],
    flags: bool,
}

pub(crate) fn emit(
    a: &mut CodeAssembler,
    live: u32,
    flags: bool,
    vectors: u32,
    sites: u32,
) -> Result<(), KernelError> {
    in_range("sites", sites, 1, MAX_SITES)?;
    in_range("live registers", live, 0, REGISTERS.len() as u32)?;
    in_range("vectors", vectors, 0, VECTORS.len() as u32)?;
    let live = Live { general: &REGISTERS[..live as usize], vectors: &VECTORS[..vectors as usize], flags };
    let (mut head, mut leave) = (a.create_label(), a.create_label());
    saving(a, &[rbx, rbp, r12, r13, r14, r15], |a| {
        set_up(a, &live, head)?;
        restore(a, &live)?;
        a.cmp(qword_ptr(r15 + LOOPS), 0)?;
        a.je(leave)?;
        a.set_label(&mut head)?;
        for _ in 1..sites {
            switch(a, &live)?;
        }
        // Live flags are put to the test: the loop goes on by flags that have been through a
        // switch.
        if flags {
            a.dec(qword_ptr(r15 + LOOPS))?;
        }
        switch(a, &live)?;
        if !flags {
            a.dec(qword_ptr(r15 + LOOPS))?;
        }
        a.jnz(head)?;
        a.set_label(&mut leave)?;
        a.xor(r15d, r15d)?;
        for &register in live.general {
            a.add(r15, register)?;
        }
        for &register in live.vectors {
            a.movq(rax, register)?;
            a.add(r15, rax)?;
        }
        a.mov(rax, r15)?;
        Ok(())
    })?;
    a.ret()?;
    Ok(())
}

/// Writes the contexts, with `rsi` loops for the first, whose address is left in `r15`.
fn set_up(a: &mut CodeAssembler, live: &Live, head: CodeLabel) -> Result<(), KernelError> {
    a.lea(r15, ptr(rdx + ORIGIN))?;
    for context in 0..CONTEXTS as i32 {
        let here = |offset: i32| -> AsmMemoryOperand { qword_ptr(r15 + (context * CONTEXT_BYTES + offset)) };
        let next = (context + 1) % CONTEXTS as i32;
        a.lea(rax, ptr(r15 + next * CONTEXT_BYTES))?;
        a.mov(here(NEXT), rax)?;
        a.lea(rax, ptr(rdx + (STACKS + context * STACK_BYTES)))?; // its upper end; the first has none
        a.mov(here(STACK), rax)?;
        a.lea(rax, ptr(head))?;
        a.mov(here(RESUME), rax)?;
        a.mov(here(LOOPS), 0)?;
        a.mov(here(FLAGS), 0)?;
        for i in 0..live.general.len() as i32 {
            a.mov(here(GENERAL + 8 * i), general_value(context, i))?;
        }
        for i in 0..live.vectors.len() as i32 {
            a.mov(here(VECTOR + 16 * i), vector_value(context, i))?;
            a.mov(here(VECTOR + 16 * i + 8), 0)?;
        }
    }
    a.mov(qword_ptr(r15 + LOOPS), rsi)?;
    a.mov(qword_ptr(r15 + STACK), rsp)?;
    Ok(())
}

fn switch(a: &mut CodeAssembler, live: &Live) -> Result<(), KernelError> {
    let mut resume = a.create_label();
    for (i, &register) in live.general.iter().enumerate() {
        a.mov(ptr(r15 + (GENERAL + 8 * i as i32)), register)?;
    }
    for (i, &register) in live.vectors.iter().enumerate() {
        a.movaps(ptr(r15 + (VECTOR + 16 * i as i32)), register)?;
    }
    if live.flags {
        a.lahf()?;
        a.seto(al)?;
        a.mov(word_ptr(r15 + FLAGS), ax)?;
    }
    a.lea(rax, ptr(resume))?;
    a.mov(ptr(r15 + RESUME), rax)?;
    a.mov(ptr(r15 + STACK), rsp)?;
    a.mov(r15, ptr(r15 + NEXT))?;
    a.mov(rsp, ptr(r15 + STACK))?;
    restore(a, live)?;
    a.jmp(qword_ptr(r15 + RESUME))?;
    a.set_label(&mut resume)?;
    a.zero_bytes()?;
    Ok(())
}

/// Loads what is live from the context at `r15`.
fn restore(a: &mut CodeAssembler, live: &Live) -> Result<(), KernelError> {
    for (i, &register) in live.vectors.iter().enumerate() {
        a.movaps(register, ptr(r15 + (VECTOR + 16 * i as i32)))?;
    }
    if live.flags {
        a.movzx(eax, word_ptr(r15 + FLAGS))?;
        a.add(al, 127)?; // the overflow flag, as it was put into al
        a.sahf()?;
    }
    for (i, &register) in live.general.iter().enumerate() {
        a.mov(register, ptr(r15 + (GENERAL + 8 * i as i32)))?;
    }
    Ok(())
}
