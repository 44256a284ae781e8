//! Which machine this is, in a line or two.

use records::machine::{Effort, Machine};

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
    let cpus = host.usable_cpus().len();
    let effort = match machine.run.effort {
        Effort::Quick => "quick",
        Effort::Normal => "normal",
        Effort::Thorough => "thorough",
    };
    format!(
        "{}\nmeasured on CPU {} of {cpus} in {:.1} s ({effort}, seed {})\n",
        parts.join(", "),
        machine.run.cpu,
        machine.run.seconds,
        machine.run.seed
    )
}
