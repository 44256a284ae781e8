//! Loads and stores that the hardware sampled, with the code and the data that they belong to.

use super::access::in_shared;
use super::gathered::{By, object_at};
use super::sampled::{Names, Seen, Shared, shared};
use crate::code::cause::accesses;
use crate::code::source::Source;
use crate::data::objects::Objects;
use crate::samples::accesses::{AccessKind, KeptAccess};
use crate::samples::tally::Kept;
use records::profile::Level;
use std::collections::HashMap;
use units::{Avma, Svma};

/// Everything that was seen of accesses.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    seen: Vec<Seen>,
    by: Vec<By>,
    objects: Vec<(String, u64)>,
    numbers: HashMap<(String, u64), u32>,
}

/// The size of an access whose instruction is not known.
const USUAL_BYTES: u32 = 8;

impl Sampled {
    /// Takes in the accesses of one instruction, each with its part of all latency.
    pub(crate) fn add(
        &mut self,
        source: Option<&Source<'_>>,
        objects: &Objects<'_, '_>,
        address: Svma,
        all: &[(&KeptAccess, f64)],
    ) {
        let instruction = source.and_then(|source| source.code.instruction(address));
        let memory = instruction.map(|instruction| accesses(&instruction)).unwrap_or_default();
        let bytes = match &memory[..] {
            [one] => u32::try_from(one.memory_size().size()).unwrap_or(USUAL_BYTES).clamp(1, 64),
            _ => USUAL_BYTES,
        };
        let by = self.by.len() as u32;
        self.by.push(By::named(source, address));
        for (kept_access, weight) in all {
            let access = &kept_access.access;
            let Some(at) = access.address.filter(|at| at.0 != 0) else { continue };
            let kept = Kept::from(*kept_access);
            let object = self.object(objects, &kept, at);
            let is_store = access.kind == AccessKind::Store;
            self.seen.push(Seen {
                process: access.process,
                thread: access.thread,
                address: at.0,
                shared: in_shared(objects.tally, access.process, at.0),
                bytes,
                writes: is_store || access.kind == AccessKind::Both || access.is_locked,
                weight: *weight,
                level: if is_store { Level::Unresolved } else { access.level },
                by,
                object,
            });
        }
    }

    fn object(&mut self, objects: &Objects<'_, '_>, kept: &Kept, at: Avma) -> Option<u32> {
        let (object, start) = object_at(objects, kept, at)?;
        let key = (object.name, start);
        let number = self.objects.len() as u32;
        let known = *self.numbers.entry(key.clone()).or_insert(number);
        if known == number {
            self.objects.push(key);
        }
        Some(known)
    }

    /// What it shows; all the latency is worth this number of equal samples.
    pub(crate) fn found(&self, worth: f64) -> Shared {
        shared(&self.seen, &Names { by: &self.by, objects: &self.objects }, worth)
    }
}
