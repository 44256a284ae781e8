//! **stride**: what a load costs when loads follow each other at a fixed distance.
//!
//! Up to the size of a line several loads share a line, and the mean falls accordingly; beyond it
//! every load touches a new line, and is cheap only as long as a prefetcher follows the stride. A
//! stride leaves no line out: at the end of the area, the next lap begins at another line, until
//! all lines are accessed. Otherwise a long stride would make a large area small enough for a
//! cache. So the size of the area says which level the lines come from, whatever the stride. Read a
//! row (one size) beside its random latency: equal means that nothing is prefetched.
//!
//! The command line may choose strides and sizes (`StrideChoice`).

mod plan;
mod reveal;

use crate::chase_batches::{self, ChasePass, ChaseResult};
use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency;
use lab::chain::{Layout, Order};
use records::machine::{Direction, Machine, PairPoint, Stride, StridePoint};
use std::time::Duration;
use units::{Bytes, Quantity, Unit};

pub(crate) const ENTRY: Entry = Entry {
    name: "stride",
    about: "latency over stride and size: lines, and how far prefetchers follow",
    needs: None,
    seconds: ByEffort { quick: 3.0, normal: 20.0, thorough: 80.0 },
    run: |ctx, machine| machine.experiments.stride = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.stride.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Stride, Refused> {
    let line = ctx.line();
    let pages = latency::main_pages(ctx);
    // What was asked for has its place, however large.
    let asked = ctx.strides.sizes.iter().copied().max().unwrap_or_default();
    let cap = latency::largest(ctx).max(Bytes(asked.0.next_multiple_of(2 << 20)));
    let pass = ChasePass {
        block: Duration::from_micros(ctx.pick(300, 1000, 1500)),
        blocks: ctx.pick(6, 11, 21),
        share: 0.7,
        cap,
    };

    ctx.stage(0.0, 0.1);
    let distances = plan::pair_distances();
    let layouts: Vec<Layout> = distances.iter().map(|&d| pair(plan::pair_area(ctx), d)).collect();
    let (chased, _) =
        chase_batches::chase(ctx, &layouts, pages, ChasePass { share: 0.1, blocks: 15, ..pass })?;
    let pairs: Vec<PairPoint> = distances
        .iter()
        .zip(chased)
        .map(|(&distance, c)| PairPoint { distance: Bytes(distance), latency: c.latency })
        .collect();

    ctx.stage(0.1, 1.0);
    let settings = plan::settings(ctx, line, cap);
    let layouts: Vec<Layout> = settings.iter().map(|s| s.layout(line)).collect();
    let (chased, supply) = chase_batches::chase(ctx, &layouts, pages, pass)?;
    let mut points: Vec<StridePoint> =
        settings.iter().zip(chased).map(|(setting, chased)| point(setting, chased)).collect();
    points.sort_by_key(|p| (p.size, p.direction, p.stride));

    Ok(Stride {
        line: reveal::line(&pairs),
        line_claimed: Quantity::claimed(line as f64, Unit::Bytes),
        pages: supply,
        followed: reveal::how_far(&points, Bytes(line)),
        page_boundary: reveal::page_boundary(&points, Bytes(line)),
        points,
        pairs,
    })
}

/// Two words at a random place, `distance` apart: in one line, if it is large enough.
fn pair(area: Bytes, distance: u64) -> Layout {
    Layout {
        span: area,
        pitch: distance,
        scatter: false,
        apart: false,
        order: Order::Runs { bytes: 2 * distance, descending: false },
    }
}

fn point(setting: &plan::StrideSetting, chased: ChaseResult) -> StridePoint {
    StridePoint {
        size: setting.size,
        stride: setting.stride,
        direction: setting.direction,
        latency: chased.latency,
        blocks: chased.blocks,
        voided: chased.voided,
    }
}

impl plan::StrideSetting {
    fn layout(&self, line: u64) -> Layout {
        let stride = self.stride.0;
        let descending = self.direction == Direction::Backward;
        let order = match self.direction {
            Direction::Random => Order::Random,
            Direction::Pages => Order::Runs { bytes: plan::PAGE_BYTES, descending: false },
            Direction::Forward | Direction::Backward if stride > line => {
                Order::Strided { units: stride / line, descending }
            }
            Direction::Forward => Order::Forward,
            Direction::Backward => Order::Backward,
        };
        Layout { span: self.size, pitch: stride.min(line), scatter: false, apart: false, order }
    }
}
