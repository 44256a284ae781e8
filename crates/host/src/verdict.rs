//! What Gleaner can do on a host, from the facts about it.

use crate::remedies::{self, Place};
use records::host::{Ability, Host, Verdict};
use std::collections::BTreeMap;
use units::Bytes;

/// The quick run's largest area and its page tables.
const LEAST_MEMORY: Bytes = Bytes::mib(256);

pub(crate) fn verdict(host: &Host) -> Verdict {
    let place = Place::of(&host.virtualization);
    let x86 = host.identity.architecture.get().map(|a| a == "x86_64");
    let code = |yes: &dyn Fn() -> Ability| match x86 {
        Some(true) => yes(),
        Some(false) => Ability::no("kernels and twins exist for x86-64 only", remedies::architecture(host)),
        None => Ability::unknown("the architecture is not known"),
    };
    let c = &host.counters;
    let mut profile = BTreeMap::from(
        [
            ("probe", code(&|| Ability::yes("times single loads in a twin: needs no counters"))),
            ("trace", code(&|| Ability::yes("follows addresses in a twin: needs no counters"))),
            ("pebs", c.pebs.clone()),
            ("ibs", c.ibs.clone()),
            ("spe", c.spe.clone()),
        ]
        .map(|(name, ability)| (name.to_owned(), not_built(ability))),
    );
    profile.insert("clock".to_owned(), code(&|| clock(&c.software)));
    profile.insert("system".to_owned(), code(&|| system(host, &place)));
    profile.insert("stored".to_owned(), code(&stored));
    Verdict { measure: code(&|| measure(host)), profile, harvest: code(&|| harvest(host, &place)) }
}

/// Sampling CPU time takes the kernel's software events, and no PMU.
fn clock(software: &Ability) -> Ability {
    match software {
        Ability::Yes { .. } => Ability::yes(
            "samples of CPU time name the loads that stall, without a PMU: in native code, in what Java and node \
                 compile, and by lines of Python 3.11 to 3.14 and Ruby 3.1",
        ),
        no_or_unknown => no_or_unknown.clone(),
    }
}

/// Sampling all processes is a right of its own.
fn system(host: &Host, place: &Place<'_>) -> Ability {
    let (limits, paranoid) = (&host.limits, host.counters.paranoid.value());
    if let no_or_unknown @ (Ability::No { .. } | Ability::Unknown { .. }) = &host.counters.software {
        return no_or_unknown.clone();
    }
    let Some(capabilities) = limits.capabilities.get() else {
        return Ability::unknown("the capabilities of this process are not known");
    };
    let has = |name: &str| capabilities.iter().any(|capability| capability == name);
    if has("perfmon") || has("sys_admin") || paranoid.is_some_and(|level| level < 0) {
        return Ability::yes("all processes may be sampled: gleaner profile --system, gleaner top");
    }
    let all = place.container.is_some().then(|| remedies::permission(place, paranoid, limits));
    Ability::no(
        "all processes may be sampled by root and with CAP_PERFMON only",
        all.unwrap_or_else(|| {
            "run as root, give the binary CAP_PERFMON, or `sysctl kernel.perf_event_paranoid=-1`".to_owned()
        }),
    )
}

/// Reading files takes no right.
fn stored() -> Ability {
    Ability::yes(
        "profiles that others took are read: pprof, OTLP, perf.data, collapsed stacks; `gleaner doctor --skid` says \
         whether samples of this processor name the load",
    )
}

/// This host would allow it, but no sampler is built yet that uses it.
fn not_built(ability: Ability) -> Ability {
    match ability {
        Ability::Yes { .. } => Ability::no(
            "this profiling backend is not implemented yet",
            "a later gleaner; this host allows it",
        ),
        no_or_unknown => no_or_unknown,
    }
}

fn measure(host: &Host) -> Ability {
    let cpus = host.usable_cpus();
    if cpus.is_empty() {
        return Ability::unknown("it is not known which CPUs may be used");
    }
    if let Some(memory) = host.memory.usable().filter(|m| *m < LEAST_MEMORY) {
        return Ability::no(
            format!("only {memory} of memory is available"),
            format!("free some memory, or raise the control group's limit, to {LEAST_MEMORY} or more"),
        );
    }
    let mut without = Vec::new();
    if cpus.len() < 2 {
        without.push("threads and c2c (one CPU)");
    }
    if host.nodes.iter().filter(|n| n.total.value().is_none_or(|t| t.0 > 0)).count() < 2 {
        without.push("numa (one node)");
    }
    if !host.prefetch.control.is_yes() {
        without.push("switching prefetchers (the stride experiment shows their effect)");
    }
    let mut text = "all experiments".to_owned();
    if !without.is_empty() {
        text += &format!(" but {}", without.join(", "));
    }
    if matches!(host.clocks.counter_invariant, Ability::No { .. }) {
        text += "; check the drift that clock reports, since the counter is not known to be invariant";
    }
    if host.limits.cpu_quota_milli.value().flatten().is_some() {
        text += "; the CPU quota will void blocks";
    }
    Ability::yes(text)
}

/// FSGSBASE is not asked for: a thread's GS base is set once, by the kernel, and its FS base stays.
fn harvest(host: &Host, place: &Place<'_>) -> Ability {
    if host.limits.seccomp.get().is_some_and(|s| s == "strict") {
        return Ability::no("a strict seccomp sandbox forbids it", "run outside the sandbox");
    }
    let kernel = host.identity.kernel.get().and_then(|release| version(release));
    if let Some(old) = kernel.filter(|kernel| *kernel < (5, 3)) {
        let why = format!("Linux {}.{} has no process descriptors (pidfd_open)", old.0, old.1);
        return Ability::no(why, "boot Linux 5.3 or later");
    }
    let dumps = if kernel.is_some_and(|kernel| kernel < (5, 16)) {
        "; programs in a harvest leave no core dumps (Linux before 5.16)"
    } else {
        ""
    };
    let cores = if place.is_guest() { "; a guest cannot know reliably which CPUs share a core" } else { "" };
    Ability::yes(format!("yields need no system call{cores}{dumps}"))
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{not_built, version};
    use records::host::Ability;

    #[test]
    fn only_what_is_built_is_possible() {
        assert!(!not_built(Ability::yes("it would")).is_yes());
        let no = Ability::no("no counters", "bare metal");
        assert_eq!(not_built(no.clone()), no);
    }

    #[test]
    fn releases_begin_with_two_numbers() {
        for (release, numbers) in [
            ("6.18.44-fc-v595", Some((6, 18))),
            ("5.16-rc1", Some((5, 16))),
            ("4.18.0-553.el8_10.x86_64", Some((4, 18))),
            ("unknown", None),
            ("5", None),
        ] {
            assert_eq!(version(release), numbers, "{release}");
        }
    }
}
