//! Doctor's lines about what this process may do, and about other work on the machine.

use super::page::{Mark, Page};
use records::host::{Fact, Host};

pub(super) fn rights(page: &mut Page, host: &Host) {
    page.section("Rights");
    let l = &host.limits;
    let user = l.uid.value().map(|uid| if uid == 0 { "root".to_owned() } else { format!("user {uid}") });
    let capabilities =
        l.capabilities.get().filter(|c| !c.is_empty()).map(|c| format!("with {}", c.join(", ")));
    match user {
        Some(user) => {
            let what = capabilities.unwrap_or_else(|| "without capabilities that Gleaner uses".into());
            page.line(Mark::Plain, "runs as", &format!("{user} {what}"));
        }
        None => page.fact(Mark::Plain, "runs as", &l.uid),
    }
    match &l.ptrace_scope {
        Fact::Known(None | Some(0)) => page.line(Mark::Yes, "ptrace", "not restricted by Yama"),
        Fact::Known(Some(1)) => page.line(Mark::Yes, "ptrace", "own children only (Yama 1), which is enough"),
        Fact::Known(Some(n)) => page.no(
            "ptrace",
            &format!("restricted by Yama ({n})"),
            if *n == 3 {
                "reboot: value 3 cannot be lowered"
            } else {
                "`sysctl kernel.yama.ptrace_scope=1`, or root"
            },
        ),
        Fact::Unknown { unknown } => page.line(Mark::Unknown, "ptrace", unknown),
    }
    match l.seccomp.get().map(String::as_str) {
        Some("none") => page.line(Mark::Yes, "seccomp", "no filter"),
        Some(mode) => {
            page.line(Mark::Plain, "seccomp", &format!("{mode}: a sandbox filters system calls"));
        }
        None => page.fact(Mark::Plain, "seccomp", &l.seccomp),
    }
    if let Some(lockdown) = l.lockdown.get().filter(|l| *l != "none") {
        page.line(
            Mark::Plain,
            "lockdown",
            &format!("{lockdown}: model-specific registers cannot be written"),
        );
    }
    match &l.memlock {
        Fact::Known(None) => page.line(Mark::Yes, "locked memory", "no limit"),
        Fact::Known(Some(limit)) => page.line(Mark::Plain, "locked memory", &format!("up to {limit}")),
        Fact::Unknown { unknown } => page.line(Mark::Unknown, "locked memory", unknown),
    }
    if let Some(Some(milli)) = l.cpu_quota_milli.get() {
        page.no(
            "CPU time",
            &format!(
                "the control group allows {:.2} CPUs and throttles this process when it has used them up",
                *milli as f64 / 1000.0
            ),
            "a larger cpu.max (`docker run --cpus`, Kubernetes limits.cpu) while measuring",
        );
    }
}

pub(super) fn company(page: &mut Page, host: &Host) {
    page.section("Other work on this machine");
    let c = &host.company;
    let since = c.uptime_seconds.value().map(|s| format!(" in {}", duration(s))).unwrap_or_default();
    match (c.steal_seen.value(), c.steal_ppm.value()) {
        (Some(true), Some(ppm)) => page.line(
            if ppm > 1000 { Mark::Odd } else { Mark::Plain },
            "steal",
            &format!("{:.2}% of CPU time went to other guests of this host{since}", ppm as f64 / 1e4),
        ),
        (Some(false), _) if host.virtualization.is_guest() => {
            page.line(Mark::Plain, "steal", &format!("none{since}, or the hypervisor does not report it"));
        }
        (Some(false), _) => page.line(Mark::Yes, "steal", "none: no other guest takes CPU time"),
        _ => page.fact(Mark::Plain, "steal", &c.steal_ppm),
    }
    let load = c.load_milli.value().map(|l| l.map(|m| format!("{:.2}", m as f64 / 1000.0)).join(" "));
    match (load, c.runnable.value()) {
        (Some(load), Some(runnable)) => {
            let others = runnable.saturating_sub(1);
            let text = match others {
                0 => format!("load {load}; no other thread is runnable now"),
                1 => format!("load {load}; one other thread is runnable now"),
                n => format!("load {load}; {n} other threads are runnable now"),
            };
            let cpus = host.topology.threads.value().map_or(1, u64::from);
            page.line(if runnable > cpus { Mark::Odd } else { Mark::Plain }, "load", &text);
        }
        _ => page.fact(Mark::Plain, "load", &c.runnable),
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
