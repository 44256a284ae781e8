//! Doctor's sections, one function each. To add a line: where its like stand; what it says comes
//! from `records::host` alone, so that the page of a recorded machine is the page that machine
//! would show.

use super::page::{Mark, Page, Style};
use super::{caches, rights};
use records::host::{Ability, CoreKind, CpuList, Fact, Host, HugetlbPool, ThpMode};
use units::Bytes;

pub(crate) fn render(host: &Host, style: Style) -> String {
    let mut page = Page::new(style);
    machine(&mut page, host);
    caches::render(&mut page, host);
    memory(&mut page, host);
    numa(&mut page, host);
    clocks(&mut page, host);
    counters(&mut page, host);
    prefetch(&mut page, host);
    rights::rights(&mut page, host);
    rights::company(&mut page, host);
    contradictions(&mut page, host);
    verdict(&mut page, host);
    page.into_text()
}

fn machine(page: &mut Page, host: &Host) {
    page.section("Machine");
    let p = &host.processor;
    let mut name = p.name.get().cloned().unwrap_or_else(|| "unknown processor".into());
    if let Some(kind) = p.microarchitecture.get().filter(|k| !name.contains(k.as_str())) {
        name = format!("{name}: {kind}");
    }
    let is_arm = p.family.get().is_none() && host.identity.architecture.get().is_some_and(|a| a == "aarch64");
    let numbers: Vec<String> = [("family", &p.family), ("model", &p.model), ("stepping", &p.stepping)]
        .into_iter()
        .filter_map(|(what, n)| {
            n.value().map(|n| {
                if is_arm && what == "model" { format!("part {n:#x}") } else { format!("{what} {n}") }
            })
        })
        .collect();
    let numbers = if numbers.is_empty() { String::new() } else { format!(" ({})", numbers.join(", ")) };
    let mark = if p.name.get().is_some() { Mark::Plain } else { Mark::Unknown };
    page.line(mark, "processor", &format!("{name}{numbers}"));
    page.fact(Mark::Plain, "microcode", &p.microcode);
    page.fact(Mark::Plain, "product", &host.identity.product);
    let system: Vec<&str> = [&host.identity.distribution, &host.identity.architecture]
        .into_iter()
        .filter_map(|f| f.get().map(String::as_str))
        .collect();
    page.fact(
        Mark::Plain,
        "system",
        &host
            .identity
            .kernel
            .clone()
            .map(|k| [&[format!("Linux {k}").as_str()], &system[..]].concat().join(", ")),
    );
    virtualization(page, host);
    cpus(page, host);
    smt(page, host);
    page.ability("FSGSBASE", &p.fsgsbase);
}

fn virtualization(page: &mut Page, host: &Host) {
    let v = &host.virtualization;
    let mut text = match &v.hypervisor {
        Fact::Unknown { unknown } => return page.line(Mark::Unknown, "hypervisor", unknown),
        Fact::Known(h) if h == "none" => "none: bare metal".to_owned(),
        Fact::Known(h) => format!("guest of {h}"),
    };
    if let Some(cloud) = &v.cloud {
        text += &format!(" at {cloud}");
    }
    if let Some(container) = &v.container {
        text += &format!(", in a container ({container})");
    }
    if !v.evidence.is_empty() {
        text += &format!(" [{}]", v.evidence.join("; "));
    }
    page.line(Mark::Plain, "hypervisor", &text);
}

