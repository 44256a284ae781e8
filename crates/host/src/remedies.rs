//! What would turn a "no" into a "yes": one sentence that a user can act on, for the hypervisor,
//! cloud and permissions at hand.
//!
//! To add a hypervisor or cloud: an arm in each function where it differs. Say only what its
//! documentation says.

use crate::virtualization::name;
use records::host::{Host, Limits, Virtualization};

/// Where this process runs, as far as remedies differ by it.
pub(crate) struct Place<'a> {
    pub(crate) hypervisor: Option<&'a str>,
    pub(crate) cloud: Option<&'a str>,
    pub(crate) container: Option<&'a str>,
}

impl<'a> Place<'a> {
    pub(crate) fn of(v: &'a Virtualization) -> Self {
        Self {
            hypervisor: v.hypervisor.get().map(String::as_str),
            cloud: v.cloud.as_deref(),
            container: v.container.as_deref(),
        }
    }

    pub(crate) fn is_guest(&self) -> bool {
        self.hypervisor.is_some_and(|h| h != name::NONE)
    }
}

/// Hardware counters are not there.
pub(crate) fn counters(place: &Place<'_>) -> String {
    match (place.cloud, place.hypervisor) {
        (Some("AWS"), Some(h)) if h != name::NONE => {
            "take a .metal size; of the virtual sizes, only those that fill a whole socket show basic counters".into()
        }
        (Some("Google Cloud"), _) => {
            "stop the VM and set performanceMonitoringUnit (gcloud: `--performance-monitoring-unit=standard`); only some \
             machine series such as C4 and C4A have it"
                .into()
        }
        (Some("Azure"), _) => {
            "Azure has no switch for it and shows counters on few sizes; use a bare-metal host or another provider".into()
        }
        (Some("Alibaba Cloud"), Some(h)) if h != name::NONE => "take an ECS bare-metal (ebm) instance".into(),
        (Some("Oracle Cloud"), Some(h)) if h != name::NONE => "take a BM (bare-metal) shape".into(),
        (_, Some(name::FIRECRACKER)) => {
            "Firecracker gives its guests no counters at any setting: run on bare metal, or under QEMU with \
             `-cpu host,pmu=on`"
                .into()
        }
        (_, Some(name::QEMU | name::KVM)) => {
            "start the guest with `-cpu host,pmu=on` (libvirt: `<cpu mode='host-passthrough'/>` and `<pmu state='on'/>`), on \
             a host whose kvm module has `enable_pmu=Y`"
                .into()
        }
        (_, Some(name::CLOUD_HYPERVISOR)) => "run on bare metal, or under QEMU with `-cpu host,pmu=on`".into(),
        (_, Some(name::TCG)) => "software emulation has no counters: run QEMU with -accel kvm `-cpu host,pmu=on`".into(),
        (_, Some(name::VMWARE)) => {
            "power the VM off and tick 'Virtualize CPU performance counters' (`vpmc.enable = \"TRUE\"`)".into()
        }
        (_, Some(name::HYPER_V)) => {
            "on the Hyper-V host, with the VM off: `Set-VMProcessor NAME -Perfmon @(\"pmu\",\"lbr\",\"pebs\")`".into()
        }
        (_, Some(name::WSL)) => "run on Linux itself, or under a hypervisor that passes counters on".into(),
        (_, Some(name::XEN)) => "boot the Xen host with `vpmu=1`".into(),
        (_, Some(name::VIRTUALBOX)) => "VirtualBox gives its guests no counters: use KVM or VMware".into(),
        (_, Some(name::NONE)) => {
            "look in the kernel log for 'Performance Events' (a missing driver for this processor, or counters taken by \
             the firmware)"
                .into()
        }
        _ => "ask the operator of the hypervisor to pass the performance counters on, or run on bare metal".into(),
    }
}

/// Counters are there, their sampling of single loads is not.
pub(crate) fn load_sampling(place: &Place<'_>, what: &str) -> String {
    if place.is_guest() {
        match (what, place.hypervisor) {
            ("PEBS", Some(name::QEMU | name::KVM)) if place.cloud.is_none() => {
                "PEBS reaches guests on Ice Lake servers and later, with Linux 6.0 on the host and `-cpu host,pmu=on`".into()
            }
            _ => format!("this hypervisor does not pass {what} to guests: run on bare metal"),
        }
    } else {
        match what {
            "SPE" => {
                "boot with `kpti=off` and a kernel with CONFIG_ARM_SPE_PMU, on firmware that leaves SPE to the kernel".into()
            }
            "IBS" => "enable IBS in the firmware's settings and boot a kernel with CONFIG_PERF_EVENTS_AMD_IBS".into(),
            _ => "look in the kernel log for 'PEBS' (microcode and kernel decide)".into(),
        }
    }
}

/// The kernel forbids it to this process.
pub(crate) fn permission(place: &Place<'_>, paranoid: Option<i32>, limits: &Limits) -> String {
    let filtered = limits.seccomp.get().is_some_and(|s| s != "none");
    match place.container {
        Some("Kubernetes") => {
            "give the container capability PERFMON and a seccomp profile that lets perf_event_open through"
                .into()
        }
        Some(kind @ ("Docker" | "Podman")) => {
            let program = kind.to_ascii_lowercase();
            format!("start it with `{program} run --cap-add PERFMON --security-opt seccomp=unconfined`")
        }
        Some(_) => "allow perf_event_open in the container's seccomp profile and give it CAP_PERFMON".into(),
        None if paranoid.is_some_and(|p| p > 2) => {
            "`sysctl kernel.perf_event_paranoid=2`, or run as root".into()
        }
        None if filtered => "run outside the sandbox whose seccomp filter forbids perf_event_open".into(),
        None => "`sysctl kernel.perf_event_paranoid=-1`, run as root, or give the binary CAP_PERFMON".into(),
    }
}

/// Model-specific registers cannot be reached.
pub(crate) fn registers(place: &Place<'_>, reason: Registers) -> String {
    match reason {
        Registers::NoDevice => "`modprobe msr` (or a kernel with CONFIG_X86_MSR=y)".into(),
        Registers::Forbidden => match place.container {
            Some(_) => "run outside the container, as root".into(),
            None => "run as root; with Secure Boot, kernel lockdown forbids it all the same".into(),
        },
        Registers::NotPassedOn => {
            "hypervisors do not pass on prefetch registers: run on bare metal; here the stride experiment shows \
             what the prefetchers do"
                .into()
        }
        Registers::NotImplemented => {
            "look for a prefetcher setting in the firmware".into()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registers {
    NoDevice,
    Forbidden,
    NotPassedOn,
    NotImplemented,
}

/// Gleaner's own code is for one architecture.
pub(crate) fn architecture(host: &Host) -> String {
    let here = host.identity.architecture.get().map_or("this architecture", String::as_str);
    format!("run on an x86-64 machine: no kernels are written for {here} yet")
}
