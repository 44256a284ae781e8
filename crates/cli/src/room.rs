//! Whether the limits of the shell leave the room that any verb needs.

use crate::failure::Refusal;
use rustix::process::{Resource, getrlimit};
use units::Bytes;

/// The program itself, its libraries, a stack and what every verb reads: 35 MiB were too few, 39
/// enough.
const LEAST: Bytes = Bytes::mib(40);

/// 64 KiB of stack were too few to measure, 128 enough.
const LEAST_STACK: Bytes = Bytes::kib(128);

/// The areas of a harvest take 272 MiB of the primary's (`docs/harvest-abi.md`); what looks through
/// programs gets along with that.
const LEAST_HARVEST: Bytes = Bytes::mib(288);

/// 12 MB were enough to look through small programs, 8 too few.
const LEAST_DATA: Bytes = Bytes::mib(16);

/// Where one of these is too small, the program would be aborted without a word on the cause: by
/// its arguments already, where it is the stack.
pub(crate) fn look_for_stack() -> Result<(), Refusal> {
    enough(Resource::Stack, LEAST_STACK, "stack is", "-s", "is enough")
}

pub(crate) fn look() -> Result<(), Refusal> {
    enough(Resource::As, LEAST, "address space is", "-v", "is enough to start, without memory to measure in")
}

pub(crate) fn look_for_harvest() -> Result<(), Refusal> {
    enough(Resource::As, LEAST_HARVEST, "address space is", "-v", "is enough for small programs")?;
    enough(Resource::Data, LEAST_DATA, "size of data is", "-d", "is enough for small programs")
}

fn enough(resource: Resource, least: Bytes, what: &str, option: &str, help: &str) -> Result<(), Refusal> {
    limit_below(getrlimit(resource).current, least).map_or(Ok(()), |limit| {
        let why = format!("the {what} limited to {limit} (ulimit {option})");
        Err(Refusal::not_possible_here("memory", why).would_help(format!("{least} {help}")))
    })
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