fn cpus(page: &mut Page, host: &Host) {
    let t = &host.topology;
    let number = |f: &Fact<u32>, what: &str| {
        f.value()
            .map_or_else(|| format!("? {what}s"), |n| format!("{n} {what}{}", if n == 1 { "" } else { "s" }))
    };
    let mut text = format!(
        "{} on {} in {}",
        number(&t.threads, "CPU"),
        number(&t.cores, "core"),
        number(&t.sockets, "socket")
    );
    let kind = |kind| host.cpus.iter().filter(|c| c.kind == kind).map(|c| c.id).collect::<CpuList>();
    let (fast, small) = (kind(CoreKind::Performance), kind(CoreKind::Efficiency));
    if !small.is_empty() {
        text += &format!("; hybrid: performance cores are CPUs {fast}, efficiency cores {small}");
    }
    let offline: CpuList = host.cpus.iter().filter(|c| !c.online).map(|c| c.id).collect();
    if !offline.is_empty() {
        text += &format!("; offline: {offline}");
    }
    let mark = if t.threads.get().is_some() { Mark::Plain } else { Mark::Unknown };
    page.line(mark, "CPUs", &text);
    match (&t.allowed, &t.online) {
        (Fact::Known(a), Fact::Known(o)) if o.iter().all(|c| a.contains(c)) => {
            page.line(Mark::Yes, "may be used", "all of them");
        }
        (Fact::Known(a), _) => page.no(
            "may be used",
            &format!("only {a}: CPU affinity or a cpuset restricts this process to them"),
            "taskset, or the control group's cpuset.cpus; measuring on these alone works, too",
        ),
        (Fact::Unknown { unknown }, _) => page.line(Mark::Unknown, "may be used", unknown),
    }
    if let Some(isolated) = t.isolated.get().filter(|l| !l.is_empty()) {
        page.line(Mark::Yes, "isolated", &format!("CPUs {isolated}: the quietest place to measure"));
    }
}

fn smt(page: &mut Page, host: &Host) {
    let smt = &host.topology.smt;
    let control = smt.control.get().map(|c| format!(" (kernel switch: {c})")).unwrap_or_default();
    let claimed = match smt.threads_per_core.value() {
        None => return page.fact(Mark::Plain, "SMT", &smt.threads_per_core),
        Some(1) if host.virtualization.is_guest() => {
            format!("no SMT siblings shown{control}; a guest may not be shown those that exist")
        }
        Some(1) => format!("no SMT siblings{control}"),
        Some(n) => format!("up to {n} hardware threads per core{control}"),
    };
    let measured = match &smt.measured {
        Fact::Known(pairs) if pairs.is_empty() => "measured: no two CPUs slow each other down".to_owned(),
        Fact::Known(pairs) => {
            let pairs: Vec<String> = pairs.iter().map(ToString::to_string).collect();
            format!("measured: these slow each other down: {}", pairs.join(" and "))
        }
        Fact::Unknown { unknown } => unknown.clone(),
    };
    page.line(Mark::Plain, "SMT", &format!("{claimed}; {measured}"));
}

fn memory(page: &mut Page, host: &Host) {
    page.section("Memory and pages");
    let m = &host.memory;
    let text = match (m.total.value(), m.usable()) {
        (Some(total), Some(usable)) => format!("{usable} of {total} available now"),
        (Some(total), None) => format!("{total}"),
        _ => String::new(),
    };
    if text.is_empty() {
        page.fact(Mark::Plain, "memory", &m.total);
    } else {
        page.line(Mark::Plain, "memory", &text);
    }
    match &m.cgroup_limit {
        Fact::Known(Some(limit)) => page.line(Mark::Plain, "cgroup limit", &limit.to_string()),
        Fact::Known(None) => page.line(Mark::Yes, "cgroup limit", "none"),
        Fact::Unknown { unknown } => page.line(Mark::Unknown, "cgroup limit", unknown),
    }
    if m.overcommit.value() == Some(2) {
        page.no(
            "overcommit",
            "strict (vm.overcommit_memory=2): large mappings may be refused although memory is free",
            "`sysctl vm.overcommit_memory=0`",
        );
    }
    page.fact(Mark::Plain, "base page", &host.pages.base);
    thp(page, host);
    for pool in &host.pages.hugetlb {
        hugetlb(page, pool);
    }
    if host.pages.hugetlb.is_empty() {
        page.line(Mark::Unknown, "hugetlb", "the kernel lists no pools");
    }
    if host.virtualization.is_guest() {
        page.fact(Mark::Plain, "host backing", &host.virtualization.host_backing);
    }
}

