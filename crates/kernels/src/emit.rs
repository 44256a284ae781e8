//! What several families need to emit: counted loops, saving registers.

use crate::KernelError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, eax, ptr, rax};

/// Runs `body` `counter` times (not at all for 0); the counter is 0 afterwards. The body must leave
/// it alone. The branch back is as long as the body needs.
pub(crate) fn repeat(
    a: &mut CodeAssembler,
    counter: AsmRegister64,
    body: impl FnOnce(&mut CodeAssembler) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let (mut top, mut done) = (a.create_label(), a.create_label());
    a.test(counter, counter)?;
    a.jz(done)?;
    a.set_label(&mut top)?;
    a.zero_bytes()?; // the body may begin with a label of its own
    body(a)?;
    a.dec(counter)?;
    a.jnz(top)?;
    a.set_label(&mut done)?;
    a.zero_bytes()?;
    Ok(())
}

/// Saves `registers` on the stack around `body`.
pub(crate) fn saving(
    a: &mut CodeAssembler,
    registers: &[AsmRegister64],
    body: impl FnOnce(&mut CodeAssembler) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    for &register in registers {
        a.push(register)?;
    }
    body(a)?;
    for &register in registers.iter().rev() {
        a.pop(register)?;
    }
    Ok(())
}

/// `rax` = the word that ends at `end` if `loops` is not 0, else 0.
pub(crate) fn last_word(
    a: &mut CodeAssembler,
    loops: AsmRegister64,
    end: AsmRegister64,
) -> Result<(), KernelError> {
    let mut none = a.create_label();
    a.xor(eax, eax)?;
    a.test(loops, loops)?;
    a.jz(none)?;
    a.mov(rax, ptr(end - 8))?;
    a.set_label(&mut none)?;
    a.zero_bytes()?;
    Ok(())
}
