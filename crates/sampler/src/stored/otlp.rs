//! Profiles of OpenTelemetry, as its eBPF profiler sends them and its collector writes them to
//! files: `opentelemetry/proto/profiles/v1development`, plain, or with the length of each message
//! in front, or as JSON.
//! <https://github.com/open-telemetry/opentelemetry-proto>
//!
//! A message names all by its dictionary, which stands behind the samples. Addresses of native
//! frames are stated addresses, or lie in the mapping that is given for them; the leaf's is exact.

mod json;

use super::StoredError;
use super::decoded::{Decoded, Interned, Location, Module, Name, Texts, is_of_kernel};
use super::sample_types::{Chosen, ValueType, choose};
use super::tree::{Budget, Map, Tree};
use super::wire::{Begun, FILE, Field, Fields, Stream, damaged, numbers, value_type};
use std::collections::HashMap;
use std::io::BufRead;

/// A message: its samples, and the dictionary.
#[derive(Default)]
struct Raw {
    profiles: Vec<RawProfile>,
    /// The program that a resource names.
    program: Option<String>,
    texts: Texts,
    mappings: Vec<RawMapping>,
    locations: Vec<RawLocation>,
    functions: Vec<RawFunction>,
    attributes: Vec<RawAttribute>,
    /// Where each stack ends in the list of its locations.
    stack_ends: Vec<usize>,
    stack_locations: Vec<u32>,
}

#[derive(Default)]
struct RawProfile {
    kind: (u64, u64),
    period_kind: (u64, u64),
    period: u64,
    duration_ns: u64,
    /// Values by the numbers of stacks.
    sums: Map<u64, u64>,
}

#[derive(Clone, Default)]
struct RawMapping {
    start: u64,
    limit: u64,
    offset: u64,
    path: u64,
    attributes: Vec<u64>,
}

