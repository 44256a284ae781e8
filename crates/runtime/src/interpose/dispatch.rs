//! A program has its system calls handed to a handler of its own (`PR_SET_SYSCALL_USER_DISPATCH`).
//! The runtime's, made in the program's threads, would be among them: the first signal that came
//! while they are handed over would end it. So it fails, as before Linux 5.11.
//!
//! And a primary forbids itself system calls (`PR_SET_SECCOMP`): its threads make none for others
//! from then on ([`crate::switching::loans`]).
//!
//! Seen is what goes through libc, by `prctl` or by `syscall` ([`super::bases`]); of scavengers the
//! filter sees all (`exec/filter.rs`).

use crate::interpose::mine::mine;
use crate::interpose::next::{Next, fail};
use crate::layout::area::kind;
use core::sync::atomic::Ordering::{Relaxed, Release};

const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;
pub(crate) const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const PR_SET_SECCOMP: i32 = 22;

static PRCTL: Next = Next::new(c"prctl");

/// Whether this `prctl` is the one, and not let through. Then it has failed.
pub(super) fn is_refused(option: i32) -> bool {
    if option == PR_SET_SECCOMP {
        forbids();
    }
    let refused = option == PR_SET_SYSCALL_USER_DISPATCH && mine().is_some();
    if refused {
        fail(EINVAL);
    }
    refused
}

/// System calls are about to be forbidden.
pub(super) fn forbids() {
    if let Some(area) = mine().filter(|area| area.kind.load(Relaxed) == kind::PRIMARY) {
        area.region().sandboxed.store(1, Release);
    }
}

pub(super) fn look_up() {
    PRCTL.address();
}

/// The others that it may take are passed on, whether they are there or not.
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn prctl(option: i32, second: usize, third: usize, fourth: usize, fifth: usize) -> i32 {
    if is_refused(option) {
        return -1;
    }
    match PRCTL.address() {
        0 => fail(ENOSYS),
        // SAFETY: libc's function, which takes up to five words.
        address => unsafe {
            let function: unsafe extern "C" fn(i32, usize, usize, usize, usize) -> i32 =
                core::mem::transmute(address);
            function(option, second, third, fourth, fifth)
        },
    }
}
