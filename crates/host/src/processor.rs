//! The processor: vendor, name, family, microarchitecture, and the features that matter here.

use crate::cpuid::Cpuid;
use crate::microarchitecture;
use crate::source::{Source, field, field_fact, parsed};
use records::host::{Ability, Fact, Processor};

const CPUINFO: &str = "proc/cpuinfo";

/// Flags that change what Gleaner can do or how it measures. To add one: a word as `/proc/cpuinfo`
/// spells it.
const FEATURES: [&str; 40] = [
    // x86: clocks and counters
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "rdtscp",
    "rdpid",
    "arch_perfmon",
    "pebs",
    "dtes64",
    "ibs",
    "perfmon_v2",
    "amd_lbr_v2",
    "hypervisor",
    // x86: what kernels and twins may use or must save
    "fsgsbase",
    "clflush",
    "clflushopt",
    "clwb",
    "cldemote",
    "prefetchw",
    "avx",
    "avx2",
    "avx512f",
    "amx_tile",
    "xsave",
    "xsavec",
    "xsaves",
    "pku",
    "serialize",
    "waitpkg",
    "ibt",
    "user_shstk",
    "la57",
    "pdpe1gb",
    // Arm
    "atomics",
    "dcpop",
    "sve",
    "sve2",
    "paca",
    "bti",
    "mte",
    "cpuid",
];

pub(crate) fn processor(source: &Source, cpuid: &Cpuid) -> Processor {
    let text = source.text(CPUINFO);
    let line = |key| field_fact(&text, key, CPUINFO);
    let number = |key| parsed::<u32>(line(key), CPUINFO);
    let signature = cpuid.signature();
    let from_cpuid = |n: Option<u32>| n.map_or_else(|| Fact::unknown("no CPUID"), Fact::Known);
    let hex = |key| hexadecimal(line(key));
    let mut p = Processor {
        vendor: line("vendor_id").or_else(|| cpuid.vendor().map_or_else(|| arm_vendor(&text), Fact::Known)),
        name: line("model name"),
        family: number("cpu family").or_else(|| from_cpuid(signature.map(|s| s.0))),
        model: number("model").or_else(|| from_cpuid(signature.map(|s| s.1))),
        stepping: number("stepping").or_else(|| from_cpuid(signature.map(|s| s.2))),
        microcode: line("microcode"),
        microarchitecture: Fact::unknown("not in the table of microarchitectures"),
        features: features(text.get().map_or("", String::as_str)),
        fsgsbase: fsgsbase(source, text.get().map_or("", String::as_str)),
    };
    if let Some(text) = text.get() {
        if text.contains("CPU implementer") {
            p.model = hex("CPU part");
            p.stepping = number("CPU revision");
            p.family = Fact::unknown("Arm processors have an implementer and a part instead");
            p.microcode = Fact::unknown("Arm processors show none");
        } else if field(text, "timebase").is_some() {
            power(text, &mut p);
        }
    }
    p.name = p.name.or_else(|| cpuid.brand().map_or_else(|| Fact::unknown("no name anywhere"), Fact::Known));
    if let Some(known) = microarchitecture::of(&p, text.get().map_or("", String::as_str)) {
        if p.name.get().is_none() {
            p.name = Fact::Known(known.to_owned());
        }
        p.microarchitecture = Fact::Known(match microarchitecture::belied(&p, known) {
            Some((_, first)) => format!("{first} or later"),
            None => known.to_owned(),
        });
    }
    p
}

fn hexadecimal(text: Fact<String>) -> Fact<u32> {
    match text {
        Fact::Known(t) => u32::from_str_radix(t.trim_start_matches("0x"), 16)
            .map_or_else(|_| crate::source::garbled(CPUINFO, &t), Fact::Known),
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    }
}

fn arm_vendor(cpuinfo: &Fact<String>) -> Fact<String> {
    match hexadecimal(field_fact(cpuinfo, "CPU implementer", CPUINFO)) {
        Fact::Known(code) => Fact::Known(microarchitecture::implementer(code).to_owned()),
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    }
}

/// `cpu : POWER9, altivec supported`, `revision : 2.2 (pvr 004e 1202)`.
fn power(text: &str, p: &mut Processor) {
    p.vendor = Fact::Known("IBM".into());
    if let Some(cpu) = field(text, "cpu") {
        p.name = Fact::Known(cpu.split([',', ' ']).next().unwrap_or(cpu).to_owned());
    }
    let pvr: Option<Vec<u32>> =
        field(text, "revision").and_then(|r| r.split_once("(pvr ")).and_then(|(_, r)| {
            r.trim_end_matches(')').split_whitespace().map(|w| u32::from_str_radix(w, 16).ok()).collect()
        });
    if let Some([version, revision]) = pvr.as_deref() {
        p.family = Fact::Known(*version);
        p.model = Fact::unknown("POWER processors have a version and a revision only");
        p.stepping = Fact::Known(*revision);
    }
    p.microcode = Fact::unknown("POWER processors show none");
}

fn features(cpuinfo: &str) -> Vec<String> {
    let flags = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features")).unwrap_or_default();
    let has: std::collections::BTreeSet<&str> = flags.split_whitespace().collect();
    FEATURES.iter().filter(|f| has.contains(*f)).map(|f| (*f).to_owned()).collect()
}

/// The processor's flag alone is not enough: the kernel must have switched the instructions on.
fn fsgsbase(source: &Source, cpuinfo: &str) -> Ability {
    const AT_HWCAP2: u64 = 26;
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    if field(cpuinfo, "flags").is_none() {
        return if cpuinfo.is_empty() {
            Ability::unknown("/proc/cpuinfo cannot be read")
        } else {
            Ability::yes("not needed: user programs set the thread pointer themselves on this architecture")
        };
    }
    let flag = features(cpuinfo).iter().any(|f| f == "fsgsbase");
    match crate::auxv::bits(source, AT_HWCAP2) {
        Fact::Known(bits) if bits & HWCAP2_FSGSBASE != 0 => {
            Ability::yes("user programs may set FS and GS bases (AT_HWCAP2)")
        }
        Fact::Known(_) if flag => Ability::no(
            "the processor has FSGSBASE but the kernel keeps it off (AT_HWCAP2)",
            "boot Linux 5.9 or later, without `nofsgsbase` on its command line",
        ),
        Fact::Known(_) => Ability::no(
            "neither processor nor kernel offer FSGSBASE",
            "it needs Ivy Bridge, Excavator or later; in a guest, a CPU model that passes it on (`-cpu host`)",
        ),
        Fact::Unknown { unknown } => Ability::unknown(unknown),
    }
}
