//! Names of microarchitectures, by the numbers that processors carry.
//!
//! To add one: a line in the table of its vendor. An unknown processor stays unknown; nothing else
//! depends on a name.

use records::host::Processor;

/// Features that tell of a processor by its vendor: which came with it, and what has them since.
/// Hypervisors show their guests numbers of other processors and leave features out, but they
/// cannot make any up.
const CAME_WITH: [(&str, &str, &str, &[&str]); 2] = [
    ("GenuineIntel", "amx_tile", "Sapphire Rapids", &["Sapphire Rapids", "Emerald Rapids", "Granite Rapids"]),
    ("AuthenticAMD", "avx512f", "Zen 4", &["Zen 4", "Zen 4c", "Zen 5", "Zen 5c"]),
];

/// What the processor's numbers say cannot be, for it has this feature; with what came with that
/// one first.
pub(crate) fn belied(p: &Processor, name: &str) -> Option<(&'static str, &'static str)> {
    let vendor = p.vendor.get()?;
    let has = |feature: &str| p.features.iter().any(|f| f == feature);
    CAME_WITH
        .iter()
        .find(|(v, feature, _, since)| v == vendor && has(feature) && !since.contains(&name))
        .map(|(_, feature, first, _)| (*feature, *first))
}

/// Intel family 6, by model.
const INTEL: [(&[u32], &str); 24] = [
    (&[0x1a, 0x1e, 0x1f, 0x2e], "Nehalem"),
    (&[0x25, 0x2c, 0x2f], "Westmere"),
    (&[0x2a, 0x2d], "Sandy Bridge"),
    (&[0x3a, 0x3e], "Ivy Bridge"),
    (&[0x3c, 0x3f, 0x45, 0x46], "Haswell"),
    (&[0x3d, 0x47, 0x4f, 0x56], "Broadwell"),
    (&[0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6], "Skylake"),
    (&[0x55], "Skylake-SP"), // Cascade and Cooper Lake by stepping, see below
    (&[0x6a, 0x6c], "Ice Lake-SP"),
    (&[0x7d, 0x7e], "Ice Lake"),
    (&[0x8c, 0x8d], "Tiger Lake"),
    (&[0xa7], "Rocket Lake"),
    (&[0x8f], "Sapphire Rapids"),
    (&[0xcf], "Emerald Rapids"),
    (&[0xad, 0xae], "Granite Rapids"),
    (&[0xaf], "Sierra Forest"),
    (&[0x97, 0x9a], "Alder Lake"),
    (&[0xb7, 0xba, 0xbf], "Raptor Lake"),
    (&[0xaa, 0xac], "Meteor Lake"),
    (&[0xbd], "Lunar Lake"),
    (&[0xc5, 0xc6], "Arrow Lake"),
    (&[0x5c, 0x5f, 0x7a], "Goldmont"),
    (&[0x86, 0x96, 0x9c], "Tremont"),
    (&[0xbe], "Gracemont"),
];

/// AMD: family, lowest and highest model.
const AMD: [(u32, u32, u32, &str); 17] = [
    (0x15, 0x00, 0x0f, "Bulldozer"),
    (0x15, 0x10, 0x2f, "Piledriver"),
    (0x15, 0x30, 0x3f, "Steamroller"),
    (0x15, 0x60, 0x7f, "Excavator"),
    (0x17, 0x00, 0x07, "Zen"),
    (0x17, 0x08, 0x0f, "Zen+"),
    (0x17, 0x10, 0x1f, "Zen"),
    (0x17, 0x30, 0xaf, "Zen 2"),
    (0x18, 0x00, 0x0f, "Zen"), // Hygon
    (0x19, 0x00, 0x0f, "Zen 3"),
    (0x19, 0x10, 0x1f, "Zen 4"),
    (0x19, 0x20, 0x5f, "Zen 3"),
    (0x19, 0x60, 0x7f, "Zen 4"),
    (0x19, 0xa0, 0xaf, "Zen 4c"),
    (0x1a, 0x00, 0x0f, "Zen 5"),
    (0x1a, 0x10, 0x1f, "Zen 5c"),
    (0x1a, 0x20, 0x7f, "Zen 5"),
];

/// Arm: implementer, part.
const ARM: [(u32, u32, &str); 20] = [
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse N1"),
    (0x41, 0xd40, "Neoverse V1"),
    (0x41, 0xd49, "Neoverse N2"),
    (0x41, 0xd4f, "Neoverse V2"),
    (0x41, 0xd83, "Neoverse V3AE"),
    (0x41, 0xd84, "Neoverse V3"),
    (0x41, 0xd8e, "Neoverse N3"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TaiShan v110"),
    (0x4e, 0x004, "Carmel"),
    (0x50, 0x000, "X-Gene"),
    (0x51, 0xc00, "Falkor"),
    (0x61, 0x022, "Icestorm (M1)"),
    (0x61, 0x023, "Firestorm (M1)"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1A"),
];

pub(crate) fn implementer(code: u32) -> &'static str {
    match code {
        0x41 => "Arm",
        0x42 => "Broadcom",
        0x43 => "Cavium",
        0x46 => "Fujitsu",
        0x48 => "HiSilicon",
        0x4e => "NVIDIA",
        0x50 => "APM",
        0x51 => "Qualcomm",
        0x61 => "Apple",
        0xc0 => "Ampere",
        _ => "an Arm implementer not in the table",
    }
}

pub(crate) fn of(p: &Processor, cpuinfo: &str) -> Option<&'static str> {
    let (family, model) = (p.family.value(), p.model.value());
    match p.vendor.get()?.as_str() {
        "GenuineIntel" if family? == 6 => {
            let name =
                INTEL.iter().find(|(models, _)| models.contains(&model.unwrap_or(0))).map(|(_, n)| *n)?;
            Some(match (name, p.stepping.value()) {
                ("Skylake-SP", Some(5..=9)) => "Cascade Lake",
                ("Skylake-SP", Some(10..)) => "Cooper Lake",
                _ => name,
            })
        }
        "AuthenticAMD" | "HygonGenuine" => {
            let (family, model) = (family?, model?);
            AMD.iter().find(|(f, lo, hi, _)| *f == family && (*lo..=*hi).contains(&model)).map(|(.., n)| *n)
        }
        "IBM" => match family? {
            0x3f | 0x4a => Some("POWER7"),
            0x4b..=0x4d => Some("POWER8"),
            0x4e => Some("POWER9"),
            0x80 => Some("POWER10"),
            0x82 => Some("POWER11"),
            _ => None,
        },
        _ => {
            let code = crate::source::field(cpuinfo, "CPU implementer")?;
            let code = u32::from_str_radix(code.trim_start_matches("0x"), 16).ok()?;
            ARM.iter().find(|(i, part, _)| *i == code && Some(*part) == model).map(|(.., n)| *n)
        }
    }
}