#[derive(Clone, Default)]
struct RawLocation {
    mapping: u64,
    address: u64,
    /// Numbers of functions.
    lines: Vec<u64>,
    attributes: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct RawFunction {
    name: u64,
    system_name: u64,
    path: u64,
}

#[derive(Clone, Default)]
struct RawAttribute {
    key: u64,
    value: String,
}

/// Lists within an entry of the dictionary: longer ones are no list of lines or attributes.
const LONGEST_LIST: usize = 4096;

/// Messages, one behind the other.
pub(super) fn decode<R: BufRead>(
    stream: &mut Stream<R>,
    budget: &mut Budget,
) -> Result<Decoded, StoredError> {
    let mut merged = Merged::default();
    match stream.first()? {
        Some(b'{') => json::each(stream, budget, |raw, budget| merged.take(&raw, budget))?,
        // The first byte of a length in front; no field begins so.
        Some(0) => {
            while let Some(length) = stream.length_in_front()? {
                let raw = message(stream, stream.at().saturating_add(length), budget)?;
                merged.take(&raw, budget)?;
            }
        }
        _ => merged.take(&message(stream, FILE, budget)?, budget)?,
    }
    merged.finish()
}

fn message<R: BufRead>(stream: &mut Stream<R>, end: u64, budget: &mut Budget) -> Result<Raw, StoredError> {
    let mut raw = Raw::default();
    let mut buffer = Vec::new();
    while let Some((number, value)) = stream.field(end)? {
        match (number, value) {
            (1, Begun::Bytes(bytes)) => resource(stream, stream.at() + bytes, &mut raw, &mut buffer, budget)?,
            (2, Begun::Bytes(bytes)) => {
                dictionary(stream, stream.at() + bytes, &mut raw, &mut buffer, budget)?;
            }
            (_, Begun::Bytes(bytes)) => stream.skip(bytes)?,
            (_, Begun::Number(_)) => {}
        }
    }
    Ok(raw)
}

/// `ResourceProfiles`: the resource, and `ScopeProfiles` with the profiles.
fn resource<R: BufRead>(
    stream: &mut Stream<R>,
    end: u64,
    raw: &mut Raw,
    buffer: &mut Vec<u8>,
    budget: &mut Budget,
) -> Result<(), StoredError> {
    while let Some((number, value)) = stream.field(end)? {
        match (number, value) {
            (1, Begun::Bytes(bytes)) => {
                let program = program_of(stream.message(bytes, buffer)?)?;
                raw.program = raw.program.take().or(program);
            }
            (2, Begun::Bytes(bytes)) => {
                let end = stream.at() + bytes;
                while let Some((number, value)) = stream.field(end)? {
                    match (number, value) {
                        (2, Begun::Bytes(bytes)) => {
                            let profile = profile(stream, stream.at() + bytes, buffer, budget)?;
                            budget.take(size_of::<RawProfile>())?;
                            raw.profiles.push(profile);
                        }
                        (_, Begun::Bytes(bytes)) => stream.skip(bytes)?,
                        (_, Begun::Number(_)) => {}
                    }
                }
            }
            (_, Begun::Bytes(bytes)) => stream.skip(bytes)?,
            (_, Begun::Number(_)) => {}
        }
    }
    Ok(())
}

/// What a resource calls its program.
fn program_of(resource: &[u8]) -> Result<Option<String>, StoredError> {
    let (mut program, mut service) = (None, None);
    for field in Fields::of(resource) {
        let (1, Field::Bytes(pair)) = field? else { continue };
        let (mut key, mut text) = (&[][..], None);
        for field in Fields::of(pair) {
            match field? {
                (1, Field::Bytes(bytes)) => key = bytes,
                (2, Field::Bytes(value)) => text = any_text(value)?,
                _ => {}
            }
        }
        match key {
            b"process.executable.path" | b"process.executable.name" => program = program.or(text),
            b"service.name" => service = service.or(text),
            _ => {}
        }
    }
    Ok(program.or(service))
}

/// The text of an `AnyValue`, if it is one.
fn any_text(value: &[u8]) -> Result<Option<String>, StoredError> {
    for field in Fields::of(value) {
        if let (1, Field::Bytes(text)) = field? {
            return Ok(Some(String::from_utf8_lossy(text).into_owned()));
        }
    }
    Ok(None)
}

fn profile<R: BufRead>(
    stream: &mut Stream<R>,
    end: u64,
    buffer: &mut Vec<u8>,
    budget: &mut Budget,
) -> Result<RawProfile, StoredError> {
    let mut found = RawProfile::default();
    while let Some((number, value)) = stream.field(end)? {
        match (number, value) {
            (1, Begun::Bytes(bytes)) => found.kind = value_type(stream.message(bytes, buffer)?)?,
            (2, Begun::Bytes(bytes)) => {
                let (stack, value) = sample(stream.message(bytes, buffer)?)?;
                found.add(stack, value, budget)?;
            }
            (4, Begun::Number(ns)) => found.duration_ns = ns,
            (5, Begun::Bytes(bytes)) => found.period_kind = value_type(stream.message(bytes, buffer)?)?,
            (6, Begun::Number(period)) => found.period = period,
            (_, Begun::Bytes(bytes)) => stream.skip(bytes)?,
            (_, Begun::Number(_)) => {}
        }
    }
    Ok(found)
}

impl RawProfile {
    fn add(&mut self, stack: u64, value: u64, budget: &mut Budget) -> Result<(), StoredError> {
        if !self.sums.contains_key(&stack) {
            budget.take(32)?;
        }
        let sum = self.sums.entry(stack).or_default();
        *sum = sum.saturating_add(value);
        Ok(())
    }
}

/// The number of a sample's stack, and its value: where it has none, each of its times is one.
fn sample(message: &[u8]) -> Result<(u64, u64), StoredError> {
    let (mut stack, mut sum, mut has_values, mut times) = (0, 0_u64, false, 0);
    for field in Fields::of(message) {
        match field? {
            (1, Field::Number(number)) => stack = number,
            (4, values) => {
                for value in numbers(values) {
                    sum = sum.saturating_add(positive(value?)?);
                    has_values = true;
                }
            }
            (5, Field::Bytes(words)) => times += words.len() as u64 / 8,
            (5, Field::Number(_)) => times += 1,
            _ => {}
        }
    }
    Ok((stack, if has_values { sum } else { times }))
}

fn positive(value: u64) -> Result<u64, StoredError> {
    if (value as i64) < 0 { Err(damaged("it has values below zero")) } else { Ok(value) }
}

fn dictionary<R: BufRead>(
    stream: &mut Stream<R>,
    end: u64,
    raw: &mut Raw,
    buffer: &mut Vec<u8>,
    budget: &mut Budget,
) -> Result<(), StoredError> {
    while let Some((number, value)) = stream.field(end)? {
        let Begun::Bytes(bytes) = value else { continue };
        if !matches!(number, 1 | 2 | 3 | 5 | 6 | 7) {
            stream.skip(bytes)?;
            continue;
        }
        let entry = stream.message(bytes, buffer)?;
        match number {
            1 => raw.add_mapping(mapping(entry)?, budget)?,
            2 => raw.add_location(location(entry)?, budget)?,
            3 => raw.add_function(function(entry)?, budget)?,
            5 => {
                raw.texts.push(entry, budget)?;
            }
            6 => raw.add_attribute(attribute(entry)?, budget)?,
            _ => {
                for field in Fields::of(entry) {
                    let (1, locations) = field? else { continue };
                    for location in numbers(locations) {
                        raw.push_frame(location?, budget)?;
                    }
                }
                raw.end_stack(budget)?;
            }
        }
    }
    Ok(())
}

fn mapping(entry: &[u8]) -> Result<RawMapping, StoredError> {
    let mut found = RawMapping::default();
    for field in Fields::of(entry) {
        match field? {
            (1, Field::Number(number)) => found.start = number,
            (2, Field::Number(number)) => found.limit = number,
            (3, Field::Number(number)) => found.offset = number,
            (4, Field::Number(number)) => found.path = number,
            (5, list) => extend(&mut found.attributes, list)?,
            _ => {}
        }
    }
    Ok(found)
}

fn location(entry: &[u8]) -> Result<RawLocation, StoredError> {
    let mut found = RawLocation::default();
    for field in Fields::of(entry) {
        match field? {
            (1, Field::Number(number)) => found.mapping = number,
            (2, Field::Number(number)) => found.address = number,
            (3, Field::Bytes(line)) if found.lines.len() < LONGEST_LIST => {
                let mut function = 0;
                for field in Fields::of(line) {
                    if let (1, Field::Number(number)) = field? {
                        function = number;
                    }
                }
                found.lines.push(function);
            }
            (4, list) => extend(&mut found.attributes, list)?,
            _ => {}
        }
    }
    Ok(found)
}

fn function(entry: &[u8]) -> Result<RawFunction, StoredError> {
    let mut found = RawFunction::default();
    for field in Fields::of(entry) {
        match field? {
            (1, Field::Number(number)) => found.name = number,
            (2, Field::Number(number)) => found.system_name = number,
            (3, Field::Number(number)) => found.path = number,
            _ => {}
        }
    }
    Ok(found)
}

fn attribute(entry: &[u8]) -> Result<RawAttribute, StoredError> {
    let mut found = RawAttribute::default();
    for field in Fields::of(entry) {
        match field? {
            (1, Field::Number(number)) => found.key = number,
            (2, Field::Bytes(value)) => found.value = any_text(value)?.unwrap_or_default(),
            _ => {}
        }
    }
    Ok(found)
}

fn extend(list: &mut Vec<u64>, field: Field<'_>) -> Result<(), StoredError> {
    for number in numbers(field) {
        list.push(number?);
        if list.len() > LONGEST_LIST {
            return Err(damaged("an entry of its dictionary has thousands of attributes"));
        }
    }
    Ok(())
}

impl Raw {
    fn add_mapping(&mut self, mapping: RawMapping, budget: &mut Budget) -> Result<(), StoredError> {
        budget.take(size_of::<RawMapping>() + mapping.attributes.len() * 8)?;
        self.mappings.push(mapping);
        Ok(())
    }

