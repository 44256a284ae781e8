//! What a harvest does at one moment.

use super::counts::{Paces, ThreadPace};
use runtime_abi::control::trip;
use std::path::PathBuf;
use std::time::Duration;

/// What a scavenger did so far.
#[derive(Clone, Debug, Default)]
pub struct ScavengerNow {
    pub pid: i32,
    /// Its program runs (not: is being started, failed, ended).
    pub running: bool,
    pub threads: u32,
    pub aboard: u32,
    pub boardings: u64,
    /// Trips home by reason, see [`runtime_abi::control::trip`].
    pub trips: [u64; trip::COUNT],
    pub parked: Duration,
    pub aboard_time: Duration,
    /// Visits home while the primary lent the processor, and their time.
    pub visits: u64,
    pub visited: Duration,
    /// Turns that its contexts had aboard.
    pub turns: u64,
}

/// What a harvest does now.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Its process.
    pub primary: u32,
    /// The primary harvests; otherwise it runs alone, or has not come that far.
    pub harvesting: bool,
    /// Each thread of the primary that has an area, as far as there is space for them.
    pub threads: Vec<ThreadPace>,
    /// What was seen of the primary's pace and absences.
    pub paces: Paces,
    pub scavengers: Vec<ScavengerNow>,
    /// What the primary executed in its place: that runs alone.
    pub executed: Option<PathBuf>,
    /// Guests that were taken from threads that slept.
    pub stolen: u64,
    pub supervisor_rounds: u64,
}

impl Snapshot {
    /// Guests that run in stalls of the primary now. Guests that are left out for a moment, while
    /// the primary is timed alone, and scavengers at home are none.
    pub fn guests_running(&self) -> u32 {
        self.threads.iter().filter(|thread| thread.with_guests).map(|thread| thread.guests).sum()
    }

    /// Guests that came aboard and did not go home yet.
    pub fn aboard(&self) -> u32 {
        self.scavengers.iter().map(|scavenger| scavenger.aboard).sum()
    }
}
