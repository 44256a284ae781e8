//! `profile.proto` of pprof, compressed by gzip.
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>
//!
//! Samples have their number, their CPU time (`cpu`, as everywhere in pprof) and the part of it in
//! which the core waited for loads (`stall`).
//!
//! Addresses are stated addresses. A mapping that begins at 0 and spans everything says so to
//! pprof, which then finds source and instructions in the file without taking a bias off.

use crate::Weight;
use crate::clean::clean;
use crate::numbered::Numbered;
use crate::protobuf::Message;
use crate::stacks::{Stacks, command, file_name, name, times_ns};
use flate2::{Compression, GzBuilder};
use records::Document;
use records::profile::Profile;
use std::io::Write as _;

/// Numbers of fields, by message.
mod field {
    pub(super) mod profile {
        pub(crate) const SAMPLE_TYPE: u64 = 1;
        pub(crate) const SAMPLE: u64 = 2;
        pub(crate) const MAPPING: u64 = 3;
        pub(crate) const LOCATION: u64 = 4;
        pub(crate) const FUNCTION: u64 = 5;
        pub(crate) const STRING_TABLE: u64 = 6;
        pub(crate) const TIME_NANOS: u64 = 9;
        pub(crate) const DURATION_NANOS: u64 = 10;
        pub(crate) const PERIOD_TYPE: u64 = 11;
        pub(crate) const PERIOD: u64 = 12;
        pub(crate) const COMMENT: u64 = 13;
        pub(crate) const DEFAULT_SAMPLE_TYPE: u64 = 14;
    }
    pub(super) mod value_type {
        pub(crate) const TYPE: u64 = 1;
        pub(crate) const UNIT: u64 = 2;
    }
    pub(super) mod sample {
        pub(crate) const LOCATION_ID: u64 = 1;
        pub(crate) const VALUE: u64 = 2;
    }
    pub(super) mod mapping {
        pub(crate) const ID: u64 = 1;
        pub(crate) const MEMORY_LIMIT: u64 = 3;
        pub(crate) const FILENAME: u64 = 5;
        pub(crate) const BUILD_ID: u64 = 6;
        pub(crate) const HAS_FUNCTIONS: u64 = 7;
        pub(crate) const HAS_FILENAMES: u64 = 8;
        pub(crate) const HAS_LINE_NUMBERS: u64 = 9;
        pub(crate) const HAS_INLINE_FRAMES: u64 = 10;
    }
    pub(super) mod location {
        pub(crate) const ID: u64 = 1;
        pub(crate) const MAPPING_ID: u64 = 2;
        pub(crate) const ADDRESS: u64 = 3;
        pub(crate) const LINE: u64 = 4;
    }
    pub(super) mod line {
        pub(crate) const FUNCTION_ID: u64 = 1;
        pub(crate) const LINE: u64 = 2;
    }
    pub(super) mod function {
        pub(crate) const ID: u64 = 1;
        pub(crate) const NAME: u64 = 2;
        pub(crate) const SYSTEM_NAME: u64 = 3;
        pub(crate) const FILENAME: u64 = 4;
    }
}

pub(crate) fn gzipped(document: &Document<Profile>, stacks: &Stacks<'_>, weight: Weight) -> Vec<u8> {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::default());
    gzip.write_all(&bytes(document, stacks, weight)).expect("memory takes all");
    gzip.finish().expect("memory takes all")
}

/// What the compressed file holds.
pub(crate) fn bytes(document: &Document<Profile>, stacks: &Stacks<'_>, weight: Weight) -> Vec<u8> {
    use field::profile as at;
    let profile = &document.body;
    let mut building = Building::new(profile, stacks);
    let mut message = Message::default();
    let [cpu, stall] = [Weight::Time, Weight::Stall].map(Weight::word);
    for (what, unit) in [("samples", "count"), (cpu, "nanoseconds"), (stall, "nanoseconds")] {
        message.message(at::SAMPLE_TYPE, &building.value_type(what, unit));
    }
    for (node, samples) in stacks.sampled(Weight::Time) {
        message.message(at::SAMPLE, &building.sample(node, samples));
    }
    building.mappings(&mut message);
    building.locations(&mut message);
    building.functions(&mut message);
    let [began_ns, elapsed_ns] = times_ns(document);
    message.number(at::TIME_NANOS, began_ns);
    message.number(at::DURATION_NANOS, elapsed_ns);
    message.message(at::PERIOD_TYPE, &building.value_type(cpu, "nanoseconds"));
    message.number(at::PERIOD, stacks.ns_a_sample().round() as u64);
    let comments = [format!("gleaner {}", clean(&document.header.gleaner)), command(profile)];
    let comments = comments.map(|comment| building.text(&comment));
    message.numbers(at::COMMENT, comments);
    let shown_first = building.text(weight.word());
    message.number(at::DEFAULT_SAMPLE_TYPE, shown_first);
    for text in &building.texts.in_order {
        message.text(at::STRING_TABLE, text);
    }
    message.finish()
}