fn thp(page: &mut Page, host: &Host) {
    let thp = &host.pages.thp;
    let size = thp.pmd_size.get().map(|s| format!(" of {s}")).unwrap_or_default();
    let defrag = thp.defrag.get().map(|d| format!(" (defrag: {d})")).unwrap_or_default();
    match &thp.effective() {
        Fact::Known(ThpMode::Always) => {
            page.line(Mark::Yes, "THP", &format!("always: programs get pages{size} without madvise{defrag}"));
        }
        Fact::Known(ThpMode::Never) => page.no(
            "THP",
            "never: no program gets transparent huge pages",
            &format!("as root: `echo madvise > /{}`", thp.enabled_path),
        ),
        Fact::Known(_) => {
            page.line(Mark::Yes, "THP", &format!("madvise: programs that ask get pages{size}{defrag}"));
        }
        Fact::Unknown { unknown } => page.line(Mark::Unknown, "THP", unknown),
    }
    let medium: Vec<String> = thp
        .sizes
        .iter()
        .filter(|s| {
            s.enabled.value().is_some_and(|m| m != ThpMode::Never) && Some(s.size) != thp.pmd_size.value()
        })
        .map(|s| s.size.to_string())
        .collect();
    if !medium.is_empty() {
        page.line(Mark::Plain, "THP, smaller", &medium.join(", "));
    }
}

fn hugetlb(page: &mut Page, pool: &HugetlbPool) {
    let label = format!("hugetlb {}", pool.size);
    match (pool.total.value(), pool.free.value()) {
        (Some(total), Some(free)) if free > 0 => {
            page.line(Mark::Yes, &label, &format!("{free} of {total} free"));
        }
        (Some(total), _) => {
            let why = if total == 0 { "none reserved".to_owned() } else { format!("all {total} in use") };
            // Enough for the smallest areas worth measuring; large pages are gone soon after the
            // start.
            let wanted = total + (Bytes::mib(256).0 / pool.size.0.max(1)).max(1);
            let when = if pool.size < Bytes::mib(256) { "" } else { ", best right after boot" };
            let help = format!("as root: `echo {wanted} > /{}/nr_hugepages`{when}", pool.path);
            page.no(&label, &why, &help);
        }
        _ => page.fact(Mark::Plain, &label, &pool.total),
    }
}

