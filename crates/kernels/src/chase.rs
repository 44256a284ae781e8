//! One dependent chain of pointers: each load's address is what the load before it returned.

use crate::KernelError;
use crate::emit::repeat;
use crate::error::in_range;
use crate::spec::Access;
use iced_x86::code_asm::{CodeAssembler, ptr, rax, rdi, rsi};

const MAX_UNROLL: u32 = 4096;

pub(crate) fn emit(a: &mut CodeAssembler, unroll: u32, access: Access) -> Result<(), KernelError> {
    in_range("unroll", unroll, 1, MAX_UNROLL)?;
    repeat(a, rsi, |a| match access {
        Access::Read => {
            for _ in 0..unroll {
                a.mov(rdi, ptr(rdi))?;
            }
            Ok(())
        }
        // The store needs the old address after the load has replaced it: two registers take turns,
        // so that nothing but the load stands between one address and the next.
        Access::ReadModifyWrite => {
            let (mut here, mut next) = (rdi, rax);
            for _ in 0..unroll {
                a.mov(next, ptr(here))?;
                a.mov(ptr(here), next)?;
                (here, next) = (next, here);
            }
            if here != rdi {
                a.mov(rdi, here)?;
            }
            Ok(())
        }
    })?;
    a.mov(rax, rdi)?;
    a.ret()?;
    Ok(())
}
