//! Which hardware counters can be had, found by opening them.
//!
//! A PMU in sysfs promises nothing: guests list PMUs whose events cannot be opened, and open events
//! that never count.

use crate::cpuid::Cpuid;
use crate::probe::{EventSpec, Prober, Refusal, errno, errno_name};
use crate::remedies::{self, Place};
use crate::source::Source;
use records::host::{Ability, Counters, Limits, PmuDevice};

const DEVICES: &str = "sys/bus/event_source/devices";

// <linux/perf_event.h>
const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_BREAKPOINT: u32 = 5;
const HARDWARE_CPU_CYCLES: u64 = 0;
const HARDWARE_CACHE_MISSES: u64 = 3;
const SOFTWARE_TASK_CLOCK: u64 = 1;

pub(crate) fn counters(
    source: &Source,
    cpuid: &Cpuid,
    prober: &dyn Prober,
    place: &Place<'_>,
    limits: &Limits,
) -> Counters {
    let devices = devices(source);
    let paranoid = source.value::<i32>("proc/sys/kernel/perf_event_paranoid");
    let trial = Trial { prober, place, limits, paranoid: paranoid.value() };
    let hardware =
        trial.counting(&core_event("cycles", HARDWARE_CPU_CYCLES), "core cycles count in user mode");
    let cache_misses = trial
        .counting(&core_event("cache-misses", HARDWARE_CACHE_MISSES), "last-level misses count in user mode");
    Counters {
        pebs: pebs(source, cpuid, &trial, &devices, &hardware),
        ibs: ibs(cpuid, &trial, &devices),
        spe: spe(source, &trial, &devices),
        breakpoints: breakpoints(&trial),
        software: software(&trial),
        hardware,
        cache_misses,
        devices,
        paranoid,
    }
}

fn devices(source: &Source) -> Vec<PmuDevice> {
    source
        .names(DEVICES)
        .into_iter()
        .map(|name| {
            let file = |f: &str| source.cpus(&format!("{DEVICES}/{name}/{f}")).get().cloned();
            PmuDevice {
                kind: source.value(&format!("{DEVICES}/{name}/type")),
                cpus: file("cpus").or_else(|| file("cpumask")),
                name,
            }
        })
        .collect()
}

struct Trial<'a> {
    prober: &'a dyn Prober,
    place: &'a Place<'a>,
    limits: &'a Limits,
    paranoid: Option<i32>,
}

impl Trial<'_> {
    /// An event that must open and count.
    fn counting(&self, event: &EventSpec, detail: &str) -> Ability {
        match self.prober.event(event) {
            Ok(0) => Ability::no("the event opens but counts nothing", remedies::counters(self.place)),
            Ok(_) => Ability::yes(detail),
            Err(refusal) => self.refused(&refusal, || remedies::counters(self.place)),
        }
    }

    /// An event that must open; its samples come by another way than its count.
    fn sampling(&self, event: &EventSpec, detail: &str, what: &str) -> Ability {
        match self.prober.event(event) {
            Ok(_) => Ability::yes(detail),
            Err(refusal) => self.refused(&refusal, || remedies::load_sampling(self.place, what)),
        }
    }

    fn refused(&self, refusal: &Refusal, absent: impl FnOnce() -> String) -> Ability {
        let number = match refusal {
            Refusal::NotTried(why) => return Ability::unknown(why.clone()),
            Refusal::Errno(number) => *number,
        };
        let name = errno_name(number);
        match number {
            errno::EPERM | errno::EACCES => Ability::no(
                format!("forbidden ({name})"),
                remedies::permission(self.place, self.paranoid, self.limits),
            ),
            errno::ENOSYS => Ability::no(
                format!("no perf_event_open ({name})"),
                "boot a kernel with CONFIG_PERF_EVENTS, outside any sandbox that hides the call",
            ),
            errno::EBUSY => Ability::no(
                format!("in use by another process ({name})"),
                "end other profilers, and `sysctl kernel.nmi_watchdog=0`",
            ),
            _ => Ability::no(format!("the event cannot be opened ({name})"), absent()),
        }
    }
}

fn core_event(name: &'static str, config: u64) -> EventSpec {
    EventSpec { name, kind: TYPE_HARDWARE, config, ..blank() }
}

fn blank() -> EventSpec {
    EventSpec {
        name: "",
        kind: 0,
        config: 0,
        config1: 0,
        precise: 0,
        period: None,
        exclude_kernel: true,
        leader: None,
        breakpoint: false,
    }
}

fn device<'a>(devices: &'a [PmuDevice], names: &[&str]) -> Option<(&'a PmuDevice, u32)> {
    let found = devices.iter().find(|d| names.contains(&d.name.as_str()))?;
    Some((found, found.kind.value()?))
}

