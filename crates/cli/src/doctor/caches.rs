//! Doctor's lines about caches and translation buffers: alike ones together.

use super::page::{Mark, Page};
use records::host::{Cache, CacheKind, CpuList, Host};
use std::collections::BTreeMap;

pub(super) fn render(page: &mut Page, host: &Host) {
    page.section("Caches, as claimed");
    if host.caches.is_empty() {
        page.line(Mark::Unknown, "sysfs", "the kernel lists no caches");
        for cache in host.data_cache_sizes_of(host.cpus.first().map_or(0, |c| c.id)) {
            let size = cache.size.map_or_else(|| "size unknown".to_owned(), |s| s.to_string());
            let line = cache.line.map_or_else(String::new, |l| format!(", {}-byte lines", l.0));
            let said = format!("{size}{line}, by CPUID; which CPUs share it is not known");
            page.line(Mark::Plain, &format!("L{}", cache.level), &said);
        }
    }
    let groups = groups(host);
    for group in &groups {
        let alone = groups.iter().filter(|g| (g.level, g.kind) == (group.level, group.kind)).count() == 1;
        page.line(Mark::Plain, &label(group), &describe(host, group, alone));
    }
    let tlbs = tlbs(host);
    if !tlbs.is_empty() {
        page.line(Mark::Plain, "TLB, data", &tlbs);
    }
}

/// Caches that differ in nothing but the CPUs they serve.
struct Group<'a> {
    level: u32,
    kind: CacheKind,
    example: &'a Cache,
    count: usize,
    cpus: CpuList,
}

fn groups(host: &Host) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cache in &host.caches {
        let alike = |g: &&mut Group<'_>| {
            let e = g.example;
            (e.level, e.kind, &e.size, &e.line, &e.ways, e.shared_by.len())
                == (cache.level, cache.kind, &cache.size, &cache.line, &cache.ways, cache.shared_by.len())
        };
        match groups.iter_mut().find(alike) {
            Some(group) => {
                group.count += 1;
                group.cpus = group.cpus.iter().chain(cache.shared_by.iter()).collect();
            }
            None => groups.push(Group {
                level: cache.level,
                kind: cache.kind,
                example: cache,
                count: 1,
                cpus: cache.shared_by.clone(),
            }),
        }
    }
    groups
}

fn label(group: &Group<'_>) -> String {
    let kind = match group.kind {
        CacheKind::Data => " data",
        CacheKind::Instruction => " instruction",
        CacheKind::Unified => "",
    };
    format!("L{}{kind}", group.level)
}

fn describe(host: &Host, group: &Group<'_>, alone: bool) -> String {
    let cache = group.example;
    let mut parts = vec![cache.size.get().map_or_else(|| "size unknown".to_owned(), ToString::to_string)];
    // A fully associative cache shows 0 ways on some kernels, and some firmware shows none at all.
    parts.extend(cache.ways.value().filter(|w| *w > 0).map(|w| format!("{w} ways")));
    parts.extend(cache.line.get().map(|l| format!("{}-byte lines", l.0)));
    let whose = if alone { String::new() } else { format!(" (CPUs {})", group.cpus) };
    format!("{}; {}{whose}", parts.join(", "), sharing(host, group))
}

fn sharing(host: &Host, group: &Group<'_>) -> String {
    let shared = &group.example.shared_by;
    let number = group.count;
    let siblings = shared.first().and_then(|c| host.cpu(c)).and_then(|c| c.siblings.get());
    if siblings == Some(shared) {
        return if number == 1 { "for the only core".into() } else { format!("{number}, one per core") };
    }
    let all = host.topology.online.get() == Some(shared);
    match (all, shared.len(), number) {
        (true, 1, _) => "for the only CPU".into(),
        (true, n, _) if host.virtualization.is_guest() => {
            format!("one, shared by the {n} CPUs shown and perhaps by other guests")
        }
        (true, n, _) => format!("one, shared by all {n} CPUs"),
        (false, 1, _) => format!("{number}, one per CPU"),
        (false, n, 1) => format!("one, shared by {n} CPUs"),
        (false, n, _) => format!("{number}, each shared by {n} CPUs"),
    }
}

/// `L1 72 (4K), 72 (2M); L2 3072 (4K)`.
fn tlbs(host: &Host) -> String {
    let mut levels: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for claim in host.tlb_claims.iter().filter(|t| t.kind != CacheKind::Instruction) {
        levels.entry(claim.level).or_default().push(format!("{} ({})", claim.entries, claim.pages.join("/")));
    }
    let lines: Vec<String> =
        levels.iter().map(|(level, what)| format!("L{level} {}", what.join(", "))).collect();
    if lines.is_empty() { String::new() } else { format!("entries by CPUID: {}", lines.join("; ")) }
}
