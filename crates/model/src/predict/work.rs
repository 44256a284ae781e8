//! `work=TIME`: what one access takes, with its computing, when all data are in the nearest cache.
//!
//! Where loads wait for something (a chase, a walk, or as many at once as `mlp` says), computing
//! waits for them, too: between two loads of one chain lies all that is not the load itself.
//!
//! ```text
//! time = memory + work - latency of L1 · steps / mlp         steps of a walk; else 1
//! ```
//!
//! In passes in order, lines are fetched ahead, but what the core does to load them one by one is
//! not hidden. The record's own passes do little besides: what is more than they take is added.
//!
//! ```text
//! time = memory + work - a line of the record's pass over the nearest cache
//! ```
//!
//! Else an out-of-order core computes while it waits, and the longer one is what it takes. Where
//! one access has more instructions than the core can look ahead over, nothing is loaded while it
//! executes those beyond.
//!
//! ```text
//! time = larger of memory and work          ahead >= 1, or not known
//! time = memory + work · (1 - ahead)        ahead = accesses that fit into the re-order buffer
//! ```
//!
//! In both of these, the interval reaches from the longer one, for all may overlap, to the sum.

use super::figure::{Figure, Served, sum};
use super::known::Known;
use super::lines;
use crate::pattern::{Access, Kind};
use records::machine::StreamKind;
use units::Estimate;

/// The name of what is not memory's part of the time, among the levels.
pub(crate) const COMPUTING: &str = "computing";

const NEAREST: &str = "L1";

/// Bytes that fit into the nearest cache of any machine.
const SMALL: f64 = 16384.0;

pub(crate) fn added(known: &Known<'_>, access: &Access, mut figure: Figure) -> Figure {
    let Some(work) = access.options.work else { return figure };
    let memory = figure.time;
    let waits = match access.kind {
        Kind::Chase => Some(1.0),
        Kind::Tree { .. } | Kind::Search => Some(access.options.mlp.unwrap_or(1.0)),
        _ => access.options.mlp,
    };
    let (time, computing) = if let Some(at_once) = waits {
        let nearest = known.levels.iter().find(|level| level.name == NEAREST);
        if nearest.is_none() {
            let why = "the latency of L1 is not in the record: all of work counts as computing";
            figure.remarks.push(why.to_owned());
        }
        let loads = lines::steps(access, known.line()) / at_once;
        let load = nearest.map_or(Estimate::exact(0.0), |level| level.latency.scaled(loads));
        let beside = |load: f64| (work - load).max(0.0);
        let computing = Estimate::new(beside(load.value), beside(load.hi), beside(load.lo));
        (sum([memory, computing]), computing)
    } else if let Some(pass) = own_pass(known, access) {
        let beyond = |pass: f64| (work - pass).max(0.0);
        let computing = Estimate::new(beyond(pass.value), beyond(pass.hi), beyond(pass.lo));
        let least = memory.lo.max(work);
        (Estimate::new(memory.value + computing.value, least, memory.hi + work), computing)
    } else {
        let ahead = known.ahead(access, &figure.pages).map_or(1.0, |ahead| ahead.value.min(1.0));
        let not_hidden = |memory: f64| (work - memory).max(work * (1.0 - ahead));
        let computing = Estimate::new(not_hidden(memory.value), not_hidden(memory.hi), work);
        let least = memory.lo + not_hidden(memory.lo);
        (Estimate::new(memory.value + computing.value, least, memory.hi + work), computing)
    };
    figure.time = time;
    // Where no level is known, the parts do not sum up to the time, and computing is none of them.
    if !figure.levels.is_empty() {
        let share = Estimate::exact(0.0);
        figure.levels.push(Served { level: COMPUTING.to_owned(), share, time: computing });
    }
    figure
}

/// What a line takes in the nearest cache in the record's own pass of this kind.
fn own_pass(known: &Known<'_>, access: &Access) -> Option<Estimate> {
    let in_order = access.kind == Kind::Seq;
    let operation = access.options.operation.unwrap_or(StreamKind::Read);
    in_order.then(|| known.line_time_of(operation, SMALL))?
}
