//! Functions of libc that the runtime interposes, in primaries and in scavengers with a dynamic
//! loader.
//!
//! They are exported only from the shared object. In a process that is no part of a harvest they
//! call libc's.
//!
//! To add one: a function in the file of its subject, with `#[cfg_attr(freestanding,
//! unsafe(no_mangle))]`, and here why it cannot be left alone:
//!
//! - [`threads`]: a new thread inherits its creator's GS base, and needs an area of its own.
//! - [`clones`]: so do threads of a scavenger whose libc has twins, before their first instruction.
//! - [`notify`]: so do threads that libc makes past that, to call the program in them.
//! - [`handlers`]: handlers, signal stacks and masks are what a guest's faults and the primary's
//!   signals depend on.
//! - [`older`]: so are those of older interfaces, which libc serves past its own `sigaction`.
//! - [`forks`]: a forked child has no supervisor; its guests would be copies.
//! - [`ending`]: guests that run on other threads of a primary when it ends would be lost.
//! - [`itself`]: a program's own file is the one that was rewritten, not the copy that runs.
//! - [`bases`]: a program that sets the GS base takes the area from its yields.
//! - [`dispatch`]: a program that has system calls handed to itself would get the runtime's.
//! - [`cancel`]: a thread that is cancelled in the midst of a guest would unwind the guest's stack.

pub(crate) mod bases;
mod cancel;
pub(crate) mod clones;
pub(crate) mod dispatch;
mod ending;
mod forks;
mod handlers;
pub(crate) mod itself;
pub(crate) mod mine;
mod next;
mod notify;
mod older;
pub(crate) mod threads;

pub(crate) use next::look_up;
