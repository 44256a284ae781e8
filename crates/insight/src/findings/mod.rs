//! The record of a run: the figures of all the other folders, and what to do about the waiting.
//!
//! ```text
//! weights   the cache sizes, latencies and costs of this machine
//! run       what is known of a run beside its samples
//! advice    what to do about the waiting, by its figures
//! record    the record, put together from those
//! clock/    the figures of a run whose samples a clock took
//! scripts   lines of scripts that wait
//! hardware  the figures of a run whose samples are loads that the hardware chose
//! system    whom the CPU time went to, where all processes were sampled
//! profile   all of it: from what was counted to the record
//! ```
//!
//! Whatever chooses what the record lists, and sums it up, belongs here.

pub(crate) mod advice;
pub(crate) mod clock;
pub(crate) mod hardware;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod scripts;
pub(crate) mod system;
pub(crate) mod weights;

/// Less than this share of the CPU time is no finding.
const LEAST_SHARE: f64 = 0.1;