    fn add_location(&mut self, location: RawLocation, budget: &mut Budget) -> Result<(), StoredError> {
        let lists = location.lines.len() + location.attributes.len();
        budget.take(size_of::<RawLocation>() + lists * 8)?;
        self.locations.push(location);
        Ok(())
    }

    fn add_function(&mut self, function: RawFunction, budget: &mut Budget) -> Result<(), StoredError> {
        budget.take(size_of::<RawFunction>())?;
        self.functions.push(function);
        Ok(())
    }

    fn add_attribute(&mut self, attribute: RawAttribute, budget: &mut Budget) -> Result<(), StoredError> {
        budget.take(size_of::<RawAttribute>() + attribute.value.len())?;
        self.attributes.push(attribute);
        Ok(())
    }

    fn push_frame(&mut self, location: u64, budget: &mut Budget) -> Result<(), StoredError> {
        budget.take(4)?;
        self.stack_locations.push(u32::try_from(location).unwrap_or(u32::MAX));
        Ok(())
    }

    fn end_stack(&mut self, budget: &mut Budget) -> Result<(), StoredError> {
        budget.take(8)?;
        self.stack_ends.push(self.stack_locations.len());
        Ok(())
    }

    fn stack(&self, number: u64) -> Option<&[u32]> {
        let number = usize::try_from(number).ok()?;
        let end = *self.stack_ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.stack_ends[before]);
        Some(&self.stack_locations[start..end])
    }

