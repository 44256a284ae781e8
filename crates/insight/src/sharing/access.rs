//! One access to data, and which memory it is to: what several processes map shared is the same
//! memory to all of them, wherever each has mapped it.

use crate::data::footprint::LINE_BYTES;
use crate::samples::registers::Registers;
use crate::samples::tally::Tally;
use units::Avma;

/// Memory that addresses are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Memory {
    /// A process's own.
    Own(u32),
    /// A file's, or what processes have in common without one: the kernel keeps it as a file.
    Shared { device: (u32, u32), inode: u64 },
}

/// A byte that processes may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InShared {
    device: (u32, u32),
    inode: u64,
    /// Bytes from its beginning.
    offset: u64,
}

#[cfg(test)]
impl InShared {
    pub(super) fn of(device: (u32, u32), inode: u64, offset: u64) -> Self {
        Self { device, inode, offset }
    }
}

/// The byte at an address of a process, if it maps shared memory there.
pub(crate) fn in_shared(tally: &Tally, process: u32, address: u64) -> Option<InShared> {
    let mapping = tally.processes.get(&process)?.space.at(Avma(address)).filter(|it| it.is_shared)?;
    let mapped = tally.mapped(mapping.what);
    let offset = mapping.offset_of(Avma(address))?.0;
    let is_named = mapped.inode != 0 && mapped.area.is_none();
    is_named.then_some(InShared { device: mapped.device, inode: mapped.inode, offset })
}

/// The cache line of an address: the memory, and the number of the line in it.
pub(crate) fn line_of(process: u32, address: u64, shared: Option<InShared>) -> (Memory, u64) {
    match shared {
        None => (Memory::Own(process), address / LINE_BYTES),
        Some(InShared { device, inode, offset }) => (Memory::Shared { device, inode }, offset / LINE_BYTES),
    }
}

/// An access, or the samples of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Access {
    pub process: u32,
    pub thread: u32,
    pub time_ns: u64,
    pub address: u64,
    /// The same in memory that processes share.
    pub shared: Option<InShared>,
    pub bytes: u32,
    pub writes: bool,
    /// Samples of stall that it stands for.
    pub weight: f64,
    /// The number of its instruction, as its source counts them.
    pub by: u32,
    /// The number of the object that it lies in.
    pub object: Option<u32>,
}

impl Access {
    pub(crate) fn line(&self) -> (Memory, u64) {
        line_of(self.process, self.address, self.shared)
    }

    /// Of its first byte in its line: mappings begin with a page.
    pub(super) fn offset(&self) -> u32 {
        (self.address % LINE_BYTES) as u32
    }
}

/// A thread ran code of interest at this time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub process: u32,
    pub thread: u32,
    pub time_ns: u64,
    /// Samples that it stands for.
    pub weight: f64,
    pub registers: Option<Registers>,
}
