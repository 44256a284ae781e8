//! Which machine this is: maker, firmware, kernel, distribution.

use crate::source::Source;
use records::host::{Fact, Identity};

const DMI: &str = "sys/class/dmi/id";

pub(crate) fn identity(source: &Source) -> Identity {
    Identity {
        architecture: architecture(source),
        product: product(source),
        firmware: joined(source, &["bios_vendor", "bios_version", "bios_date"]),
        kernel: kernel(source),
        distribution: distribution(source),
    }
}

/// One DMI string; fillers that makers leave in count as missing.
pub(crate) fn dmi(source: &Source, name: &str) -> Option<String> {
    let text = source.text(&format!("{DMI}/{name}")).get()?.clone();
    let filler =
        ["", "none", "default string", "to be filled by o.e.m.", "not specified", "system product name"];
    (!filler.contains(&text.to_ascii_lowercase().as_str())).then_some(text)
}

fn joined(source: &Source, names: &[&str]) -> Fact<String> {
    let parts: Vec<String> = names.iter().filter_map(|n| dmi(source, n)).collect();
    if parts.is_empty() { Fact::unknown(format!("no /{DMI}")) } else { Fact::Known(parts.join(" ")) }
}

fn product(source: &Source) -> Fact<String> {
    joined(source, &["sys_vendor", "product_name"]).or_else(|| {
        // Boards without DMI (Arm, POWER) have a device tree; its strings end with a zero byte.
        source.text("proc/device-tree/model").map(|t| t.trim_end_matches('\0').to_owned())
    })
}

fn kernel(source: &Source) -> Fact<String> {
    source.text("proc/sys/kernel/osrelease").or_else(|| match source.text("proc/version") {
        Fact::Known(text) => text
            .split_whitespace()
            .nth(2)
            .map_or_else(|| Fact::unknown("/proc/version names no release"), |w| Fact::Known(w.to_owned())),
        unknown @ Fact::Unknown { .. } => unknown,
    })
}

fn distribution(source: &Source) -> Fact<String> {
    let text = source.text("etc/os-release").or_else(|| source.text("usr/lib/os-release"));
    match text {
        Fact::Known(text) => text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME=")).map_or_else(
            || Fact::unknown("/etc/os-release has no PRETTY_NAME"),
            |n| Fact::Known(n.trim_matches('"').to_owned()),
        ),
        unknown @ Fact::Unknown { .. } => unknown,
    }
}

/// The live machine's is known from the build; a recorded one's shows in the shape of its
/// `/proc/cpuinfo`.
fn architecture(source: &Source) -> Fact<String> {
    if source.is_live() {
        return Fact::Known(std::env::consts::ARCH.to_owned());
    }
    let recorded = source.text("proc/sys/kernel/arch"); // since Linux 6.1
    recorded.or_else(|| match source.text("proc/cpuinfo") {
        Fact::Known(text) => {
            let marks = [("vendor_id", "x86_64"), ("CPU implementer", "aarch64"), ("timebase", "powerpc64")];
            let has =
                |key: &str| text.lines().filter_map(|l| l.split_once(':')).any(|(k, _)| k.trim() == key);
            marks.iter().find(|(key, _)| has(key)).map_or_else(
                || Fact::unknown("/proc/cpuinfo has an unknown shape"),
                |(_, a)| Fact::Known((*a).to_owned()),
            )
        }
        unknown @ Fact::Unknown { .. } => unknown,
    })
}
