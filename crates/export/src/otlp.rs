//! Profiles of OpenTelemetry (`opentelemetry/proto/profiles/v1development`): what its collector
//! takes at `/v1development/profiles`, and what backends for continuous profiles read.
//! <https://github.com/open-telemetry/opentelemetry-proto>
//!
//! A profile holds values of one type, so there are two: CPU time, and the part of it in which the
//! core waited for loads. Both name all by one dictionary, in whose tables the first entry stands
//! for none. Addresses are stated addresses; a mapping spans everything.

use crate::Weight;
use crate::clean::clean;
use crate::numbered::Numbered;
use crate::protobuf::Message;
use crate::stacks::{Stacks, command, file_name, name, times_ns};
use records::Document;
use records::profile::Profile;
use sha2::{Digest, Sha256};

/// Numbers of fields, by message.
mod field {
    pub(super) mod data {
        pub(crate) const RESOURCE_PROFILES: u64 = 1;
        pub(crate) const DICTIONARY: u64 = 2;
    }
    /// Of a resource's profiles and of a scope's alike.
    pub(super) mod group {
        pub(crate) const OWNER: u64 = 1;
        pub(crate) const MEMBERS: u64 = 2;
    }
    pub(super) mod profile {
        pub(crate) const SAMPLE_TYPE: u64 = 1;
        pub(crate) const SAMPLES: u64 = 2;
        pub(crate) const TIME_UNIX_NANO: u64 = 3;
        pub(crate) const DURATION_NANO: u64 = 4;
        pub(crate) const PERIOD_TYPE: u64 = 5;
        pub(crate) const PERIOD: u64 = 6;
        pub(crate) const PROFILE_ID: u64 = 7;
    }
    pub(super) mod sample {
        pub(crate) const STACK_INDEX: u64 = 1;
        pub(crate) const VALUES: u64 = 4;
    }
    pub(super) mod dictionary {
        pub(crate) const MAPPINGS: u64 = 1;
        pub(crate) const LOCATIONS: u64 = 2;
        pub(crate) const FUNCTIONS: u64 = 3;
        pub(crate) const LINKS: u64 = 4;
        pub(crate) const STRINGS: u64 = 5;
        pub(crate) const ATTRIBUTES: u64 = 6;
        pub(crate) const STACKS: u64 = 7;
    }
    pub(super) mod mapping {
        pub(crate) const MEMORY_LIMIT: u64 = 2;
        pub(crate) const FILENAME: u64 = 4;
        pub(crate) const ATTRIBUTES: u64 = 5;
    }
    pub(super) mod location {
        pub(crate) const MAPPING: u64 = 1;
        pub(crate) const ADDRESS: u64 = 2;
        pub(crate) const LINES: u64 = 3;
        pub(crate) const ATTRIBUTES: u64 = 4;
    }
    pub(super) mod function {
        pub(crate) const NAME: u64 = 1;
        pub(crate) const SYSTEM_NAME: u64 = 2;
        pub(crate) const FILENAME: u64 = 3;
    }
}

/// What the conventions of OpenTelemetry call a build ID, and the kind of a frame.
const BUILD_ID: &str = "process.executable.build_id.gnu";
const FRAME_TYPE: &str = "profile.frame.type";

/// The bytes of a `ProfilesData`.
pub(crate) fn bytes(document: &Document<Profile>, stacks: &Stacks<'_>, weight: Weight) -> Vec<u8> {
    let profile = &document.body;
    let mut building = Building::new(profile, stacks);
    let weights = match weight {
        Weight::Time => [Weight::Time, Weight::Stall],
        Weight::Stall => [Weight::Stall, Weight::Time],
    };
    let mut scope = Message::default();
    let mut about = Message::default();
    about.text(1, "gleaner");
    about.text(2, &clean(&document.header.gleaner));
    scope.message(field::group::OWNER, &about);
    for weight in weights {
        scope.message(field::group::MEMBERS, &building.profile(document, weight));
    }
    let mut resource = Message::default();
    for (key, value) in [
        ("service.name", "gleaner".to_owned()),
        ("process.command_line", command(profile)),
        ("process.executable.name", program(profile)),
    ] {
        if !value.is_empty() {
            resource.message(1, &pair(key, &value));
        }
    }
    let mut of_resource = Message::default();
    of_resource.message(field::group::OWNER, &resource);
    of_resource.message(field::group::MEMBERS, &scope);
    let mut data = Message::default();
    data.message(field::data::RESOURCE_PROFILES, &of_resource);
    data.message(field::data::DICTIONARY, &building.dictionary());
    data.finish()
}

fn program(profile: &Profile) -> String {
    profile.program.command.first().map_or(String::new(), |program| clean(file_name(program)))
}

/// A `KeyValue` with a text.
fn pair(key: &str, value: &str) -> Message {
    let mut pair = Message::default();
    pair.text(1, key);
    pair.message(2, &any_text(value));
    pair
}

fn any_text(text: &str) -> Message {
    let mut value = Message::default();
    value.text(1, text);
    value
}

