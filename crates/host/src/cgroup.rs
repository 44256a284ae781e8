//! Limits of the control groups around this process, of version 1 or 2, from the group itself up to
//! the root.

use crate::source::Source;
use records::host::Fact;
use units::Bytes;

/// What the groups leave of memory.
pub(crate) struct MemoryGroups {
    pub(crate) limit: Fact<Option<Bytes>>,
    pub(crate) used: Fact<Bytes>,
}

/// A version 1 limit at or above this is "none": the kernel writes the largest page-aligned number.
const UNLIMITED: u64 = 1 << 60;

const MEMORY_LIMITS: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];
const CPU_QUOTAS: [&str; 2] = ["cpu.max", "cpu.cfs_quota_us"];

pub(crate) fn memory(source: &Source) -> MemoryGroups {
    let limits = places(source, "memory", &MEMORY_LIMITS);
    let mut tightest: Option<(u64, String)> = None;
    let mut read_one = false;
    for (path, text) in &limits {
        read_one = true;
        let Ok(limit) = text.parse::<u64>() else { continue };
        if limit < UNLIMITED && tightest.as_ref().is_none_or(|(t, _)| limit < *t) {
            tightest = Some((limit, path.clone()));
        }
    }
    let used = tightest.as_ref().map_or_else(
        || Fact::unknown("no control group limits memory"),
        |(_, path)| {
            source.value(&usage_of(path)).map(|all: u64| Bytes(all.saturating_sub(cached(source, path))))
        },
    );
    let limit = match tightest {
        Some((limit, _)) => Fact::Known(Some(Bytes(limit))),
        None if read_one || no_groups(source) => Fact::Known(None),
        // Version 2 has no file at its root: nothing found there is no limit.
        None if source.exists("sys/fs/cgroup/cgroup.controllers") => Fact::Known(None),
        None => Fact::unknown("the control groups of this process cannot be read"),
    };
    MemoryGroups { limit, used }
}

/// Thousandths of a CPU that the tightest quota allows.
pub(crate) fn cpu_quota_milli(source: &Source) -> Fact<Option<u64>> {
    let mut tightest: Option<u64> = None;
    for (path, text) in places(source, "cpu", &CPU_QUOTAS) {
        let mut words = text.split_whitespace().map(str::to_owned);
        let quota = words.next().and_then(|w| w.parse::<u64>().ok());
        let period = words
            .next()
            .or_else(|| source.text(&path.replace("quota", "period")).get().cloned())
            .and_then(|w| w.parse::<u64>().ok());
        if let (Some(quota), Some(period)) = (quota, period.filter(|p| *p > 0)) {
            let milli = quota.saturating_mul(1000) / period;
            tightest = Some(tightest.map_or(milli, |t| t.min(milli)));
        }
    }
    if tightest.is_none() && !source.exists("proc/self/cgroup") {
        return Fact::unknown("no /proc/self/cgroup");
    }
    Fact::Known(tightest)
}

/// Every file that the readers above look at and that is there.
pub(crate) fn files(source: &Source) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for (path, _) in
        places(source, "memory", &MEMORY_LIMITS).into_iter().chain(places(source, "cpu", &CPU_QUOTAS))
    {
        files.push(usage_of(&path));
        files.push(statistics_of(&path));
        files.push(path.replace("quota", "period"));
        files.push(path);
    }
    files.retain(|f| source.exists(f));
    files
}

fn usage_of(limit: &str) -> String {
    limit.replace("memory.max", "memory.current").replace("limit_in_bytes", "usage_in_bytes")
}

/// Where a memory limit's group counts what its memory is.
fn statistics_of(limit: &str) -> String {
    limit.replace("memory.max", "memory.stat").replace("memory.limit_in_bytes", "memory.stat")
}

/// What counts as used by the group but is only copies of files, which the kernel drops when the
/// group wants the memory: without this, a group that has read large files seems to have none left.
/// Half of what was read repeatedly may be missed.
fn cached(source: &Source, limit: &str) -> u64 {
    let Fact::Known(text) = source.text(&statistics_of(limit)) else { return 0 };
    let count = |name: &str| {
        let found = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        found.and_then(|number| number.trim().parse::<u64>().ok())
    };
    // Version 1 counts the groups below apart.
    let of = |total: &str, plain: &str| count(total).or_else(|| count(plain)).unwrap_or(0);
    let (old, busy) = (of("total_inactive_file", "inactive_file"), of("total_active_file", "active_file"));
    old.saturating_add(busy / 2)
}

fn no_groups(source: &Source) -> bool {
    source.text("proc/self/cgroup").get().is_some_and(|t| t.lines().all(|l| l.trim_end().ends_with(":/")))
}

/// Contents of the files of these names, in the process's group of a controller and every group
/// above it.
fn places(source: &Source, controller: &str, files: &[&str]) -> Vec<(String, String)> {
    let text = source.text("proc/self/cgroup").get().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let mounts: &[&str] = if controllers.is_empty() {
            &["sys/fs/cgroup", "sys/fs/cgroup/unified"]
        } else if controllers.split(',').any(|c| c == controller) {
            &["sys/fs/cgroup/memory", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]
        } else {
            continue;
        };
        for mount in mounts {
            for group in with_ancestors(group) {
                for file in files {
                    let path = format!("{mount}{group}/{file}");
                    if let Fact::Known(text) = source.text(&path) {
                        found.push((path, text));
                    }
                }
            }
        }
    }
    found
}

/// `/a/b` → `/a/b`, `/a`, and nothing, which is the root.
fn with_ancestors(group: &str) -> Vec<&str> {
    let group = group.trim_end_matches('/');
    // Inside a cgroup namespace the path may climb out with "..": only the root can be read then.
    if group.contains("..") || !group.starts_with('/') {
        return vec![""];
    }
    let cuts = group.char_indices().filter(|(_, c)| *c == '/').map(|(i, _)| i);
    let mut all: Vec<&str> = cuts.map(|i| &group[..i]).collect();
    all.push(group);
    all.reverse();
    all.dedup();
    all
}
