//! What this process may do: limits, privileges, sandboxes.

use crate::source::{Source, field, field_fact, garbled, parsed};
use records::host::{Fact, Limits};
use units::Bytes;

const STATUS: &str = "proc/self/status";

/// Capabilities that open something Gleaner wants, by bit number in `<linux/capability.h>`.
const CAPABILITIES: [(u32, &str); 6] = [
    (14, "ipc_lock"),
    (17, "sys_rawio"),
    (19, "sys_ptrace"),
    (21, "sys_admin"),
    (23, "sys_nice"),
    (38, "perfmon"),
];

pub(crate) fn limits(source: &Source) -> Limits {
    let status = source.text(STATUS);
    let line = |key| field_fact(&status, key, STATUS);
    Limits {
        memlock: rlimit(source, "Max locked memory").map(|l| l.map(Bytes)),
        address_space: rlimit(source, "Max address space").map(|l| l.map(Bytes)),
        open_files: rlimit(source, "Max open files"),
        cpu_quota_milli: crate::cgroup::cpu_quota_milli(source),
        ptrace_scope: ptrace_scope(source),
        seccomp: seccomp(line("Seccomp")),
        no_new_privileges: line("NoNewPrivs").map(|v| v == "1"),
        uid: uid(&status),
        capabilities: capabilities(line("CapEff")),
        lockdown: source.chosen("sys/kernel/security/lockdown"),
    }
}

/// A line of `/proc/self/limits`: name, soft limit, hard limit, unit, in columns of spaces.
fn rlimit(source: &Source, name: &str) -> Fact<Option<u64>> {
    const PATH: &str = "proc/self/limits";
    let text = match source.text(PATH) {
        Fact::Known(text) => text,
        Fact::Unknown { unknown } => return Fact::Unknown { unknown },
    };
    let soft =
        text.lines().find_map(|l| l.strip_prefix(name)).and_then(|rest| rest.split_whitespace().next());
    match soft {
        Some("unlimited") => Fact::Known(None),
        Some(number) => number.parse().map_or_else(|_| garbled(PATH, number), |n| Fact::Known(Some(n))),
        None => Fact::unknown(format!("/{PATH} has no line '{name}'")),
    }
}

fn ptrace_scope(source: &Source) -> Fact<Option<u32>> {
    const PATH: &str = "proc/sys/kernel/yama/ptrace_scope";
    if source.exists(PATH) {
        source.value(PATH).map(Some)
    } else if source.exists("proc/sys/kernel") {
        Fact::Known(None)
    } else {
        Fact::unknown("no /proc/sys/kernel")
    }
}

fn seccomp(mode: Fact<String>) -> Fact<String> {
    match mode {
        Fact::Known(m) => match m.as_str() {
            "0" => Fact::Known("none".into()),
            "1" => Fact::Known("strict".into()),
            "2" => Fact::Known("filter".into()),
            _ => garbled(STATUS, &m),
        },
        unknown @ Fact::Unknown { .. } => unknown,
    }
}

/// The second number of `Uid:` is the effective one.
fn uid(status: &Fact<String>) -> Fact<u32> {
    let text = match status {
        Fact::Known(text) => text,
        Fact::Unknown { unknown } => return Fact::unknown(unknown.clone()),
    };
    match field(text, "Uid").and_then(|l| l.split_whitespace().nth(1)) {
        Some(effective) => parsed(Fact::Known(effective.to_owned()), STATUS),
        None => Fact::unknown(format!("/{STATUS} has no line 'Uid'")),
    }
}

fn capabilities(effective: Fact<String>) -> Fact<Vec<String>> {
    match effective {
        Fact::Known(text) => u64::from_str_radix(&text, 16).map_or_else(
            |_| garbled(STATUS, &text),
            |bits| {
                let has = CAPABILITIES.iter().filter(|(bit, _)| bits >> bit & 1 == 1);
                Fact::Known(has.map(|(_, name)| (*name).to_owned()).collect())
            },
        ),
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    }
}