/// Loads with address, latency and data source, by the event that the kernel names for them.
fn pebs(
    source: &Source,
    cpuid: &Cpuid,
    trial: &Trial<'_>,
    devices: &[PmuDevice],
    hardware: &Ability,
) -> Ability {
    if !cpuid.is_intel() {
        return Ability::no("not an Intel processor", "AMD has IBS and Arm has SPE in its place");
    }
    let Some((pmu, kind)) = device(devices, &["cpu", "cpu_core"]) else {
        return match hardware {
            Ability::Unknown { why } => Ability::unknown(why.clone()),
            _ => Ability::no("no PMU, so no load sampling", remedies::counters(trial.place)),
        };
    };
    let named = |event: &str| source.text(&format!("{DEVICES}/{}/events/{event}", pmu.name));
    let Some(loads) = named("mem-loads").get().map(|t| terms(t)) else {
        return Ability::no(
            format!("the PMU '{}' names no event 'mem-loads'", pmu.name),
            remedies::load_sampling(trial.place, "PEBS"),
        );
    };
    let event = EventSpec {
        name: "mem-loads",
        kind,
        config: loads.config,
        config1: loads.latency,
        precise: 2,
        period: Some(1009),
        leader: named("mem-loads-aux").get().map(|t| terms(t).config),
        ..blank()
    };
    trial.sampling(&event, "loads are sampled with address, latency and source", "PEBS")
}

struct Terms {
    config: u64,
    latency: u64,
}

/// `event=0xcd,umask=0x1,ldlat=3`, in the layout that Intel's core PMUs have had since Nehalem.
fn terms(text: &str) -> Terms {
    let mut terms = Terms { config: 0, latency: 0 };
    for (key, value) in text.trim().split(',').filter_map(|t| t.split_once('=')) {
        let number = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => value.parse(),
        };
        let number = number.unwrap_or(0) & 0xffff;
        match key {
            "event" => terms.config |= number & 0xff,
            "umask" => terms.config |= (number & 0xff) << 8,
            "ldlat" => terms.latency = number,
            _ => {}
        }
    }
    terms
}

fn ibs(cpuid: &Cpuid, trial: &Trial<'_>, devices: &[PmuDevice]) -> Ability {
    if !cpuid.is_amd() {
        return Ability::no("not an AMD processor", "Intel has PEBS and Arm has SPE in its place");
    }
    let Some((_, kind)) = device(devices, &["ibs_op"]) else {
        return Ability::no("the kernel shows no IBS", remedies::load_sampling(trial.place, "IBS"));
    };
    let event = EventSpec { name: "ibs_op", kind, period: Some(0x10000), ..blank() };
    // Older kernels cannot leave the kernel out and say EINVAL; with the kernel it takes more
    // rights.
    let tried = match trial.prober.event(&event) {
        Err(Refusal::Errno(errno::EINVAL)) => EventSpec { exclude_kernel: false, ..event },
        _ => event,
    };
    trial.sampling(&tried, "operations are sampled with address, latency and source", "IBS")
}

fn spe(source: &Source, trial: &Trial<'_>, devices: &[PmuDevice]) -> Ability {
    let cpuinfo = source.text("proc/cpuinfo");
    if !cpuinfo.get().is_some_and(|t| t.contains("CPU implementer")) {
        return Ability::no("not an Arm processor", "Intel has PEBS and AMD has IBS in its place");
    }
    let Some((_, kind)) = device(devices, &["arm_spe_0"]) else {
        return Ability::no("the kernel shows no SPE", remedies::load_sampling(trial.place, "SPE"));
    };
    let event = EventSpec { name: "arm_spe", kind, period: Some(4096), ..blank() };
    trial.sampling(&event, "operations are sampled with address, latency and source", "SPE")
}

fn breakpoints(trial: &Trial<'_>) -> Ability {
    let event = EventSpec { name: "breakpoint", kind: TYPE_BREAKPOINT, breakpoint: true, ..blank() };
    match trial.prober.event(&event) {
        Ok(0) => Ability::no(
            "a watchpoint opens but never fires",
            "the hypervisor must pass debug registers on; run on bare metal",
        ),
        Ok(_) => Ability::yes("a data watchpoint opens and fires"),
        Err(refusal) => trial.refused(&refusal, || {
            "end debuggers that hold the debug registers, and boot a kernel with CONFIG_HAVE_HW_BREAKPOINT".into()
        }),
    }
}

fn software(trial: &Trial<'_>) -> Ability {
    let event = EventSpec { name: "task-clock", kind: TYPE_SOFTWARE, config: SOFTWARE_TASK_CLOCK, ..blank() };
    match trial.prober.event(&event) {
        Ok(0) => {
            Ability::no("the software clock opens but does not run", "report it as a bug of this kernel")
        }
        Ok(_) => Ability::yes("programs can be sampled by time"),
        Err(refusal) => trial.refused(&refusal, || "boot a kernel with CONFIG_PERF_EVENTS".into()),
    }
}
