//! What the samples of an event are: of time, of accesses, or of nothing that a profile is made of.

use super::attributes::{DescribedEvent, field};
use super::features::Facts;
use records::profile::{Backend, LatencyKind};

/// What an event's samples stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A timer of CPU time.
    Clock,
    /// Cycles of the core, which are time as well.
    Cycles,
    Pebs,
    Ibs,
    Spe,
    None,
}

/// Types of events that every kernel has.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const RAW: u32 = 4;

impl Role {
    pub(super) fn of(event: &DescribedEvent, facts: &Facts) -> Self {
        const CPU_CLOCK: u64 = 0;
        const TASK_CLOCK: u64 = 1;
        const CPU_CYCLES: u64 = 0;
        let attributes = &event.attributes;
        let is_cpu_event = match attributes.kind {
            SOFTWARE => {
                let is_time = matches!(attributes.config, CPU_CLOCK | TASK_CLOCK);
                return if is_time { Self::Clock } else { Self::None };
            }
            // The upper half says which kind of core.
            HARDWARE if attributes.config & 0xffff_ffff == CPU_CYCLES => return Self::Cycles,
            HARDWARE => false,
            kind => {
                let pmu = facts.pmus.get(&kind).map_or("", String::as_str);
                let is = |name: &str| pmu.starts_with(name) || event.name.starts_with(name);
                if is("ibs_op") {
                    return Self::Ibs;
                } else if is("arm_spe") {
                    return Self::Spe;
                }
                kind == RAW || pmu.starts_with("cpu") || event.name.starts_with("cpu")
            }
        };
        let tells_access = attributes.holds(field::DATA_SRC) && attributes.holds(field::ADDR);
        if is_cpu_event && tells_access && facts.architecture != "aarch64" { Self::Pebs } else { Self::None }
    }

    /// How accesses were sampled; `None` for time.
    pub(crate) fn backend(self) -> Option<Backend> {
        match self {
            Self::Pebs => Some(Backend::Pebs),
            Self::Ibs => Some(Backend::Ibs),
            Self::Spe => Some(Backend::Spe),
            Self::Clock | Self::Cycles | Self::None => None,
        }
    }

    pub(crate) fn is_time(self) -> bool {
        matches!(self, Self::Clock | Self::Cycles)
    }
}

/// What a backend counts as latency.
pub(crate) fn latency_kind(backend: Backend) -> Option<LatencyKind> {
    match backend {
        Backend::Clock | Backend::Signal => None,
        Backend::Pebs => Some(LatencyKind::UntilUse),
        Backend::Ibs => Some(LatencyKind::Miss),
        Backend::Spe => Some(LatencyKind::Total),
    }
}

/// The event of Intel's cores that samples loads: its threshold is its second setting.
pub(crate) fn least_latency(event: &DescribedEvent) -> Option<u64> {
    const LOAD_LATENCY: u64 = 0x1cd;
    let attributes = &event.attributes;
    (attributes.config & 0xffff == LOAD_LATENCY && attributes.config1 > 0).then_some(attributes.config1)
}

/// Cores whose data sources are numbered alike: Neoverse N1, N2, V1, V2 of Arm.
pub(super) fn is_neoverse(facts: &Facts) -> bool {
    const ARM: u64 = 0x41;
    const PARTS: [u64; 4] = [0xd0c, 0xd49, 0xd40, 0xd4f];
    let register = facts.processor_id.trim_start_matches("0x");
    let Ok(register) = u64::from_str_radix(register, 16) else { return false };
    register >> 24 & 0xff == ARM && PARTS.contains(&(register >> 4 & 0xfff))
}

#[cfg(test)]
mod tests {
    use super::super::attributes::Attributes;
    use super::*;

    fn role(kind: u32, config: u64, sample_type: u64, name: &str) -> Role {
        let attributes = Attributes { kind, config, sample_type, ..Attributes::default() };
        let event = DescribedEvent { attributes, ids: Vec::new(), name: name.to_owned() };
        let mut facts = Facts::default();
        facts.pmus =
            [(9, "ibs_op"), (10, "cpu_core"), (11, "arm_spe_0"), (12, "ibs_fetch"), (13, "uncore_imc")]
                .map(|(kind, name)| (kind, name.to_owned()))
                .into();
        Role::of(&event, &facts)
    }

    #[test]
    fn events_are_known_by_their_pmu() {
        let access = field::ADDR | field::DATA_SRC;
        assert_eq!(role(SOFTWARE, 0, access, "cpu-clock"), Role::Clock);
        assert_eq!(role(SOFTWARE, 9, 0, "dummy:HG"), Role::None);
        assert_eq!(role(HARDWARE, 4 << 32, 0, "cycles:P"), Role::Cycles);
        assert_eq!(role(HARDWARE, 3, access, "cache-misses"), Role::None);
        assert_eq!(role(RAW, 0x1cd, access, "cpu/mem-loads,ldlat=30/P"), Role::Pebs);
        assert_eq!(role(RAW, 0x1cd, 0, "cpu/mem-loads/"), Role::None, "nothing is told of the access");
        assert_eq!(role(10, 0x1cd, access, ""), Role::Pebs);
        assert_eq!(role(9, 0, 0, ""), Role::Ibs);
        assert_eq!(role(99, 0, 0, "ibs_op//"), Role::Ibs);
        assert_eq!(role(11, 0, 0, ""), Role::Spe);
        assert_eq!(role(12, 0, access, ""), Role::None);
        assert_eq!(role(13, 0, access, ""), Role::None);
    }

    #[test]
    fn cores_with_documented_sources_are_known() {
        let is = |id: &str| {
            let mut facts = Facts::default();
            facts.processor_id = id.to_owned();
            is_neoverse(&facts)
        };
        assert!(is("0x00000000413fd0c1") && is("0x00000000410fd4f0"));
        assert!(!is("0x00000000410fd080") && !is("GenuineIntel,6,85,7") && !is(""));
    }
}
