//! What a load costs in an area of 64 KiB: a random pointer chain on verified pages, timed in
//! blocks.
//!
//! ```text
//! $ cargo run --release --package gleaner-lab --example chase -- 64K
//! 64 KiB on CPU 3, 100% of it in 4K pages: 31 blocks count, 2 are void (the core clock moved (2))
//! 14.02 cycles [14.01, 14.05] measured
//! 3.91 ns [3.90, 3.93] measured
//! ```
//!
//! A block counts whole or is void: a context switch, stolen time, a page fault or a moving core
//! clock voids it, and the campaign repeats it. The figure is the median of the blocks, with its
//! 95% interval.

use gleaner_lab::arena::{PageKind, Placement};
use gleaner_lab::campaign::{self, CampaignGoal, Station};
use gleaner_lab::chain::{self, Layout};
use gleaner_lab::code::Loaded;
use gleaner_lab::rigs::ChaseRig;
use gleaner_lab::rng::Rng;
use gleaner_lab::stop::Stop;
use gleaner_lab::{pin, tsc};
use kernels::{Access, Spec};
use std::error::Error;
use std::time::Duration;
use units::{Bytes, Quantity, Unit};

const LINE_BYTES: u64 = 64;
/// Long against the steps of the time stamp counter, short against the time between two timer
/// interrupts.
const BLOCK: Duration = Duration::from_micros(500);

fn main() -> Result<(), Box<dyn Error>> {
    let area: Bytes = std::env::args().nth(1).map_or(Ok(Bytes::kib(64)), |size| size.parse())?;
    tsc::usable()?;
    let ticks_per_second = tsc::calibrate(Duration::from_millis(30));
    // The first CPU often serves interrupts, so take the last.
    let cpu = *pin::allowed()?.last().ok_or("no CPU may be used")?;
    let mut rng = Rng::new(1);

    // One node in each cache line, linked in one random cycle that no prefetcher follows.
    let layouts = [Layout::random(area, LINE_BYTES)];
    let chain = chain::build(&layouts, PageKind::Small, &Placement::FirstTouch, &mut rng)?.remove(0);
    let pages = chain.pages();

    let kernel = Loaded::of(&Spec::Chase { unroll: 64, access: Access::Read })?;
    // Before a block, walk the whole chain until it gets no faster, for 10 ms at most.
    let (warm_nodes, warm_ticks) = (chain.nodes(), (ticks_per_second.value * 0.01) as u64);
    let rig = ChaseRig::new(kernel, chain, warm_nodes, warm_ticks);

    // The station pins this thread to the CPU.
    let mut station = Station::new(cpu, ticks_per_second.value)?;
    let mut executor = station.with(vec![Box::new(rig)], BLOCK);
    let effort = CampaignGoal {
        blocks: 31,
        time: Duration::from_secs(2),
        most: Duration::from_secs(4),
        whole_core: false,
    };
    let gathered = campaign::run(&mut executor, &effort, &mut rng, Stop::on_signals(), &mut units::Silent);

    let series = &gathered.series[0];
    let (voids, share) = (series.voids(), pages.share() * 100.0);
    println!(
        "{area} on CPU {cpu}, {share:.0}% of it in {} pages: {} blocks count, {} are void ({})",
        pages.asked.name(),
        series.valid(),
        voids.total(),
        voids.describe()
    );
    let figure = |estimate: Result<_, String>, unit| match estimate {
        Ok(estimate) => Quantity::measured(estimate, unit).disturbed_by(series.disturbed()),
        Err(why) => Quantity::unresolved(why),
    };
    println!("{}", figure(series.cycles(&mut rng), Unit::Cycles));
    let nanos_per_tick = 1e9 / ticks_per_second.value;
    let nanos = series.estimate(&mut rng).map(|ticks| ticks.scaled(nanos_per_tick));
    println!("{}", figure(nanos, Unit::Nanos));
    Ok(())
}