    /// The value of an attribute of this name, among these.
    fn attribute(&self, among: &[u64], names: &[&str]) -> Option<&str> {
        let attributes =
            || among.iter().filter_map(|&number| self.attributes.get(usize::try_from(number).ok()?));
        let named = |name: &&str| attributes().find(|attribute| self.texts.get(attribute.key) == **name);
        let found = names.iter().find_map(named)?;
        Some(found.value.as_str()).filter(|value| !value.is_empty())
    }
}

/// All messages of a file.
#[derive(Default)]
struct Merged {
    texts: Interned,
    modules: Vec<Module>,
    module_numbers: HashMap<(String, Option<String>, u64, u64), u32>,
    locations: Vec<Location>,
    location_numbers: HashMap<(Option<u32>, u64, Vec<Name>), u32>,
    names: Vec<Name>,
    /// Of counts of samples, and of times.
    by_count: Summed,
    by_time: Summed,
    others: Vec<String>,
    program: Option<String>,
    duration_ns: u64,
    is_any: bool,
}

/// Samples of one kind of value.
#[derive(Default)]
struct Summed {
    tree: Tree,
    chosen: Option<Chosen>,
}

impl Merged {
    fn take(&mut self, raw: &Raw, budget: &mut Budget) -> Result<(), StoredError> {
        let mut placed: Vec<Option<u32>> = vec![None; raw.locations.len()];
        for profile in &raw.profiles {
            let text = |number: u64| raw.texts.get(number).into_owned();
            let value_type = |(kind, unit): (u64, u64)| ValueType { kind: text(kind), unit: text(unit) };
            let kind = value_type(profile.kind);
            self.is_any = true;
            let period_kind = value_type(profile.period_kind);
            let Ok(chosen) = choose(std::slice::from_ref(&kind), &period_kind, profile.period) else {
                let word = kind.word();
                if !self.others.contains(&word) && self.others.len() < 32 {
                    self.others.push(word);
                }
                continue;
            };
            self.duration_ns = self.duration_ns.saturating_add(profile.duration_ns);
            let mut sums: Vec<(u64, u64)> = profile.sums.iter().map(|(&stack, &sum)| (stack, sum)).collect();
            sums.sort_unstable();
            for (stack, sum) in sums {
                let Some(frames) = raw.stack(stack) else {
                    return Err(damaged(
                        "its samples name stacks that it does not list; it may be of a version of OTLP \
                         before stacks had a table of their own (1.9)",
                    ));
                };
                let mut locations = Vec::with_capacity(frames.len());
                for &frame in frames {
                    let Some(known) = placed.get_mut(frame as usize) else {
                        return Err(damaged("a stack in it names a location that it does not list"));
                    };
                    let number = match *known {
                        Some(number) => number,
                        None => *known.insert(self.location(raw, frame as usize, budget)?),
                    };
                    locations.push(number);
                }
                let into = if chosen.count.is_some() { &mut self.by_count } else { &mut self.by_time };
                into.tree.add(None, &locations, &[sum], budget)?;
                into.chosen.get_or_insert_with(|| chosen.clone());
            }
            let into = if chosen.count.is_some() { &mut self.by_count } else { &mut self.by_time };
            into.chosen.get_or_insert(chosen);
        }
        self.program = self.program.take().or_else(|| raw.program.clone());
        Ok(())
    }