/// Entries of the dictionary by their numbers, which begin at 1: 0 stands for none.
struct Building<'s> {
    stacks: &'s Stacks<'s>,
    profile: &'s Profile,
    texts: Numbered<String>,
    attributes: Numbered<(&'static str, String)>,
    mappings: Numbered<&'s str>,
    /// By name and source file.
    functions: Numbered<(String, Option<&'s str>)>,
    /// Frames of one place: those that are inlined there, and the function that holds them.
    locations: Numbered<Vec<usize>>,
    /// By locations.
    found: Numbered<Vec<u64>>,
}

impl<'s> Building<'s> {
    fn new(profile: &'s Profile, stacks: &'s Stacks<'s>) -> Self {
        let mut texts = Numbered::new();
        texts.number(String::new());
        Self {
            stacks,
            profile,
            texts,
            attributes: Numbered::new(),
            mappings: Numbered::new(),
            functions: Numbered::new(),
            locations: Numbered::new(),
            found: Numbered::new(),
        }
    }

    fn text(&mut self, text: &str) -> u64 {
        self.texts.number(text.to_owned())
    }

    fn attribute(&mut self, key: &'static str, value: &str) -> u64 {
        self.attributes.number((key, value.to_owned())) + 1
    }

    fn value_type(&mut self, what: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.text(what));
        message.number(2, self.text("nanoseconds"));
        message
    }

    fn profile(&mut self, document: &Document<Profile>, weight: Weight) -> Message {
        use field::profile as at;
        let what = weight.word();
        let mut message = Message::default();
        message.message(at::SAMPLE_TYPE, &self.value_type(what));
        for (node, samples) in self.stacks.sampled(weight) {
            let mut sample = Message::default();
            sample.number(field::sample::STACK_INDEX, self.stack(node));
            sample.numbers(field::sample::VALUES, [self.stacks.ns(samples)]);
            message.message(at::SAMPLES, &sample);
        }
        let [began_ns, elapsed_ns] = times_ns(document);
        message.fixed64(at::TIME_UNIX_NANO, began_ns);
        message.number(at::DURATION_NANO, elapsed_ns);
        message.message(at::PERIOD_TYPE, &self.value_type(Weight::Time.word()));
        message.number(at::PERIOD, self.stacks.ns_a_sample().round() as u64);
        message.bytes(at::PROFILE_ID, &id(document, what));
        message
    }

    /// The number of a node's stack.
    fn stack(&mut self, node: usize) -> u64 {
        let places = self.stacks.places(node).into_iter();
        let locations: Vec<u64> = places.map(|place| self.locations.number(place) + 1).collect();
        self.found.number(locations) + 1
    }

    fn dictionary(mut self) -> Message {
        use field::dictionary as at;
        let mut message = Message::default();
        for table in [at::MAPPINGS, at::LOCATIONS, at::FUNCTIONS, at::LINKS, at::ATTRIBUTES, at::STACKS] {
            message.message(table, &Message::default());
        }
        for place in std::mem::replace(&mut self.locations, Numbered::new()).in_order {
            message.message(at::LOCATIONS, &self.location(&place));
        }
        for module in std::mem::replace(&mut self.mappings, Numbered::new()).in_order {
            message.message(at::MAPPINGS, &self.mapping(module));
        }
        for (name, file) in std::mem::replace(&mut self.functions, Numbered::new()).in_order {
            let mut function = Message::default();
            function.number(field::function::NAME, self.text(&name));
            function.number(field::function::SYSTEM_NAME, self.text(&name));
            function.number(field::function::FILENAME, self.text(&clean(file.unwrap_or(""))));
            message.message(at::FUNCTIONS, &function);
        }
        for locations in std::mem::replace(&mut self.found, Numbered::new()).in_order {
            let mut stack = Message::default();
            stack.numbers(1, locations);
            message.message(at::STACKS, &stack);
        }
        for (key, value) in std::mem::replace(&mut self.attributes, Numbered::new()).in_order {
            let mut attribute = Message::default();
            attribute.number(1, self.text(key));
            attribute.message(2, &any_text(&value));
            message.message(at::ATTRIBUTES, &attribute);
        }
        for text in &self.texts.in_order {
            message.text(at::STRINGS, text);
        }
        message
    }

    fn location(&mut self, place: &[usize]) -> Message {
        use field::location as at;
        let stacks = self.stacks;
        let frames = || place.iter().map(|&frame| &stacks.frames()[frame]);
        let mut message = Message::default();
        if let Some(module) = frames().find_map(|frame| frame.module.as_deref()) {
            message.number(at::MAPPING, self.mappings.number(module) + 1);
        }
        message.number(at::ADDRESS, frames().find_map(|frame| frame.address).unwrap_or(0));
        for frame in frames() {
            let mut line = Message::default();
            line.number(1, self.functions.number((name(frame), frame.file.as_deref())) + 1);
            line.number(2, frame.line.unwrap_or(0).into());
            message.message(at::LINES, &line);
        }
        message.numbers(at::ATTRIBUTES, [self.attribute(FRAME_TYPE, "native")]);
        message
    }

    fn mapping(&mut self, module: &str) -> Message {
        use field::mapping as at;
        let load = self.profile.loads.iter().find(|load| load.module == module);
        let mut message = Message::default();
        message.number(at::MEMORY_LIMIT, u64::MAX);
        message.number(at::FILENAME, self.text(&clean(module)));
        if let Some(build_id) = load.and_then(|load| load.build_id.as_deref()) {
            let build_id = self.attribute(BUILD_ID, build_id);
            message.numbers(at::ATTRIBUTES, [build_id]);
        }
        message
    }
}

/// What names a profile: the same for the same record.
fn id(document: &Document<Profile>, what: &str) -> [u8; 16] {
    let digest = Sha256::new()
        .chain_update(&document.header.created)
        .chain_update(command(&document.body))
        .chain_update(document.body.sampling.samples.to_le_bytes())
        .chain_update(what)
        .finalize();
    std::array::from_fn(|at| digest[at])
}
