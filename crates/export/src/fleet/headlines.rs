//! The figures that monitoring is to watch: by experiment and metric, as the table `results` has
//! them.
//!
//! To add one: a line in [`HEADLINES`].

/// A figure worth an alarm.
pub(super) struct Headline {
    pub(super) experiment: &'static str,
    pub(super) metric: &'static str,
    /// Without unit, which comes from the figure.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// Parameters of the figure that become labels; others are left out.
    pub(super) labels: &'static [&'static str],
}

const fn headline(
    (experiment, metric): (&'static str, &'static str),
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
) -> Headline {
    Headline { experiment, metric, name, help, labels }
}

pub(super) const HEADLINES: &[Headline] = &[
    headline(
        ("levels", "latency.ns"),
        "level_latency",
        "latency of a level of the memory hierarchy",
        &["name"],
    ),
    headline(("levels", "size"), "level_size", "size of a level of the memory hierarchy", &["name"]),
    headline(("clock", "core"), "core_clock", "core clock while busy", &[]),
    headline(
        ("bandwidth", "platform_maximum"),
        "bandwidth_all_cpus",
        "the most that all CPUs draw from memory",
        &[],
    ),
    headline(
        ("bandwidth", "single_maximum"),
        "bandwidth_one_cpu",
        "the most that one CPU draws from memory",
        &[],
    ),
    headline(
        ("mlp", "kinds.effective"),
        "misses_at_once",
        "misses that are served at once",
        &["pages.asked"],
    ),
    headline(("rob", "entries"), "reorder_buffer", "entries of the re-order buffer", &[]),
    headline(("probe", "core_clock"), "probe_core_clock", "core clock while busy", &[]),
    headline(("probe", "cache_latency.ns"), "probe_cache_latency", "random loads in the last cache", &[]),
    headline(("probe", "memory_latency.ns"), "probe_memory_latency", "random loads in memory", &[]),
    headline(
        ("probe", "memory_spread"),
        "probe_memory_spread",
        "95th percentile of blocks over the 5th",
        &[],
    ),
    headline(("probe", "huge_pages"), "probe_huge_pages", "share of memory that got huge pages", &[]),
    headline(("probe", "prefetch_gain"), "probe_prefetch_gain", "random latency over that of a stream", &[]),
    headline(("probe", "bandwidth_one"), "probe_bandwidth_one", "what one CPU reads from memory", &[]),
    headline(("probe", "bandwidth_all"), "probe_bandwidth_all", "what all CPUs read from memory", &[]),
    headline(("probe", "copy_all"), "probe_copy_all", "what all CPUs copy in memory", &[]),
    headline(("probe", "void_share"), "probe_void_share", "share of blocks that were disturbed", &[]),
    headline(
        ("probe", "node_balance"),
        "probe_node_balance",
        "lowest bandwidth of a node over the highest",
        &[],
    ),
    headline(
        ("probe", "nodes.bandwidth"),
        "probe_node_bandwidth",
        "what a node's CPUs read from its memory",
        &["node"],
    ),
    headline(("summary", "elapsed"), "profile_elapsed", "wall-clock time of the profiled program", &[]),
    headline(("summary", "cpu_time"), "profile_cpu_time", "CPU time of the profiled program", &[]),
    headline(
        ("summary", "memory_bound"),
        "profile_memory_bound",
        "share of CPU time spent waiting for loads",
        &[],
    ),
    headline(("wall", "value"), "harvest_wall", "wall-clock time of the harvest's primary", &[]),
    headline(("slowdown", "share"), "harvest_slowdown", "slowdown of the primary", &[]),
    headline(("absences", "p99"), "harvest_absence_p99", "99th percentile of the primary's absences", &[]),
    headline(("work", "value"), "harvest_work", "work of all programs of a harvest together", &[]),
];
