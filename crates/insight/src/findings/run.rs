//! What is known of a run beside its samples, and how much of it the record lists.

use crate::code::made_code::MadeCode;
use crate::data::level::CacheSizes;
use crate::probes::latency::Timing;
use records::profile::{ProfiledProgram, Sampling};
use records::run::Refused;
use units::{Estimate, Quantity};

/// What is known of the run beside its samples.
#[derive(Clone, Debug)]
pub struct Run {
    pub program: ProfiledProgram,
    pub sampling: Sampling,
    pub elapsed: Quantity,
    pub cpu_time: Quantity,
    pub waited_for_cpu: Quantity,
    pub overhead: Quantity,
    pub overhead_beside: Quantity,
    pub refusals: Vec<Refused>,
    pub caches: CacheSizes,
    /// What a yield costs on this machine, if that is known.
    pub yield_cycles: Option<Estimate>,
    /// How probes are read, if there may be any.
    pub timing: Option<Timing>,
    /// Names of code that was made at run time.
    pub made_code: MadeCode,
}

/// Loads with fewer samples are not listed one by one: nothing can be said of them.
pub(crate) const LEAST_LISTED: u64 = 3;
/// No more loads, functions and objects are listed than this: a record is for people, too.
pub(crate) const MOST_LISTED: usize = 1000;
/// Functions with a smaller share of the samples are listed without their code.
pub(crate) const WORTH_ANNOTATING: f64 = 0.005;
