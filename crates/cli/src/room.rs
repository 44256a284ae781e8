//! Whether the limits of the shell leave the room that any verb needs.

use crate::failure::Refusal;
use rustix::process::{Resource, getrlimit};
use units::Bytes;

/// The program itself, its libraries, a stack and what every verb reads: 22 MiB were too few, 30 enough.
const LEAST: Bytes = Bytes::mib(32);

/// Where the address space is too small, the allocator would abort without a word on the cause.
pub(crate) fn look() -> Result<(), Refusal> {
    match getrlimit(Resource::As).current {
        Some(limit) if limit < LEAST.0 => Err(Refusal::not_possible_here(
            "memory",
            format!("the address space is limited to {} (ulimit -v)", Bytes(limit)),
        )
        .would_help(format!("at least {LEAST} would do, without areas to measure in"))),
        _ => Ok(()),
    }
}
