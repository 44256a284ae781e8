//! Two threads at one line: handing it over in turn, and writing to it without regard to each
//! other.

use crate::emit::repeat;
use crate::{KernelError, Role};
use iced_x86::code_asm::{CodeAssembler, eax, ptr, qword_ptr, r8, r8b, rax, rdi, rdx, rsi};

pub(crate) const BUMPS_PER_LOOP: u32 = 16;

/// Plain loads and stores: x86 keeps their order. No `pause` while waiting, as on some cores it
/// lasts longer than the hand-over.
pub(crate) fn ping_pong(a: &mut CodeAssembler, role: Role) -> Result<(), KernelError> {
    let mut out = a.create_label();
    a.xor(eax, eax)?;
    repeat(a, rsi, |a| {
        let (mut wait, mut mine) = (a.create_label(), a.create_label());
        a.set_label(&mut wait)?;
        a.mov(r8, ptr(rdi))?;
        a.test(r8b, 1)?;
        match role {
            Role::Even => a.jz(mine)?,
            Role::Odd => a.jnz(mine)?,
        }
        a.cmp(qword_ptr(rdx), 0)?;
        a.je(wait)?;
        a.jmp(out)?;
        a.set_label(&mut mine)?;
        a.inc(r8)?;
        a.mov(ptr(rdi), r8)?;
        a.inc(rax)?;
        Ok(())
    })?;
    a.set_label(&mut out)?;
    a.ret()?;
    Ok(())
}

pub(crate) fn bump(a: &mut CodeAssembler, locked: bool) -> Result<(), KernelError> {
    repeat(a, rsi, |a| {
        for _ in 0..BUMPS_PER_LOOP {
            if locked {
                a.lock().add(qword_ptr(rdi), 1)?;
            } else {
                a.add(qword_ptr(rdi), 1)?;
            }
        }
        Ok(())
    })?;
    a.mov(rax, ptr(rdi))?;
    a.ret()?;
    Ok(())
}
