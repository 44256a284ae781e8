//! What the control page tells of threads that are each other's guests.

use super::page::Page;
use super::snapshot::ScavengerNow;
use runtime_abi::control::{Control, THREADS, ThreadRow};
use std::mem::offset_of;
use std::time::Duration;

/// What one thread got.
#[derive(Clone, Debug, Default)]
pub struct ThreadNow {
    pub tid: i32,
    pub boardings: u64,
    pub hosted: u64,
    pub parked: Duration,
    pub aboard: Duration,
}

#[derive(Clone, Debug)]
pub struct SiblingsOutcome {
    /// All of them together.
    pub figures: ScavengerNow,
    /// How many were seen, of which the first are told one by one.
    pub threads: u64,
    pub each: Vec<ThreadNow>,
}

pub(super) fn outcome(page: &Page, figures: ScavengerNow) -> SiblingsOutcome {
    let threads = page.u64(offset_of!(Control, threads));
    let rows = usize::try_from(threads).map_or(THREADS, |threads| threads.min(THREADS));
    SiblingsOutcome { figures, threads, each: (0..rows).map(|row| thread(page, row)).collect() }
}

fn thread(page: &Page, row: usize) -> ThreadNow {
    let row = offset_of!(Control, thread) + row * size_of::<ThreadRow>();
    let u64 = |offset| page.u64(row + offset);
    ThreadNow {
        tid: page.u32(row + offset_of!(ThreadRow, tid)) as i32,
        boardings: u64(offset_of!(ThreadRow, boardings)),
        hosted: u64(offset_of!(ThreadRow, hosted)),
        parked: Duration::from_nanos(u64(offset_of!(ThreadRow, parked_ns))),
        aboard: Duration::from_nanos(u64(offset_of!(ThreadRow, aboard_ns))),
    }
}
