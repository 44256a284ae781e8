//! Clocks as claimed: the counter that times everything, and how the core's own frequency is run.

use crate::cpuid::Cpuid;
use crate::source::{Source, field};
use records::host::{Ability, Clocks, Cpu, CpuFreq, Fact};
use std::collections::BTreeSet;

const CPU: &str = "sys/devices/system/cpu";
const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0";

pub(crate) fn clocks(source: &Source, cpuid: &Cpuid, cpus: &[Cpu]) -> Clocks {
    let cpuinfo = source.text("proc/cpuinfo").get().cloned().unwrap_or_default();
    let (counter_hz, counter_source) = counter_rate(cpuid, &cpuinfo);
    let leaf_16 = |pick: fn(crate::cpuid::Registers) -> u32| {
        let mhz = cpuid.leaf(0x16).map_or(0, |r| pick(r) & 0xffff);
        if mhz == 0 {
            Fact::unknown("CPUID leaf 0x16 is absent")
        } else {
            Fact::Known(u64::from(mhz) * 1_000_000)
        }
    };
    Clocks {
        counter_invariant: invariant(cpuid, &cpuinfo),
        counter_hz,
        counter_source,
        clocksource: source.text(&format!("{CLOCKSOURCE}/current_clocksource")),
        clocksources: source
            .text(&format!("{CLOCKSOURCE}/available_clocksource"))
            .map(|t| t.split_whitespace().map(str::to_owned).collect()),
        frequency: CpuFreq {
            driver: source.text(&format!("{CPU}/cpu0/cpufreq/scaling_driver")),
            governors: governors(source, cpus),
            turbo: turbo(source),
        },
        base_hz: source
            .value::<u64>(&format!("{CPU}/cpu0/cpufreq/base_frequency"))
            .map(|khz| khz.saturating_mul(1000))
            .or_else(|| leaf_16(|r| r.eax))
            .or_else(|| power_clock(&cpuinfo)),
        max_hz: cpus
            .iter()
            .filter_map(|c| c.max_hz.value())
            .max()
            .map_or_else(|| Fact::unknown("no CPU has a cpufreq directory"), Fact::Known)
            .or_else(|| leaf_16(|r| r.ebx)),
    }
}

fn invariant(cpuid: &Cpuid, cpuinfo: &str) -> Ability {
    if !cpuid.is_empty() || field(cpuinfo, "flags").is_some() {
        let flags: BTreeSet<&str> = field(cpuinfo, "flags").unwrap_or_default().split_whitespace().collect();
        let by_cpuid = cpuid.leaf(0x8000_0007).is_some_and(|r| r.edx >> 8 & 1 == 1);
        return if by_cpuid {
            Ability::yes("invariant time stamp counter (CPUID 0x80000007)")
        } else if flags.contains("constant_tsc") && flags.contains("nonstop_tsc") {
            Ability::yes("constant, non-stop time stamp counter (/proc/cpuinfo)")
        } else {
            Ability::no(
                "the time stamp counter is not said to be invariant",
                "in a guest, pass it on (QEMU: `-cpu host,migratable=no,+invtsc`); on older silicon fix the frequency",
            )
        };
    }
    if cpuinfo.contains("CPU implementer") {
        return Ability::yes("the generic timer ticks at a constant rate by definition");
    }
    if field(cpuinfo, "timebase").is_some() {
        return Ability::yes("the timebase ticks at a constant rate by definition");
    }
    Ability::unknown("neither CPUID nor /proc/cpuinfo can be read")
}

/// The best claim there is about the counter's rate. The lab measures it.
fn counter_rate(cpuid: &Cpuid, cpuinfo: &str) -> (Fact<u64>, Fact<String>) {
    let known = |hz: u64, from: &str| (Fact::Known(hz), Fact::Known(from.to_owned()));
    // A hypervisor that tells the rate knows best. The leaf is in kHz.
    if let Some(r) = cpuid.leaf(0x4000_0010).filter(|r| r.eax > 0) {
        return known(u64::from(r.eax) * 1000, "CPUID leaf 0x40000010, the hypervisor's");
    }
    if let Some(r) = cpuid.leaf(0x15).filter(|r| r.eax > 0 && r.ebx > 0 && r.ecx > 0) {
        return known(u64::from(r.ecx) * u64::from(r.ebx) / u64::from(r.eax), "CPUID leaf 0x15");
    }
    if let Some(hz) = field(cpuinfo, "timebase").and_then(|t| t.parse().ok()) {
        return known(hz, "/proc/cpuinfo");
    }
    // The kernel's own calibration: bogomips is twice the counter's rate where loops are timed by
    // it.
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    let by_counter =
        cpuinfo.contains("CPU implementer") || flags.split_whitespace().any(|f| f == "constant_tsc");
    let bogomips = field(cpuinfo, "bogomips")
        .or_else(|| field(cpuinfo, "BogoMIPS"))
        .and_then(|b| b.parse::<f64>().ok())
        .filter(|b| (1.0..1e6).contains(b));
    if let (true, Some(bogomips)) = (by_counter, bogomips) {
        return known((bogomips / 2.0 * 1e6).round() as u64, "the kernel's calibration (BogoMIPS / 2)");
    }
    let why = "no source reports it";
    (Fact::unknown(why), Fact::unknown(why))
}

/// POWER has it in `/proc/cpuinfo`: `clock : 3800.000000MHz`.
fn power_clock(cpuinfo: &str) -> Fact<u64> {
    let mhz = field(cpuinfo, "clock").and_then(|c| c.strip_suffix("MHz")?.parse::<f64>().ok());
    mhz.filter(|m| (1.0..1e6).contains(m))
        .map_or_else(|| Fact::unknown("no source reports it"), |m| Fact::Known((m * 1e6).round() as u64))
}

fn governors(source: &Source, cpus: &[Cpu]) -> Fact<Vec<String>> {
    let found: BTreeSet<String> = cpus
        .iter()
        .filter_map(|c| source.text(&format!("{CPU}/cpu{}/cpufreq/scaling_governor", c.id)).get().cloned())
        .collect();
    if found.is_empty() {
        Fact::unknown("no CPU has a cpufreq directory")
    } else {
        Fact::Known(found.into_iter().collect())
    }
}

fn turbo(source: &Source) -> Fact<bool> {
    source
        .value::<u32>(&format!("{CPU}/intel_pstate/no_turbo"))
        .map(|off| off == 0)
        .or_else(|| source.value::<u32>(&format!("{CPU}/cpufreq/boost")).map(|on| on != 0))
}
