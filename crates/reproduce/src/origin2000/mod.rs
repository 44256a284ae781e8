//! *Access Delays Related to the Main Memory Hierarchy on SGI Origin2000*: S. Seidl, TU Dresden,
//! 1997.
//!
//! Windows drawn at random from areas, each double read, sign-changed and written; a staircase of
//! levels fitted to the mean time.

mod drawn;
mod figures;
mod tables;

use crate::claim::{Claim, Reason, Shape};
use crate::document::{BEYOND_CACHES, Ledger};
use units::Unit;

const WINDOWS: &str = "gleaner measure windows";
const NUMA: &str = "gleaner measure numa";
const FIT: &str = "gleaner model";

pub(crate) const LEDGER: Ledger = Ledger {
    name: "origin2000",
    title: "Seidl: Access Delays Related to the Main Memory Hierarchy on SGI Origin2000, TU Dresden, 1997",
    machine: "SGI Origin2000, 54 R10000, 18 GB",
    experiments: &["latency", "tlb", "numa", "windows"],
    programs: None,
    memory: BEYOND_CACHES,
    claims: CLAIMS,
    figures: &[drawn::windows],
    tables: &[tables::megaflops, tables::hops],
};

const CLAIMS: &[Claim] = &[
    Claim {
        id: "levels-identified",
        place: "2, figure 1",
        quote: "On-chip cache, SL cache and home memory can be clearly identified.",
        statistic: "levels of a staircase fitted to windows",
        paper: Some((3.0, 3.0)),
        unit: Unit::Count,
        shape: Shape::above(2.0),
        differs: None,
        reading: None,
        command: FIT,
        find: figures::levels,
    },
    Claim {
        id: "fit-agrees",
        place: "abstract",
        quote: "Theory and measurement supply impressive results. Agreement and reproducibility are excellent",
        statistic: "relative error of the fit at areas held back, from the median to the 90th percentile",
        paper: None,
        unit: Unit::Ratio,
        shape: Shape::below(0.1),
        differs: Some(Reason::of(
            "a staircase of sharp levels does not describe these curves: caches are shared, and prefetchers follow windows",
        )),
        reading: None,
        command: FIT,
        find: figures::held_back,
    },
    Claim {
        id: "parameters-within-20-percent",
        place: "4",
        quote: "The relative error of the individual value is estimated at 20 percent.",
        statistic: "relative half width of the cost of a line, from the best known level to the worst",
        paper: Some((0.2, 0.2)),
        unit: Unit::Ratio,
        shape: Shape::below(0.2),
        differs: None,
        reading: None,
        command: FIT,
        find: figures::widths_of_costs,
    },
    Claim {
        id: "memory-over-second-cache",
        place: "table 2",
        quote: "SL cache 75.5 […] home memory 20.3 [MFLOPS]",
        statistic: "sign changes in memory, over those in the second cache (time)",
        paper: Some((75.5 / 20.3, 75.5 / 20.3)),
        unit: Unit::Ratio,
        shape: Shape::above(1.5),
        differs: Some(Reason::of("prefetchers hide the way to memory while a window is read")),
        reading: None,
        command: WINDOWS,
        find: figures::memory_over_second_cache,
    },
    Claim {
        id: "no-delay-per-window",
        place: "3.1",
        quote: "If prefetching is dispensed with […], five of the twelve constants in total disappear in good approximation",
        statistic: "what a window in memory costs however many lines it has, over what a line costs",
        paper: Some((0.0, 0.0)),
        unit: Unit::Ratio,
        shape: Shape::below(0.5),
        differs: Some(Reason::of(
            "prefetchers of the hardware cannot be dispensed with: the first lines of a window wait, and those behind them are there already; the \
             document says of that case that the constants do not disappear",
        )),
        reading: None,
        command: FIT,
        find: figures::delay_per_window,
    },
    Claim {
        id: "tlb-ends-inside-second-cache",
        place: "3.2",
        quote: "the 64 entries of the Translation Lookaside Buffer (TLB) are exhausted […] with as low as 1 MB",
        statistic: "reach of the first TLB with small pages, over the size of the second cache",
        paper: Some((0.25, 0.25)),
        unit: Unit::Ratio,
        shape: Shape::below(1.0),
        differs: None,
        reading: None,
        command: "gleaner measure tlb",
        find: figures::tlb_reach,
    },
    Claim {
        id: "tlb-miss-over-memory",
        place: "table 1",
        quote: "TLB miss handling 1005 ns […] local hub for home 110 ns […] memory + memory controller 468 ns",
        statistic: "what a TLB miss adds, over an access to memory",
        paper: Some((1005.0 / 578.0, 1005.0 / 578.0)),
        unit: Unit::Ratio,
        shape: Shape::above(1.0),
        differs: Some(Reason::of(
            "the R10000 traps to a handler of the kernel; x86 processors walk page tables themselves, and find them in caches",
        )),
        reading: None,
        command: "gleaner measure latency tlb",
        find: figures::tlb_miss_over_memory,
    },
    Claim {
        id: "larger-pages-help",
        place: "3.2",
        quote: "It would certainly be sensible to make the default page size dependent on the size of the SL caches",
        statistic: "a window in memory with small pages, over one with huge pages",
        paper: None,
        unit: Unit::Ratio,
        shape: Shape::above(1.0),
        differs: None,
        reading: None,
        command: WINDOWS,
        find: figures::small_over_huge,
    },
    Claim {
        id: "growth-beyond-256-mb",
        place: "3.3, equation 7",
        quote: "there is a vague supposition that starting from about 256 MB some limit is reached which might be linked to page table size",
        statistic: "a window in the largest area, over one in 256 MiB, small pages",
        paper: None,
        unit: Unit::Ratio,
        shape: Shape::above(1.05),
        differs: None,
        reading: Some(
            "equation 7 begins at 256 MB = 2^28 and subtracts log2 of 2^26, which is 64 MB: as printed, the term jumps from 0 to \
             8356 ns * 2 / 26 = 643 ns at 256 MB; no curve of figure 1 is said to jump, so one of the two numbers is a slip",
        ),
        command: "gleaner measure windows --thorough",
        find: figures::beyond_256_mib,
    },
    Claim {
        id: "other-node-slower",
        place: "table 2",
        quote: "home memory 20.3 […] same corner 14.5 [MFLOPS]",
        statistic: "an access on another node, over one on the local node",
        paper: Some((20.3 / 14.5, 20.3 / 14.5)),
        unit: Unit::Ratio,
        shape: Shape::above(1.0),
        differs: None,
        reading: None,
        command: NUMA,
        find: figures::other_node,
    },
    Claim {
        id: "distance-hardly-matters",
        place: "4, table 2",
        quote: "Accesses to the memories of the node boards located further away do not impair times significantly any more.",
        statistic: "the furthest node, over the nearest other node",
        paper: Some((14.5 / 12.2, 14.5 / 12.2)),
        unit: Unit::Ratio,
        shape: Shape::below(1.4),
        differs: None,
        reading: None,
        command: NUMA,
        find: figures::furthest_node,
    },
];