fn numa(page: &mut Page, host: &Host) {
    page.section("NUMA");
    match host.nodes.as_slice() {
        [] => page.line(Mark::Unknown, "nodes", "the kernel lists none"),
        [only] => {
            page.line(Mark::Plain, "nodes", &format!("one, with CPUs {}: all memory is local", only.cpus));
        }
        nodes => {
            for node in nodes {
                let cpus =
                    if node.cpus.is_empty() { "no CPUs".into() } else { format!("CPUs {}", node.cpus) };
                let size = node.total.get().map_or_else(|| "size unknown".to_owned(), ToString::to_string);
                let distances = node.distances.get().map_or_else(
                    || "distances unknown".to_owned(),
                    |d| format!("distances {}", d.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")),
                );
                page.line(Mark::Plain, &format!("node {}", node.id), &format!("{cpus}; {size}; {distances}"));
            }
        }
    }
}

fn hertz(hz: u64) -> String {
    format!("{:.3} GHz", hz as f64 / 1e9)
}

fn clocks(page: &mut Page, host: &Host) {
    page.section("Clocks");
    let c = &host.clocks;
    page.ability("counter", &c.counter_invariant);
    match (&c.counter_hz, &c.counter_source) {
        (Fact::Known(hz), Fact::Known(from)) => {
            page.line(Mark::Plain, "counter rate", &format!("{} claimed by {from}", hertz(*hz)));
        }
        (fact, _) => page.fact(Mark::Plain, "counter rate", fact),
    }
    page.fact(Mark::Plain, "kernel's clock", &c.clocksource);
    let f = &c.frequency;
    let mut parts = Vec::new();
    parts.extend(c.base_hz.value().map(|hz| format!("base {}", hertz(hz))));
    parts.extend(c.max_hz.value().map(|hz| format!("highest {}", hertz(hz))));
    parts.extend(f.driver.get().map(|d| format!("driver {d}")));
    parts.extend(f.governors.get().map(|g| format!("governor {}", g.join(" and "))));
    parts.extend(f.turbo.value().map(|t| format!("turbo {}", if t { "on" } else { "off" })));
    if parts.is_empty() {
        page.line(
            Mark::Unknown,
            "core frequency",
            "not reported (no cpufreq); measurements do not need it: they measure the clock around each block",
        );
    } else {
        page.line(Mark::Plain, "core frequency", &parts.join(", "));
    }
    if f.governors.get().is_some_and(|g| g.iter().any(|g| g == "powersave" || g == "ondemand"))
        && !f.driver.get().is_some_and(|d| d == "intel_pstate" || d == "amd-pstate-epp")
    {
        page.no(
            "steady clock",
            "the governor changes the frequency with the load: blocks whose clock moved will be void",
            "as root: `cpupower frequency-set -g performance`",
        );
    }
}

fn counters(page: &mut Page, host: &Host) {
    page.section("Counters, as tested");
    let c = &host.counters;
    if c.hardware == c.cache_misses {
        page.ability("cycles, misses", &c.hardware);
    } else {
        page.ability("cycles", &c.hardware);
        page.ability("cache misses", &c.cache_misses);
    }
    // Only the sampler that this processor could have; the others are another vendor's.
    match host.processor.vendor.get().map(String::as_str) {
        Some("GenuineIntel") => page.ability("PEBS loads", &c.pebs),
        Some("AuthenticAMD" | "HygonGenuine") => page.ability("IBS", &c.ibs),
        _ if host.identity.architecture.get().is_some_and(|a| a == "aarch64") => page.ability("SPE", &c.spe),
        _ => page.line(Mark::Unknown, "load sampling", "not known for this processor"),
    }
    page.ability("debug registers", &c.breakpoints);
    page.ability("sampling clock", &c.software);
    if matches!(c.software, Ability::No { .. }) {
        page.line(
            Mark::Yes,
            "by signals",
            "programs that gleaner profile starts are sampled all the same, by timers and their signals: once for each \
             tick of the kernel (--backend signal)",
        );
    }
    let listed: Vec<&str> = c.devices.iter().map(|d| d.name.as_str()).collect();
    if !listed.is_empty() {
        let (shown, more) = listed.split_at(listed.len().min(12));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        page.line(
            Mark::Plain,
            "listed",
            &format!("{}{more}; a listed PMU may still not count", shown.join(", ")),
        );
    }
    page.fact(
        Mark::Plain,
        "paranoid",
        &c.paranoid.clone().map(|p| format!("kernel.perf_event_paranoid = {p}")),
    );
}

fn prefetch(page: &mut Page, host: &Host) {
    page.section("Prefetchers");
    page.ability("control", &host.prefetch.control);
    for control in &host.prefetch.controls {
        let state = control.state.get().map_or_else(|| "state unknown".to_owned(), Clone::clone);
        page.line(Mark::Plain, "", &format!("{}: {state} ({})", control.name, control.place));
    }
}

fn contradictions(page: &mut Page, host: &Host) {
    if host.contradictions.is_empty() {
        return;
    }
    page.section("Contradictions");
    for c in &host.contradictions {
        let claims: Vec<String> =
            c.claims.iter().map(|(source, what)| format!("{source} says {what}")).collect();
        page.line(Mark::Odd, &c.about, &format!("{}. {}", claims.join(", "), sentence(&c.judgement)));
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn verdict(page: &mut Page, host: &Host) {
    page.section("Verdict: what this host allows");
    page.ability("measure", &host.verdict.measure);
    let unknown = Ability::unknown("the record does not say");
    let profile = &host.verdict.profile;
    page.ability("profile", profile.get("clock").unwrap_or(&unknown));
    // Older records do not say.
    for (label, how) in [("whole machine", "system"), ("stored profiles", "stored")] {
        profile.get(how).into_iter().for_each(|ability| page.ability(label, ability));
    }
    page.ability("harvest", &host.verdict.harvest);
}