struct Building<'s> {
    stacks: &'s Stacks<'s>,
    profile: &'s Profile,
    texts: Numbered<String>,
    /// By name, module and source file.
    functions: Numbered<(String, Option<&'s str>, Option<&'s str>)>,
    mappings: Numbered<&'s str>,
    /// Frames of one place: those that are inlined there, and the function that holds them.
    locations: Numbered<Vec<usize>>,
}

impl<'s> Building<'s> {
    fn new(profile: &'s Profile, stacks: &'s Stacks<'s>) -> Self {
        let mut texts = Numbered::new();
        texts.number(String::new()); // the first one is the empty text, always
        let mut mappings = Numbered::new();
        // The first one is the program's own file.
        let program = profile.program.command.first().map(|program| file_name(program));
        let modules = || stacks.frames().iter().filter_map(|frame| frame.module.as_deref());
        if let Some(own) = modules().find(|module| Some(file_name(module)) == program) {
            mappings.number(own);
        }
        Self { stacks, profile, texts, functions: Numbered::new(), mappings, locations: Numbered::new() }
    }

    fn text(&mut self, text: &str) -> u64 {
        self.texts.number(text.to_owned())
    }

    fn value_type(&mut self, what: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(field::value_type::TYPE, self.text(what));
        message.number(field::value_type::UNIT, self.text(unit));
        message
    }

    fn sample(&mut self, node: usize, samples: u64) -> Message {
        let places = self.stacks.places(node).into_iter();
        let locations: Vec<u64> = places.map(|place| self.locations.number(place) + 1).collect();
        let stall = self.stacks.nodes()[node].stall;
        let mut message = Message::default();
        message.numbers(field::sample::LOCATION_ID, locations);
        let values = [samples, self.stacks.ns(samples), self.stacks.ns(stall)];
        message.numbers(field::sample::VALUE, values);
        message
    }

    fn locations(&mut self, profile: &mut Message) {
        for (index, place) in self.locations.in_order.iter().enumerate() {
            let mut message = Message::default();
            message.number(field::location::ID, index as u64 + 1);
            let frames = || place.iter().map(|&frame| &self.stacks.frames()[frame]);
            let module = frames().find_map(|frame| frame.module.as_deref());
            if let Some(module) = module {
                message.number(field::location::MAPPING_ID, self.mappings.number(module) + 1);
            }
            message.number(field::location::ADDRESS, frames().find_map(|frame| frame.address).unwrap_or(0));
            for frame in frames() {
                let function = (name(frame), frame.module.as_deref(), frame.file.as_deref());
                let mut line = Message::default();
                line.number(field::line::FUNCTION_ID, self.functions.number(function) + 1);
                line.number(field::line::LINE, frame.line.unwrap_or(0).into());
                message.message(field::location::LINE, &line);
            }
            profile.message(field::profile::LOCATION, &message);
        }
    }

    /// Before the locations, which refer to them in the same order.
    fn mappings(&mut self, profile: &mut Message) {
        for frame in self.stacks.frames() {
            if let Some(module) = &frame.module {
                self.mappings.number(module);
            }
        }
        for (index, module) in self.mappings.in_order.clone().into_iter().enumerate() {
            use field::mapping as at;
            let frames = || {
                let frames = self.stacks.frames().iter();
                frames.filter(move |frame| frame.module.as_deref() == Some(module))
            };
            let has_files = frames().any(|frame| frame.file.is_some());
            let has_lines = frames().any(|frame| frame.line.is_some());
            let load = self.profile.loads.iter().find(|load| load.module == module);
            let build_id = load.and_then(|load| load.build_id.as_deref()).unwrap_or("");
            let mut message = Message::default();
            message.number(at::ID, index as u64 + 1);
            message.number(at::MEMORY_LIMIT, u64::MAX);
            message.number(at::FILENAME, self.text(&clean(module)));
            message.number(at::BUILD_ID, self.text(build_id));
            message.number(at::HAS_FUNCTIONS, 1);
            message.number(at::HAS_FILENAMES, has_files.into());
            message.number(at::HAS_LINE_NUMBERS, has_lines.into());
            message.number(at::HAS_INLINE_FRAMES, has_lines.into());
            profile.message(field::profile::MAPPING, &message);
        }
    }

    fn functions(&mut self, profile: &mut Message) {
        for (index, (name, _, file)) in self.functions.in_order.clone().into_iter().enumerate() {
            use field::function as at;
            let mut message = Message::default();
            message.number(at::ID, index as u64 + 1);
            message.number(at::NAME, self.text(&name));
            message.number(at::SYSTEM_NAME, self.text(&name));
            message.number(at::FILENAME, self.text(&clean(file.unwrap_or(""))));
            profile.message(field::profile::FUNCTION, &message);
        }
    }
}
