//! Where the relay of a switch byte lies. `crate::output::relays` says what relays are and places
//! them.

use crate::layout::thrown::ThrownTo;

/// Where the switch of an instruction leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relay {
    pub unit: u32,
    pub index: u32,
    /// The switch's first byte, from the begin of what stands before the instruction.
    pub switch: u32,
    /// Where the relay is, and where it leads, from the begin of the unit's twin.
    pub at: u64,
    pub to: u32,
    pub thrown: ThrownTo,
}

/// Of all relays, ascending, those of a unit.
pub(crate) fn of_unit(relays: &[Relay], unit: usize) -> &[Relay] {
    let first = relays.partition_point(|relay| (relay.unit as usize) < unit);
    let end = relays.partition_point(|relay| relay.unit as usize <= unit);
    &relays[first..end]
}
