//! The clocks: what time is counted in here.

use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// Rate of the time stamp counter.
    pub tsc: Quantity,
    /// The rate that CPUID or the hypervisor states.
    pub tsc_claimed: Quantity,
    /// The step in which the counter moves.
    pub granularity: Quantity,
    /// What reading the counter, with its fences, costs.
    pub read_cost: Quantity,
    /// Core clock while busy.
    pub core: Quantity,
    /// Core cycles in one tick.
    pub cycles_per_tick: Quantity,
    /// The same ratio from a chain of multiplications, whose latency is three cycles on every core
    /// of the last decade: a check on the adds.
    pub cycles_per_tick_by_muls: Quantity,
    /// How much the core clock moved while it was watched: (highest - lowest) / median.
    pub core_wander: Quantity,
    /// How far the counter drifts from the kernel's raw clock between the first and the second half
    /// of the watch.
    pub drift: Quantity,
}
