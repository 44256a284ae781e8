//! Whether the limits of the shell leave the room that any verb needs.

use crate::failure::Refusal;
use rustix::process::{Resource, getrlimit};
use units::Bytes;

/// The program itself, its libraries, a stack and what every verb reads: 22 MiB were too few, 30 enough.
const LEAST: Bytes = Bytes::mib(32);

/// 64 KiB of stack were too few to measure, 128 enough.
const LEAST_STACK: Bytes = Bytes::kib(128);

/// Where one of these is too small, the program would be aborted without a word on the cause.
pub(crate) fn look() -> Result<(), Refusal> {
    let too_small = |resource, least: Bytes| limit_below(getrlimit(resource).current, least);
    let refused = |what: &str, limit: Bytes, option: &str, help: String| {
        let why = format!("the {what} is limited to {limit} (ulimit {option})");
        Err(Refusal::not_possible_here("memory", why).would_help(help))
    };
    if let Some(limit) = too_small(Resource::As, LEAST) {
        let help = format!("at least {LEAST} would do, without areas to measure in");
        return refused("address space", limit, "-v", help);
    }
    if let Some(limit) = too_small(Resource::Stack, LEAST_STACK) {
        return refused("stack", limit, "-s", format!("at least {LEAST_STACK} would do"));
    }
    Ok(())
}

/// A limit of nothing is none: with it, this program would not run. A sandbox did not let us ask.
fn limit_below(limit: Option<u64>, least: Bytes) -> Option<Bytes> {
    limit.map(Bytes).filter(|l| (1..least.0).contains(&l.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_could_not_be_asked_for_are_none() {
        let below = |limit| limit_below(limit, LEAST);
        assert_eq!(below(None), None);
        assert_eq!(below(Some(0)), None);
        assert_eq!(below(Some(LEAST.0)), None);
        assert_eq!(below(Some(LEAST.0 - 1)), Some(Bytes(LEAST.0 - 1)));
    }
}
