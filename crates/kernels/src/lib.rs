//! Measuring kernels: a [`Spec`] says what to measure, [`assemble`] turns it into x86-64 machine
//! code. Pure: nothing here is ever executed; that is the lab's business.
//!
//! # What every kernel keeps to
//!
//! - `extern "sysv64" fn(rdi: *mut u8, rsi: u64, rdx: *mut u64, rcx: *mut u64) -> u64`. What the
//!   four mean stands at each variant of [`Spec`]; `rsi` is always the number of loops, and 0 loops
//!   do nothing.
//! - Position-independent: it may be copied to any address.
//! - Callee-saved registers and the stack pointer are as before at the return; the direction flag,
//!   MXCSR and the upper halves of vector registers are left clean. The kernel uses no more than
//!   [`STACK_BYTES`] of its caller's stack.
//! - No calls, no system calls, no privileged instruction, one `ret`, which is the last
//!   instruction.
//!
//! To add a family: a variant in `spec.rs` with its contract, a file beside `chase.rs` that emits
//! it, a line in [`assemble`], and its shape in `tests/`.

#![forbid(unsafe_code)]

mod chains;
mod chase;
mod clock;
mod emit;
mod error;
mod filler;
mod rob;
mod sharing;
mod shot;
mod spec;
mod stream;
mod switch;
mod windows;

pub use error::KernelError;
pub use spec::{Access, Fence, Filler, Isa, Role, Spec, StreamOp, Width};
pub use stream::LINES_PER_LOOP as STREAM_LINES_PER_LOOP;
pub use switch::{
    CONTEXTS as SWITCH_CONTEXTS, SCRATCH_BYTES as SWITCH_SCRATCH_BYTES, checksum as switch_checksum,
};

use iced_x86::code_asm::CodeAssembler;

/// The most a kernel pushes onto its caller's stack.
pub const STACK_BYTES: usize = 4096;

/// A specification and the machine code made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub spec: Spec,
    /// Position-independent machine code; the entry is its first byte.
    pub code: Vec<u8>,
    /// Operations in one loop: adds, accesses, lines, switches …; results are per operation.
    pub ops_per_loop: u64,
}

/// Makes the machine code of `spec`, or says which of its parameters is out of range.
///
/// ```
/// use gleaner_kernels::{Access, Spec, assemble};
///
/// // Each of two loads per loop waits for the one before it.
/// let kernel = assemble(&Spec::Chase { unroll: 2, access: Access::Read })?;
/// assert_eq!(kernel.ops_per_loop, 2);
/// let load = [0x48, 0x8b, 0x3f]; // mov rdi, [rdi]
/// assert_eq!(kernel.code.windows(3).filter(|bytes| *bytes == load).count(), 2);
/// assert_eq!(kernel.code.last(), Some(&0xc3)); // ret
///
/// let refused = assemble(&Spec::ParallelChains { chains: 65 }).unwrap_err();
/// assert_eq!(refused.to_string(), "chains is 65, but must be from 1 to 64");
/// # Ok::<(), gleaner_kernels::KernelError>(())
/// ```
pub fn assemble(spec: &Spec) -> Result<Kernel, KernelError> {
    let mut a = CodeAssembler::new(64)?;
    match *spec {
        Spec::Nothing => clock::nothing(&mut a)?,
        Spec::Spin { unroll } => clock::spin(&mut a, unroll)?,
        Spec::Adds { unroll } => clock::adds(&mut a, unroll)?,
        Spec::Muls { unroll } => clock::muls(&mut a, unroll)?,
        Spec::Chase { unroll, access } => chase::emit(&mut a, unroll, access)?,
        Spec::ParallelChains { chains } => chains::emit(&mut a, chains)?,
        Spec::Burst { accesses, gap, filler, fence } => shot::burst(&mut a, accesses, gap, filler, fence)?,
        Spec::Sequence { accesses, fence } => shot::sequence(&mut a, accesses, fence)?,
        Spec::Rob { filler, gap } => rob::emit(&mut a, filler, gap)?,
        Spec::Stream { op, width, delay } => stream::emit(&mut a, op, width, delay)?,
        Spec::Windows { bytes, vectorised } => windows::emit(&mut a, bytes, vectorised)?,
        Spec::PingPong { role } => sharing::ping_pong(&mut a, role)?,
        Spec::Bump { locked } => sharing::bump(&mut a, locked)?,
        Spec::Switch { live, flags, vectors, sites } => switch::emit(&mut a, live, flags, vectors, sites)?,
    }
    // Nothing absolute is in it, so the address given here does not matter.
    let code = a.assemble(0)?;
    Ok(Kernel { spec: spec.clone(), code, ops_per_loop: spec.ops_per_loop() })
}
