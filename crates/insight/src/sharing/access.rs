//! One access to data.

use crate::samples::registers::Registers;

/// An access, or the samples of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Access {
    pub process: u32,
    pub thread: u32,
    pub time_ns: u64,
    pub address: u64,
    pub bytes: u32,
    pub writes: bool,
    /// Samples of stall that it stands for.
    pub weight: f64,
    /// The number of its instruction, as its source counts them.
    pub by: u32,
    /// The number of the object that it lies in.
    pub object: Option<u32>,
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
