//! What a measurement chooses where the command line does not: the CPU, the memory for its areas,
//! the seed.

use crate::context::Refused;
use lab::claim::Claim;
use records::host::Host;
use units::Bytes;

/// Below this, areas beyond the caches cannot be measured at all.
pub const LEAST_MEMORY: Bytes = Bytes::mib(16);

/// Addresses that this program takes itself, threads' stacks and heaps among them: 64 MiB for the
/// heap of each thread but the first that allocates, and few allocate.
const ADDRESSES: Bytes = Bytes::mib(128);

/// Memory that this program takes itself, tables and results among it: 4 MiB were too few.
const BESIDE_AREAS: Bytes = Bytes::mib(16);

/// The CPU to measure on.
#[derive(Debug)]
pub struct CpuChoice {
    pub cpu: usize,
    /// Keeps other measurements off this CPU; none where one is there already.
    pub claim: Option<Claim>,
}

/// The CPU that was asked for, or else the last one that may be used and that no other measurement
/// has: the first one often serves interrupts. Where each has a measurement, the last one.
pub fn cpu(asked: Option<usize>) -> Result<CpuChoice, Refused> {
    let choice = |cpu| CpuChoice { cpu, claim: Claim::on(cpu) };
    if let Some(cpu) = asked {
        return Ok(choice(cpu));
    }
    let allowed = lab::pin::allowed()?;
    let free = allowed.iter().rev().copied().map(choice).find(|choice| choice.claim.is_some());
    match (free, allowed.last()) {
        (Some(free), _) => Ok(free),
        (None, Some(&cpu)) => Ok(CpuChoice { cpu, claim: None }),
        (None, None) => Err(Refused::failed("no CPU may be used")),
    }
}

/// How much memory the areas of all experiments may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryChoice {
    pub areas: Bytes,
    /// Free memory, within all limits.
    pub usable: Bytes,
    /// The largest part of it that areas may take.
    pub most: Bytes,
}

/// Why no experiment has memory enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryRefused {
    AskedForTooLittle,
    /// All that can be had.
    TooLittleHere(Bytes),
}

/// Half of what can be had, unless more or less is asked for.
pub fn memory(asked: Option<Bytes>, host: &Host) -> Result<MemoryChoice, MemoryRefused> {
    let usable = usable(host);
    if asked.is_some_and(|asked| asked < LEAST_MEMORY) {
        return Err(MemoryRefused::AskedForTooLittle);
    }
    if usable < LEAST_MEMORY {
        return Err(MemoryRefused::TooLittleHere(usable));
    }
    let most = most_of(usable);
    Ok(MemoryChoice { areas: asked.unwrap_or(Bytes(usable.0 / 2)).min(most), usable, most })
}

/// The most memory that areas may take: a control group would kill this process for what it takes
/// beside them.
fn most_of(usable: Bytes) -> Bytes {
    let beside = Bytes(usable.0.saturating_sub(BESIDE_AREAS.0));
    Bytes(usable.0 / 10 * 9).min(beside).max(Bytes(usable.0 / 2))
}

/// Free memory, and no more addresses than the shell allows this process.
fn usable(host: &Host) -> Bytes {
    let memory = host.memory.usable().unwrap_or(Bytes::gib(1));
    match host.limits.address_space.value().flatten() {
        Some(limit) => memory.min(Bytes(limit.0.saturating_sub(ADDRESSES.0))),
        None => memory,
    }
}

/// Short enough to be typed again.
pub fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id())) % 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_leave_space_for_the_program() {
        assert_eq!(most_of(Bytes::mib(1000)), Bytes::mib(900));
        assert_eq!(most_of(Bytes::mib(40)), Bytes::mib(24));
        assert_eq!(most_of(Bytes::mib(18)), Bytes::mib(9));
    }

    #[test]
    fn two_measurements_choose_different_cpus() {
        let all = lab::pin::allowed().unwrap();
        let choices: Vec<CpuChoice> = all.iter().map(|_| cpu(None).unwrap()).collect();
        let mut ours: Vec<usize> =
            choices.iter().filter(|c| c.claim.is_some()).map(|choice| choice.cpu).collect();
        let claimed = ours.len();
        ours.sort_unstable();
        ours.dedup();
        assert_eq!(ours.len(), claimed, "{choices:?}");
        assert!(ours.iter().all(|cpu| all.contains(cpu)));
    }
}