    fn location(&mut self, raw: &Raw, number: usize, budget: &mut Budget) -> Result<u32, StoredError> {
        let found = &raw.locations[number];
        let mapping = usize::try_from(found.mapping).ok().filter(|at| *at > 0);
        let module = match mapping.and_then(|at| raw.mappings.get(at)) {
            Some(mapping) => Some(self.module(raw, mapping, budget)?),
            None => None,
        };
        let mut names = Vec::new();
        for &line in &found.lines {
            let function = usize::try_from(line).ok().and_then(|at| raw.functions.get(at));
            let function = function.copied().unwrap_or_default();
            let name = if function.name == 0 { function.system_name } else { function.name };
            names.push(Name {
                function: self.texts.number(raw.texts.get(name).as_bytes(), budget)?,
                file: self.texts.number(raw.texts.get(function.path).as_bytes(), budget)?,
            });
        }
        let key = (module, found.address, names);
        if let Some(&known) = self.location_numbers.get(&key) {
            return Ok(known);
        }
        let frame_type = raw.attribute(&found.attributes, &["profile.frame.type"]);
        let is_kernel = |module: u32| self.modules[module as usize].is_kernel();
        let in_kernel =
            frame_type == Some("kernel") || is_of_kernel(found.address) || module.is_some_and(is_kernel);
        // Addresses of other frames are numbers of lines or of instructions of an interpreter.
        let is_native = matches!(frame_type, None | Some("native" | "kernel" | "go" | "rust"));
        budget.take(size_of::<Location>() + 2 * key.2.len() * size_of::<Name>() + 64)?;
        let from = self.names.len() as u32;
        self.names.extend(&key.2);
        let number = self.locations.len() as u32;
        self.locations.push(Location {
            module,
            address: if is_native { found.address } else { 0 },
            names: (from, self.names.len() as u32),
            in_kernel,
        });
        self.location_numbers.insert(key, number);
        Ok(number)
    }

    fn module(&mut self, raw: &Raw, mapping: &RawMapping, budget: &mut Budget) -> Result<u32, StoredError> {
        const BUILD_IDS: [&str; 2] = ["process.executable.build_id.gnu", "process.executable.build_id.go"];
        let path = raw.texts.get(mapping.path).into_owned();
        let build_id = raw.attribute(&mapping.attributes, &BUILD_IDS).map(str::to_owned);
        let key = (path, build_id, mapping.start, mapping.offset);
        if let Some(&known) = self.module_numbers.get(&key) {
            return Ok(known);
        }
        let (path, build_id) = (key.0.clone(), key.1.clone());
        budget.take(size_of::<Module>() + 2 * (path.len() + 64))?;
        let number = self.modules.len() as u32;
        let (start, limit, offset) = (mapping.start, mapping.limit, mapping.offset);
        self.modules.push(Module { path, build_id, start, limit, offset });
        self.module_numbers.insert(key, number);
        Ok(number)
    }

    fn finish(self) -> Result<Decoded, StoredError> {
        // Both would be the same samples twice.
        let used = if self.by_count.chosen.is_some() { self.by_count } else { self.by_time };
        let Some(chosen) = used.chosen else {
            return Err(if self.is_any {
                StoredError::OtherSamples { present: self.others.join(", ") }
            } else {
                damaged("it holds no profiles of OpenTelemetry")
            });
        };
        Ok(Decoded {
            modules: self.modules,
            locations: self.locations,
            names: self.names,
            texts: self.texts.texts,
            tree: used.tree,
            chosen,
            duration_ns: Some(self.duration_ns).filter(|ns| *ns > 0),
            program: self.program,
            ..Decoded::default()
        })
    }
}
