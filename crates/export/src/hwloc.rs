//! A machine record as hwloc's XML: its topology, and what was measured as memory attributes.
//!
//! ```text
//! Latency, ReadLatency       nanoseconds of a random load, from a node's CPUs to a node's memory
//! Bandwidth, ReadBandwidth   MiB/s that is read, from the CPUs that read it together
//! ```
//!
//! Programs that ask hwloc for the best memory (`hwloc_memattr_get_best_target`) so get measured
//! figures where firmware has no HMAT table, which is nearly everywhere.

mod attributes;
mod objects;
mod set;
mod xml;

use records::machine::Machine;

/// Why a machine record cannot be written for hwloc.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTopology {
    #[error("it does not say which CPUs there are")]
    NoCpus,
    #[error("neither latency nor bandwidth of memory was measured")]
    NoAttributes,
}

/// The XML that `lstopo --input FILE` and `HWLOC_XMLFILE` take.
pub fn xml(machine: &Machine) -> Result<String, NoTopology> {
    let tree = objects::tree(&machine.host).ok_or(NoTopology::NoCpus)?;
    let attributes = attributes::of(machine);
    if attributes.iter().all(|attribute| attribute.values.is_empty()) {
        return Err(NoTopology::NoAttributes);
    }
    Ok(xml::text(&tree, &attributes))
}
