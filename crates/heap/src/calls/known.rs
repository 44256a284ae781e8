//! The steps that are known: an address is looked up in the tables once.

use super::step::{NONE, Step};
use super::{objects, rows, tables};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

const SLOTS: usize = 4 << 10;

/// The steps of addresses that were asked for. Threads write them at the same time: what is read of
/// two that were written into one place does not fit together, and counts as unknown.
pub(super) struct Steps {
    slots: [(AtomicU64, AtomicU64); SLOTS],
}

pub(super) static KNOWN: Steps = Steps { slots: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; SLOTS] };

impl Steps {
    /// The step from an address; none where it is not known how to go on.
    pub(super) fn step(&self, address: u64) -> Option<Step> {
        let (mixed, word) = self.slot(address);
        let known = word.load(Relaxed);
        if known != 0 && mixed.load(Relaxed) ^ known == address {
            return Step::unpacked(known);
        }
        let found = objects::find(address)
            .and_then(|object| tables::entry(&object, address))
            .and_then(|entry| rows::step(&entry, address));
        self.keep(address, found);
        found
    }

    #[cfg(test)]
    pub(super) fn learn(&self, address: u64, step: Step) {
        self.keep(address, Some(step));
    }

    fn keep(&self, address: u64, step: Option<Step>) {
        let packed = step.and_then(Step::packed).unwrap_or(NONE);
        let (mixed, word) = self.slot(address);
        word.store(packed, Relaxed);
        mixed.store(packed ^ address, Relaxed);
    }

    fn slot(&self, address: u64) -> &(AtomicU64, AtomicU64) {
        let hash = (address as u32).wrapping_mul(0x9e37_79b1) >> 20;
        &self.slots[hash as usize % SLOTS]
    }
}
