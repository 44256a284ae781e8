//! Claims that cannot all be true, and which one to believe.
//!
//! To add one: a function here that compares two sources and says which wins and why. Differences
//! with an innocent reading (a leaf that counts the package, a bound that is rounded up) are not
//! contradictions.

use crate::cpuid::Cpuid;
use crate::microarchitecture;
use records::host::{Ability, Cache, CacheClaim, CacheKind, Contradiction, Host};
use units::Bytes;

pub(crate) fn find(host: &Host, cpuid: &Cpuid) -> Vec<Contradiction> {
    let mut found = caches(host);
    found.extend(processor(host));
    found.extend(threads_per_core(host, cpuid));
    found.extend(sockets(host));
    found.extend(node_memory(host));
    found.extend(clock(host));
    found
}

fn processor(host: &Host) -> Option<Contradiction> {
    let p = &host.processor;
    let name = microarchitecture::of(p, "")?;
    let (feature, first) = microarchitecture::belied(p, name)?;
    Some(Contradiction {
        about: "processor".into(),
        claims: vec![
            ("its number".into(), name.into()),
            ("a feature it has".into(), format!("{first} or later ({feature})")),
        ],
        judgement:
            "believe the feature: hypervisors show numbers of other processors, but cannot make features up"
                .into(),
    })
}

fn caches(host: &Host) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for claim in host.cache_claims.iter().filter(|c| c.kind != CacheKind::Instruction) {
        let at_level: Vec<&Cache> =
            host.caches.iter().filter(|c| c.level == claim.level && c.kind == claim.kind).collect();
        let sizes: Vec<Bytes> = at_level.iter().filter_map(|c| c.size.value()).collect();
        if sizes.is_empty()
            || sizes.iter().any(|s| fits(claim, *s))
            || counts_the_package(host, claim, &at_level)
        {
            continue;
        }
        let seen = sizes.iter().map(Bytes::to_string).collect::<std::collections::BTreeSet<_>>();
        let seen = seen.into_iter().collect::<Vec<_>>().join(" or ");
        let other = host
            .cache_claims
            .iter()
            .find(|c| c.leaf != claim.leaf && (c.level, c.kind) == (claim.level, claim.kind));
        let mut claims = vec![(format!("CPUID leaf {}", claim.leaf), claim.size.to_string())];
        claims.extend(other.map(|o| (format!("CPUID leaf {}", o.leaf), o.size.to_string())));
        claims.push(("sysfs".into(), seen.clone()));
        found.push(Contradiction {
            about: format!("L{} size", claim.level),
            claims,
            judgement: if claim.leaf == "0x80000006" && claim.level == 3 {
                format!(
                    "believe {seen}: leaf 0x80000006 counts all the L3 of the physical package, of which one core \
                     reaches one complex; tools that trust it see almost no last-level misses"
                )
            } else {
                format!("believe neither before measuring; the kernel works with {seen}")
            },
        });
    }
    found
}

fn fits(claim: &CacheClaim, size: Bytes) -> bool {
    // The legacy leaf rounds the last cache down to units of 512 KiB.
    let slack = if claim.leaf == "0x80000006" && claim.level == 3 { Bytes::kib(512).0 } else { 1 };
    claim.size <= size && size.0 < claim.size.0 + slack
}

/// On bare metal the legacy leaf gives the sum over the package, which is no contradiction.
fn counts_the_package(host: &Host, claim: &CacheClaim, caches: &[&Cache]) -> bool {
    if claim.leaf != "0x80000006" || claim.level != 3 {
        return false;
    }
    let packages = host.topology.sockets.value().unwrap_or(1).max(1);
    let all: u64 = caches.iter().filter_map(|c| c.size.value()).map(|s| s.0).sum();
    fits(claim, Bytes(all / u64::from(packages)))
}

/// CPUID counts the threads of a core whether the kernel uses them or not.
fn threads_per_core(host: &Host, cpuid: &Cpuid) -> Option<Contradiction> {
    let kernel = host.topology.smt.threads_per_core.value()?;
    let level = cpuid.subleaf(0xb, 0).filter(|r| r.ecx >> 8 & 0xff == 1)?;
    let cpuid = level.ebx & 0xffff;
    let switched_off = host.topology.smt.control.get().is_some_and(|c| c.contains("off"));
    (cpuid > kernel && !switched_off && cpuid <= 8).then(|| Contradiction {
        about: "threads a core".into(),
        claims: vec![("CPUID leaf 0xB".into(), cpuid.to_string()), ("the kernel".into(), kernel.to_string())],
        judgement: "believe neither before measuring: siblings may be hidden, or belong to another guest"
            .into(),
    })
}

fn sockets(host: &Host) -> Option<Contradiction> {
    let (sockets, threads) = (host.topology.sockets.value()?, host.topology.threads.value()?);
    (host.virtualization.is_guest() && sockets == threads && threads > 2).then(|| Contradiction {
        about: "sockets".into(),
        claims: vec![("sysfs".into(), format!("{sockets} sockets of one CPU each"))],
        judgement: "the hypervisor made this up: which CPUs share a cache is not known before measuring"
            .into(),
    })
}

fn node_memory(host: &Host) -> Option<Contradiction> {
    let total = host.memory.total.value()?.0;
    let sizes: Option<Vec<u64>> = host.nodes.iter().map(|n| n.total.value().map(|b| b.0)).collect();
    let sum: u64 = sizes.filter(|s| !s.is_empty())?.iter().fold(0, |a, b| a.saturating_add(*b));
    let off = sum.abs_diff(total) > total / 10;
    off.then(|| Contradiction {
        about: "memory".into(),
        claims: vec![
            ("/proc/meminfo".into(), Bytes(total).to_string()),
            ("the sum of the NUMA nodes".into(), Bytes(sum).to_string()),
        ],
        judgement: if sum < total {
            "believe /proc/meminfo: nodes count only pages that are initialised, and this kernel initialises them on demand"
                .into()
        } else {
            "believe /proc/meminfo, which is what this process is shown".into()
        },
    })
}

fn clock(host: &Host) -> Option<Contradiction> {
    let source = host.clocks.clocksource.get()?;
    let Ability::Yes { detail } = &host.clocks.counter_invariant else { return None };
    matches!(source.as_str(), "hpet" | "acpi_pm" | "jiffies").then(|| Contradiction {
        about: "TSC".into(),
        claims: vec![("CPUID".into(), detail.clone()), ("the kernel's clock source".into(), source.clone())],
        judgement: "believe the kernel, which found the counter unstable: look in its log for 'clocksource'"
            .into(),
    })
}
