//! The store that the core waited for longest.
//!
//! A sample behind a store says that the core could not go on before it was taken: the queue of
//! stores that wait for their lines was full. Among instructions that take their time, stores have
//! samples as all others do: those to what the caches of the core hold wait for nothing.

use super::Waited;
use crate::code::source::Source;
use crate::data::data_address::{DataAddress, data_address};
use crate::data::level::{CacheSizes, judge};
use crate::data::object_stalls::{ObjectStalls, Reading};
use crate::data::objects::Objects;
use crate::findings::LEAST_SHARE;
use crate::sharing::By;
use records::profile::{Finding, FindingKind, Level};
use units::{Avma, Estimate, Quantity, Svma, Unit};

pub(super) struct Store {
    pub samples: u64,
    by: By,
    object: Option<String>,
}

impl Store {
    /// None where the core's own caches hold what it writes, or too little is known of that.
    pub(super) fn of_far(
        source: &Source<'_>,
        address: Svma,
        waited: &Waited,
        objects: &Objects<'_, '_>,
        caches: &CacheSizes,
    ) -> Option<Self> {
        let instruction = source.code.instruction(address)?;
        let written = waited.kept.iter().filter_map(|kept| {
            data_address(&instruction, &kept.sample.registers?, None).ok().map(DataAddress::address)
        });
        let judged = judge(&written.collect::<Vec<u64>>(), None, caches);
        let is_far = judged.beyond_l2 || matches!(judged.level, Level::L3 | Level::Dram);
        is_far.then(|| Self::of(source, address, waited, objects))
    }

    fn of(source: &Source<'_>, address: Svma, waited: &Waited, objects: &Objects<'_, '_>) -> Self {
        let instruction = source.code.instruction(address);
        let readings = waited.kept.iter().filter_map(|kept| {
            let at = data_address(instruction.as_ref()?, &kept.sample.registers?, None).ok()?;
            let found = objects.found(kept, Avma(at.address()));
            Some(Reading { thread: kept.sample.thread, found, weight: 1.0 })
        });
        let readings: Vec<Reading> = readings.collect();
        Self {
            samples: waited.samples,
            by: By::named(Some(source), address),
            object: ObjectStalls::default().count(&readings, 1.0).map(|object| object.name),
        }
    }

    /// What there is to say, where all stores to what is far take this share of the CPU time.
    pub(super) fn finding(&self, all: &Quantity) -> Option<Finding> {
        let share = all.estimate().filter(|share| share.value >= LEAST_SHARE)?;
        let data = self.object.as_ref().map_or_else(String::new, |name| format!(" to {name}"));
        Some(Finding {
            kind: FindingKind::Stores,
            object: self.object.clone(),
            function: self.by.function.clone(),
            file: self.by.file.clone(),
            line: self.by.line,
            says: format!(
                "the core waits until its stores{data} are taken: write each line whole and in sequence, less \
                 often, or to memory that is in the caches"
            ),
            gain: Quantity::modelled(Estimate { lo: 0.0, ..share }, Unit::Ratio),
        })
    }
}
