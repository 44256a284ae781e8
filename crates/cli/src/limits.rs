//! Whether the limits of the shell leave the memory that any verb needs.

use crate::failure::Refusal;
use records::host::Memory;
use rustix::io::Errno;
use rustix::process::{Resource, WaitOptions, getpid, getrlimit, waitpid};
use units::Bytes;

/// What every verb reads and computes with, beside what is mapped at the start: of an older build,
/// which mapped 31 MiB, 4 more were too few, 8 enough.
const LEAST_BESIDE_PROGRAM: Bytes = Bytes::mib(9);

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
    if getrlimit(Resource::As).current.is_none() {
        return Ok(()); // so what is mapped need not be read, at each start
    }
    enough(
        Resource::As,
        least(),
        "address space is",
        "-v",
        "is enough to start, without memory to measure in",
    )
}

pub(crate) fn look_for_harvest() -> Result<(), Refusal> {
    enough(Resource::As, LEAST_HARVEST, "address space is", "-v", "is enough for small programs")?;
    enough(Resource::Data, LEAST_DATA, "size of data is", "-d", "is enough for small programs")
}

/// Where a sandbox forbids to wait for processes, the end of a program would never be seen.
pub(crate) fn look_for_waiting() -> Result<(), Refusal> {
    // No process is its own child.
    match waitpid(Some(getpid()), WaitOptions::NOHANG) {
        Err(why @ (Errno::PERM | Errno::ACCESS | Errno::NOSYS)) => {
            Err(Refusal::not_possible_here("wait4", records::plain(&why.into()))
                .would_help("a container or sandbox that allows to wait for programs"))
        }
        _ => Ok(()),
    }
}

/// What is left where a control group's limit is met by any larger program.
const LITTLE: Bytes = Bytes::mib(128);

/// What there is to say where a control group leaves so little memory that the kernel may end this
/// process, or the program, without a word.
pub(crate) fn little_memory(memory: &Memory) -> Option<String> {
    let limit = memory.cgroup_limit.value().flatten()?;
    let left = Bytes(limit.0.saturating_sub(memory.cgroup_used.value().map_or(0, |used| used.0)));
    if left >= LITTLE {
        return None;
    }
    Some(format!(
        "gleaner: memory: {left} are left of the control group's {limit} (memory.max); the kernel may kill what needs more"
    ))
}

/// The program itself, its libraries and a stack differ by build; so they are asked for.
fn least() -> Bytes {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    // Shown in whole MiB: the exact number differs by a page from run to run.
    let mapped = (pages * rustix::param::page_size() as u64).next_multiple_of(Bytes::mib(1).0);
    Bytes(mapped + LEAST_BESIDE_PROGRAM.0)
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
    fn small_control_groups_are_told_of() {
        use records::host::Fact;
        let of = |limit: Option<Bytes>, used| {
            little_memory(&Memory {
                cgroup_limit: Fact::Known(limit),
                cgroup_used: Fact::Known(used),
                ..Memory::default()
            })
        };
        assert_eq!(of(None, Bytes(0)), None);
        assert_eq!(of(Some(Bytes::mib(256)), Bytes::mib(64)), None);
        let told = "gleaner: memory: 32 MiB are left of the control group's 64 MiB (memory.max); the kernel may kill what needs more";
        assert_eq!(of(Some(Bytes::mib(64)), Bytes::mib(32)).as_deref(), Some(told));
    }

    #[test]
    fn limits_that_could_not_be_asked_for_are_none() {
        let below = |limit| limit_below(limit, LEAST_DATA);
        assert_eq!(below(None), None);
        assert_eq!(below(Some(0)), None);
        assert_eq!(below(Some(LEAST_DATA.0)), None);
        assert_eq!(below(Some(LEAST_DATA.0 - 1)), Some(Bytes(LEAST_DATA.0 - 1)));
    }
}
