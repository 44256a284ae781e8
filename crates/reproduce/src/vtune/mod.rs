//! *Finding Your Memory Access Performance Bottlenecks*: Intel, 2018, on `VTune` Amplifier.
//!
//! Two problems, each found and removed: false sharing in `linear_regression`, and a triad whose
//! arrays one thread has initialised.

mod figures;

use crate::claim::{Claim, Reason, Shape};
use crate::document::Ledger;
use crate::evidence::Evidence;
use crate::programs::Programs;
use units::Unit;

const PROFILE: &str = "gleaner profile ./linear_regression";
const TRIAD: &str = "gleaner profile ./triad";

pub(crate) const LEDGER: Ledger = Ledger {
    name: "vtune",
    title: "Intel: Finding Your Memory Access Performance Bottlenecks (VTune Amplifier), 2018",
    machine: "dual-socket Haswell Xeon",
    experiments: &["clock"],
    programs: Some((Programs::Sharing, 40.0, 20.0)),
    memory: "100 MiB",
    claims: CLAIMS,
    figures: &[],
    tables: &[],
};

const SIBLINGS: Reason = Reason::where_host(
    "two CPUs that are threads of one core share its caches: false sharing costs less between them",
    has_siblings,
);

fn has_siblings(evidence: &Evidence<'_>) -> bool {
    evidence.may_have_siblings()
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "sharing-memory-bound",
        place: "Problem 1, step 1",
        quote: "the application is \"Memory Bound\" and […] more than 42% of CPU resources are wasted waiting for memory operations",
        statistic: "share of the CPU time in which the core waits for loads",
        paper: Some((0.42, 0.42)),
        unit: Unit::Ratio,
        shape: Shape::above(0.2),
        differs: Some(SIBLINGS),
        reading: None,
        command: PROFILE,
        find: figures::memory_bound,
    },
    Claim {
        id: "sharing-one-function",
        place: "Problem 1, step 2",
        quote: "almost all of our time is spent in single function linear_regression_pthread",
        statistic: "share of the CPU time in the function that takes most",
        paper: None,
        unit: Unit::Ratio,
        shape: Shape::above(0.8),
        differs: None,
        reading: None,
        command: PROFILE,
        find: figures::first_function,
    },
    Claim {
        id: "sharing-small-object",
        place: "Problem 1, step 2",
        quote: "the hottest object (stddefines.h:52 (512B)) is quite small, only 512 bytes, it should fit fully into the L1 cache",
        statistic: "size of the object that is waited for most, over 32 KiB",
        paper: Some((512.0 / 32768.0, 512.0 / 32768.0)),
        unit: Unit::Ratio,
        shape: Shape::below(1.0),
        differs: None,
        reading: None,
        command: PROFILE,
        find: figures::object_size,
    },
    Claim {
        id: "sharing-latency",
        place: "Problem 1, step 2",
        quote: "the \"Average Latency\" metric shows a latency of 44 cycles. This far exceed the normal L1 access latency of 4 cycles",
        statistic: "latency of the load that is waited for most, before padding over after",
        paper: Some((11.0, 11.0)),
        unit: Unit::Ratio,
        shape: Shape::above(2.0),
        differs: Some(Reason::of(
            "where padded sums stay in memory, each addition waits for the one before it: both latencies are long",
        )),
        reading: None,
        command: PROFILE,
        find: figures::latency,
    },
    Claim {
        id: "sharing-is-false",
        place: "Problem 1, step 2",
        quote: "each thread is independently accessing it's element in the array so it does look like false sharing!",
        statistic: "share of the waiting in lines of which other threads write different bytes",
        paper: None,
        unit: Unit::Ratio,
        shape: Shape::above(0.5),
        differs: None,
        reading: None,
        command: PROFILE,
        find: figures::in_shared_lines,
    },
    Claim {
        id: "padding-faster",
        place: "Problem 1, step 4",
        quote: "The new Elapsed Time is now 12 seconds [50 before], we improved the application's performance by approximately 4 times",
        statistic: "elapsed time before padding, over that after",
        paper: Some((50.0 / 12.0, 50.0 / 12.0)),
        unit: Unit::Ratio,
        shape: Shape::above(1.1),
        differs: Some(SIBLINGS),
        reading: None,
        command: "time ./linear_regression",
        find: figures::padding_faster,
    },
    Claim {
        id: "padding-less-bound",
        place: "Problem 1, step 4",
        quote: "The \"Memory Bound\" metric is also much lower",
        statistic: "share of the time in which the core waits for loads, after padding over before",
        paper: None,
        unit: Unit::Ratio,
        shape: Shape::below(0.7),
        differs: Some(Reason::of(
            "each sum stays in memory: without false sharing, an addition waits for the store of the one before it, in L1",
        )),
        reading: None,
        command: PROFILE,
        find: figures::padding_bound,
    },
    Claim {
        id: "triad-memory-bound",
        place: "Problem 2, step 1",
        quote: "The \"Memory Bound\" metric is high and highlighted as we expected.",
        statistic: "share of the CPU time in which the core waits for loads",
        paper: None,
        unit: Unit::Ratio,
        shape: Shape::above(0.2),
        differs: Some(Reason::of(
            "prefetchers are ahead of a triad on two CPUs, which draw less than the memory has",
        )),
        reading: None,
        command: TRIAD,
        find: figures::triad_bound,
    },
    Claim {
        id: "first-touch-faster",
        place: "Problem 2, step 4",
        quote: "Our Elapsed Time has decreased from 12.449 to 6.69 seconds, this is almost a 2x speed-up.",
        statistic: "elapsed time with arrays that one thread initialises, over that with each its part",
        paper: Some((12.449 / 6.69, 12.449 / 6.69)),
        unit: Unit::Ratio,
        shape: Shape::above(1.1),
        differs: None,
        reading: None,
        command: "time ./triad",
        find: figures::first_touch,
    },
    Claim {
        id: "one-socket-bandwidth",
        place: "Problem 2, step 2",
        quote: "DRAM bandwidth is utilized on only one of the sockets, package_1. In addition we see high QPI (intra-socket) traffic, up to 30 GB/s.",
        statistic: "traffic of the busiest socket, over that of all",
        paper: Some((1.0, 1.0)),
        unit: Unit::Ratio,
        shape: Shape::above(0.8),
        differs: None,
        reading: None,
        command: TRIAD,
        find: figures::traffic,
    },
    Claim {
        id: "qpi-traffic-falls",
        place: "Problem 2, step 4",
        quote: "Bandwidth is now equally split between the sockets and QPI traffic is 3x lower.",
        statistic: "traffic between sockets before, over that after",
        paper: Some((3.0, 3.0)),
        unit: Unit::Ratio,
        shape: Shape::above(1.5),
        differs: None,
        reading: None,
        command: TRIAD,
        find: figures::traffic,
    },
];
