//! Which machine this is, in a line or two.

use crate::plain::escaped;
use records::machine::{Effort, Machine, Memory};
use units::Bytes;

pub(super) fn lines(machine: &Machine) -> String {
    let host = &machine.host;
    let mut parts: Vec<String> = Vec::new();
    let known = |fact: &records::host::Fact<String>| fact.get().cloned();
    parts.extend(known(&host.processor.name).or_else(|| known(&host.processor.vendor)));
    parts.extend(known(&host.processor.microarchitecture));
    if let Some(hypervisor) = known(&host.virtualization.hypervisor) {
        parts.push(if hypervisor == "none" {
            "bare metal".to_owned()
        } else {
            format!("guest of {hypervisor}")
        });
    }
    parts.extend(host.virtualization.container.as_ref().map(|c| format!("in {c}")));
    let of = match host.usable_cpus().len() {
        0 => String::new(), // the host does not say
        cpus => format!(" of {cpus}"),
    };
    let effort = match machine.run.effort {
        Effort::Quick => "quick",
        Effort::Normal => "normal",
        Effort::Thorough => "thorough",
    };
    format!(
        "{}\nmeasured on CPU {}{of} in {:.1} s{} ({effort}, seed {})\n",
        escaped(&parts.join(", ")),
        machine.run.cpu,
        machine.run.seconds,
        memory(&machine.run.memory),
        machine.run.seed
    )
}

/// What it took of it; older records do not tell.
fn memory(memory: &Memory) -> String {
    if memory.peak == Bytes(0) {
        return String::new();
    }
    let area = match memory.largest_in.as_str() {
        "" => String::new(),
        experiment => format!(", {} of it the largest area, that of {experiment}", memory.largest_area),
    };
    format!(" and at most {}{area}", memory.peak)
}
