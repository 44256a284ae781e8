//! `profile.proto` of pprof: what Go's runtime, parca, pyroscope, pprof-rs and most others write.
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>
//!
//! Fields may stand in any order, and the texts stand last in most files; so samples are summed up
//! by numbers, and named at the end.
//!
//! Addresses: of a caller, where it goes on, less one byte. The leaf's is the sampled instruction
//! itself: Go's runtime adds one to it and takes one off again, and others write what they saw.

use super::StoredError;
use super::decoded::{ById, Decoded, Location, Module, Name, Texts, is_of_kernel};
use super::sample_types::{ValueType, choose};
use super::tree::{Budget, Tree};
use super::wire::{Begun, FILE, Field, Fields, Stream, damaged, numbers, value_type};
use std::io::BufRead;

/// Numbers of fields, by message.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) mod sample {
        pub(crate) const LOCATION_ID: u64 = 1;
        pub(crate) const VALUE: u64 = 2;
    }
}

/// A mapping, by numbers of texts.
#[derive(Clone, Copy, Debug, Default)]
struct RawMapping {
    start: u64,
    limit: u64,
    offset: u64,
    filename: u64,
    build_id: u64,
    /// In the file's order: the first one is the program.
    order: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct RawFunction {
    name: u64,
    system_name: u64,
    filename: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RawLocation {
    mapping: u64,
    address: u64,
    /// Where the ids of its functions lie in the list of all.
    lines: (u32, u32),
}

#[derive(Default)]
struct Reading {
    types: Vec<(u64, u64)>,
    period_type: (u64, u64),
    period: u64,
    duration: u64,
    mappings: ById<RawMapping>,
    functions: ById<RawFunction>,
    locations: ById<RawLocation>,
    /// Ids of functions.
    lines: Vec<u64>,
    texts: Texts,
    tree: Tree,
    /// Of the sample that is read.
    ids: Vec<u8>,
    stack: Vec<u32>,
    values: Vec<u64>,
}

/// Value types of a file: more are no profile.
const MOST_TYPES: usize = 32;

pub(super) fn decode<R: BufRead>(
    stream: &mut Stream<R>,
    budget: &mut Budget,
) -> Result<Decoded, StoredError> {
    let mut reading = Reading::default();
    let mut buffer = Vec::new();
    while let Some((number, value)) = stream.field(FILE)? {
        match (number, value) {
            (field::SAMPLE, Begun::Bytes(bytes)) => {
                reading.sample(stream.message(bytes, &mut buffer)?, budget)?;
            }
            (field::STRING_TABLE, Begun::Bytes(bytes)) => {
                reading.texts.push(stream.message(bytes, &mut buffer)?, budget)?;
            }
            (field::LOCATION, Begun::Bytes(bytes)) => {
                reading.location(stream.message(bytes, &mut buffer)?, budget)?;
            }
            (field::FUNCTION, Begun::Bytes(bytes)) => {
                reading.function(stream.message(bytes, &mut buffer)?, budget)?;
            }
            (field::MAPPING, Begun::Bytes(bytes)) => {
                reading.mapping(stream.message(bytes, &mut buffer)?, budget)?;
            }
            (field::SAMPLE_TYPE, Begun::Bytes(bytes)) if reading.types.len() < MOST_TYPES => {
                reading.types.push(value_type(stream.message(bytes, &mut buffer)?)?);
            }
            (field::PERIOD_TYPE, Begun::Bytes(bytes)) => {
                reading.period_type = value_type(stream.message(bytes, &mut buffer)?)?;
            }
            (field::PERIOD, Begun::Number(value)) => reading.period = value,
            (field::DURATION_NANOS, Begun::Number(value)) => reading.duration = value,
            (_, Begun::Bytes(bytes)) => stream.skip(bytes)?,
            (_, Begun::Number(_)) => {}
        }
    }
    reading.finish(budget)
}

impl Reading {
    fn sample(&mut self, message: &[u8], budget: &mut Budget) -> Result<(), StoredError> {
        self.ids.clear();
        self.values.clear();
        for field in Fields::of(message) {
            match field? {
                (field::sample::LOCATION_ID, Field::Bytes(bytes)) => self.ids.extend_from_slice(bytes),
                (field::sample::LOCATION_ID, Field::Number(mut id)) => {
                    // As if it were one of a packed list.
                    while id >= 0x80 {
                        self.ids.push(id as u8 | 0x80);
                        id >>= 7;
                    }
                    self.ids.push(id as u8);
                }
                (field::sample::VALUE, values) => {
                    for value in numbers(values) {
                        self.values.push(value?);
                    }
                }
                _ => {}
            }
        }
        let hash = twox_hash::XxHash3_128::oneshot(&self.ids);
        if self.tree.add_known(hash, &self.values)? {
            return Ok(());
        }
        self.stack.clear();
        for id in numbers(Field::Bytes(&self.ids)) {
            self.stack.push(self.locations.number(id?, budget)?);
        }
        self.tree.add(Some(hash), &self.stack, &self.values, budget)
    }

    fn mapping(&mut self, message: &[u8], budget: &mut Budget) -> Result<(), StoredError> {
        let (mut id, mut found) = (0, RawMapping { order: self.mappings.all.len(), ..RawMapping::default() });
        for field in Fields::of(message) {
            match field? {
                (1, Field::Number(number)) => id = number,
                (2, Field::Number(number)) => found.start = number,
                (3, Field::Number(number)) => found.limit = number,
                (4, Field::Number(number)) => found.offset = number,
                (5, Field::Number(number)) => found.filename = number,
                (6, Field::Number(number)) => found.build_id = number,
                _ => {}
            }
        }
        *self.mappings.entry(id, budget)? = found;
        Ok(())
    }

    fn function(&mut self, message: &[u8], budget: &mut Budget) -> Result<(), StoredError> {
        let (mut id, mut found) = (0, RawFunction::default());
        for field in Fields::of(message) {
            match field? {
                (1, Field::Number(number)) => id = number,
                (2, Field::Number(number)) => found.name = number,
                (3, Field::Number(number)) => found.system_name = number,
                (4, Field::Number(number)) => found.filename = number,
                _ => {}
            }
        }
        *self.functions.entry(id, budget)? = found;
        Ok(())
    }

    fn location(&mut self, message: &[u8], budget: &mut Budget) -> Result<(), StoredError> {
        let (mut id, mut found) = (0, RawLocation::default());
        found.lines.0 = self.lines.len() as u32;
        for field in Fields::of(message) {
            match field? {
                (1, Field::Number(number)) => id = number,
                (2, Field::Number(number)) => found.mapping = number,
                (3, Field::Number(number)) => found.address = number,
                (4, Field::Bytes(line)) => {
                    let mut function = 0;
                    for field in Fields::of(line) {
                        if let (1, Field::Number(number)) = field? {
                            function = number;
                        }
                    }
                    budget.take(size_of::<u64>())?;
                    self.lines.push(function);
                }
                _ => {}
            }
        }
        found.lines.1 = self.lines.len() as u32;
        *self.locations.entry(id, budget)? = found;
        Ok(())
    }

    fn finish(self, budget: &mut Budget) -> Result<Decoded, StoredError> {
        if self.types.is_empty() {
            return Err(damaged("it is no profile of pprof: it does not say what its samples are"));
        }
        if self.tree.has_negative {
            let why = "it has values below zero, as the difference of two profiles does";
            return Err(StoredError::Damaged { why: why.to_owned() });
        }
        let text = |number: u64| self.texts.get(number).into_owned();
        let value_type = |(kind, unit): (u64, u64)| ValueType { kind: text(kind), unit: text(unit) };
        let types: Vec<ValueType> = self.types.iter().copied().map(value_type).collect();
        let chosen = choose(&types, &value_type(self.period_type), self.period)?;
        if self.tree.columns() != 0 && self.tree.columns() != types.len() {
            let why = format!("its samples have {} values of {} types", self.tree.columns(), types.len());
            return Err(StoredError::Damaged { why });
        }
        let module = |raw: &RawMapping| Module {
            path: text(raw.filename),
            build_id: Some(text(raw.build_id)).filter(|id| !id.is_empty()),
            start: raw.start,
            limit: raw.limit,
            offset: raw.offset,
        };
        let modules: Vec<Module> = self.mappings.all.iter().map(module).collect();
        let first = self.mappings.all.iter().zip(&modules).filter(|(_, module)| module.is_file());
        let program = first.min_by_key(|(raw, _)| raw.order).map(|(_, module)| module.path.clone());
        budget.take(self.lines.len() * size_of::<Name>())?;
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let name = |id: &u64| {
            let raw = self.functions.get(*id).copied().unwrap_or_default();
            let function = if raw.name == 0 { raw.system_name } else { raw.name };
            Name { function: short(function), file: short(raw.filename) }
        };
        let names = self.lines.iter().map(name).collect();
        let location = |raw: &RawLocation| {
            let module = self.mappings.known(raw.mapping).filter(|_| raw.mapping != 0);
            let in_kernel = is_of_kernel(raw.address)
                || module.is_some_and(|module| modules[module as usize].is_kernel());
            Location { module, address: raw.address, names: raw.lines, in_kernel }
        };
        Ok(Decoded {
            locations: self.locations.all.iter().map(location).collect(),
            modules,
            names,
            tree: self.tree,
            chosen,
            duration_ns: Some(self.duration).filter(|ns| *ns > 0),
            program,
            texts: self.texts,
            ..Decoded::default()
        })
    }
}
