//! Switches of the hardware prefetchers: Intel's MSR 0x1A4, AMD's MSR 0xC0000108, POWER's DSCR.

use crate::cpuid::Cpuid;
use crate::probe::{Prober, Refusal, errno, errno_name};
use crate::remedies::{self, Place, Registers};
use crate::source::Source;
use records::host::{Ability, Fact, Prefetch, PrefetchControl};

/// A register whose set bits switch prefetchers off.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    pub address: u32,
    /// Bit and what it switches off.
    pub bits: &'static [(u32, &'static str)],
}

pub const INTEL: Register = Register {
    address: 0x1a4,
    bits: &[
        (0, "L2 streamer"),
        (1, "L2 adjacent line"),
        (2, "L1 next line"),
        (3, "L1 by instruction pointer"),
    ],
};

pub const AMD: Register = Register {
    address: 0xc000_0108,
    bits: &[(0, "L1 stream"), (1, "L1 stride"), (2, "L1 region"), (3, "L2 stream"), (5, "L2 up/down")],
};

/// POWER's default for new threads: bits 0-2 are the depth.
pub const DSCR: &str = "sys/devices/system/cpu/dscr_default";

pub(crate) fn prefetch(
    source: &Source,
    cpuid: &Cpuid,
    prober: &dyn Prober,
    place: &Place<'_>,
    cpu: u32,
) -> Prefetch {
    if source.exists(DSCR) {
        return dscr(source);
    }
    if cpuid.is_intel() {
        return register(&INTEL, prober, place, cpu);
    }
    if cpuid.is_amd() {
        // Leaf 0x80000021 says whether the register is there; asking a processor without it is an
        // error.
        let present = cpuid.leaf(0x8000_0021).is_some_and(|r| r.eax >> 13 & 1 == 1);
        if present {
            return register(&AMD, prober, place, cpu);
        }
        let (why, reason) = if place.is_guest() {
            ("the hypervisor shows no prefetch control (CPUID 0x80000021)", Registers::NotPassedOn)
        } else {
            ("this processor has no prefetch control (CPUID 0x80000021)", Registers::NotImplemented)
        };
        return none(Ability::no(why, remedies::registers(place, reason)));
    }
    if source.text("proc/cpuinfo").get().is_some_and(|t| t.contains("CPU implementer")) {
        return none(Ability::no(
            "Arm leaves prefetch control to the firmware",
            "look for a prefetcher setting in the firmware; the stride experiment shows what is on",
        ));
    }
    none(Ability::unknown("no prefetch control is known for this processor"))
}

fn none(control: Ability) -> Prefetch {
    Prefetch { control, controls: Vec::new() }
}

fn register(register: &Register, prober: &dyn Prober, place: &Place<'_>, cpu: u32) -> Prefetch {
    let name = format!("MSR {:#X}", register.address).replace("0X", "0x");
    let answer = prober.msr(cpu, register.address);
    let control = match &answer {
        Ok(_) if place.is_guest() => Ability::yes(format!(
            "{name} can be read, but this is a guest: whether it does anything, only measuring shows"
        )),
        Ok(_) => Ability::yes(format!("{name} can be read")),
        Err(Refusal::NotTried(why)) => Ability::unknown(why.clone()),
        Err(Refusal::Errno(number)) => {
            let (what, reason) = match *number {
                errno::ENOENT | errno::ENXIO | errno::ENODEV => {
                    ("there is no /dev/cpu/*/msr", Registers::NoDevice)
                }
                errno::EPERM | errno::EACCES => ("reading registers is forbidden", Registers::Forbidden),
                _ if place.is_guest() => ("the hypervisor does not pass it on", Registers::NotPassedOn),
                _ => ("the processor does not have it", Registers::NotImplemented),
            };
            Ability::no(
                format!("{name}: {what} ({})", errno_name(*number)),
                remedies::registers(place, reason),
            )
        }
    };
    let controls = match answer {
        Ok(value) => register
            .bits
            .iter()
            .map(|(bit, what)| PrefetchControl {
                name: (*what).to_owned(),
                place: format!("{name} bit {bit}"),
                state: Fact::Known(if value >> bit & 1 == 0 { "on" } else { "off" }.to_owned()),
            })
            .collect(),
        Err(_) => Vec::new(),
    };
    Prefetch { control, controls }
}

/// What the depths are called.
pub const DEPTHS: [&str; 8] =
    ["the processor's default", "none", "shallowest", "shallow", "medium", "deep", "deeper", "deepest"];

fn dscr(source: &Source) -> Prefetch {
    let state = source.hex(DSCR).map(|v| format!("{} ({v:#x})", DEPTHS[(v & 7) as usize]));
    let control = match &state {
        Fact::Known(_) => Ability::yes("DSCR can be read, and every thread may set its own"),
        Fact::Unknown { unknown } => Ability::unknown(unknown.clone()),
    };
    Prefetch {
        control,
        controls: vec![PrefetchControl { name: "stream depth".into(), place: format!("/{DSCR}"), state }],
    }
}
