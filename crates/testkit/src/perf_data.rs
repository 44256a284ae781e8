//! Writes files as `perf record` does, byte by byte from the layouts that the kernel and perf
//! document: for samples of hardware that the machine of a test does not have.

use std::collections::BTreeMap;

/// Bits of `sample_type`.
pub mod field {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const PERIOD: u64 = 1 << 8;
    pub const RAW: u64 = 1 << 10;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Numbers of features.
pub mod feature {
    pub const BUILD_ID: u32 = 2;
    pub const ARCH: u32 = 6;
    pub const CPUID: u32 = 9;
    pub const CMDLINE: u32 = 11;
    pub const EVENT_DESC: u32 = 12;
    pub const PMU_MAPPINGS: u32 = 16;
}

/// As Linux 5.13 has them, and perf of that time.
const ATTRIBUTES_BYTES: usize = 128;

/// An event with one id.
struct Event {
    attributes: Vec<u8>,
    id: u64,
    name: String,
}

/// A file that is being written. All events hold `IDENTIFIER`, and `TID` and `TIME`.
#[derive(Default)]
pub struct PerfData {
    events: Vec<Event>,
    records: Vec<u8>,
    features: BTreeMap<u32, Vec<u8>>,
}

/// One sample; which of the fields stand in the file says its event.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub ip: u64,
    pub process: u32,
    pub thread: u32,
    pub time_ns: u64,
    pub address: u64,
    pub period: u64,
    pub chain: Vec<u64>,
    pub raw: Vec<u8>,
    pub weight: u64,
    pub data_source: u64,
}

impl PerfData {
    /// Adds an event; its index.
    pub fn event(&mut self, name: &str, kind: u32, config: u64, config1: u64, sample_type: u64) -> usize {
        const SAMPLE_ID_ALL: u64 = 1 << 18;
        let mut attributes = vec![0; ATTRIBUTES_BYTES];
        let sample_type = sample_type | field::IDENTIFIER | field::TID | field::TIME;
        for (at, word) in [(8, config), (16, 1), (24, sample_type), (40, SAMPLE_ID_ALL), (56, config1)] {
            attributes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        attributes[..4].copy_from_slice(&kind.to_le_bytes());
        attributes[4..8].copy_from_slice(&(ATTRIBUTES_BYTES as u32).to_le_bytes());
        let id = 100 + self.events.len() as u64;
        self.events.push(Event { attributes, id, name: name.to_owned() });
        self.events.len() - 1
    }

    /// Adds a record as it is.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        self.records.extend(record(kind, misc, body));
    }

    /// Adds a record of the kernel: with what tells its time and event behind it.
    fn tracked(&mut self, kind: u32, misc: u16, mut body: Vec<u8>, process: u32, time_ns: u64) {
        body.extend(words(&[u64::from(process) | u64::from(process) << 32, time_ns, self.events[0].id]));
        self.record(kind, misc, &body);
    }

    /// A process has a name; it executes a program.
    pub fn named(&mut self, process: u32, name: &str, time_ns: u64) {
        const COMM: u32 = 3;
        const EXECUTED: u16 = 1 << 13;
        let mut body = words(&[u64::from(process) | u64::from(process) << 32]);
        body.extend(padded(name));
        self.tracked(COMM, EXECUTED, body, process, time_ns);
    }

    /// A process maps a file to be executed.
    pub fn mapped(&mut self, process: u32, name: &str, start: u64, bytes: u64, offset: u64, time_ns: u64) {
        const MMAP2: u32 = 10;
        const USER: u16 = 2;
        let mut body = words(&[u64::from(process) | u64::from(process) << 32, start, bytes, offset]);
        body.extend(words(&[8 | 1 << 32, 77, 0, 5]));
        body.extend(padded(name));
        self.tracked(MMAP2, USER, body, process, time_ns);
    }

    /// Adds a sample in user mode whose instruction is exact.
    pub fn sample(&mut self, event: usize, sample: &Sample) {
        const SAMPLE: u32 = 9;
        const USER_EXACT: u16 = 2 | 1 << 14;
        let Event { attributes, id, .. } = &self.events[event];
        let sample_type = u64::from_le_bytes(*attributes[24..].first_chunk().expect("8 bytes"));
        let holds = |field| sample_type & field != 0;
        let mut body = words(&[*id]);
        let mut word = |field, word| body.extend(if holds(field) { words(&[word]) } else { Vec::new() });
        word(field::IP, sample.ip);
        word(field::TID, u64::from(sample.process) | u64::from(sample.thread) << 32);
        word(field::TIME, sample.time_ns);
        word(field::ADDR, sample.address);
        word(field::PERIOD, sample.period);
        if holds(field::CALLCHAIN) {
            body.extend(words(&[sample.chain.len() as u64]));
            body.extend(words(&sample.chain));
        }
        if holds(field::RAW) {
            let size = (sample.raw.len() + 4).next_multiple_of(8) - 4;
            body.extend((size as u32).to_le_bytes());
            body.extend(&sample.raw);
            body.resize(body.len() + size - sample.raw.len(), 0);
        }
        let mut word = |field, word| body.extend(if holds(field) { words(&[word]) } else { Vec::new() });
        word(field::WEIGHT_STRUCT, sample.weight);
        word(field::DATA_SRC, sample.data_source);
        self.record(SAMPLE, USER_EXACT, &body);
    }

    /// Adds the trace of a CPU, of hardware with this number and of the PMU with this type.
    pub fn trace(&mut self, hardware: u32, pmu: u32, trace: &[u8]) {
        const INFO: u32 = 70;
        const TRACE: u32 = 71;
        let of_cpus = 1;
        self.record(INFO, 0, &words(&[u64::from(hardware), u64::from(pmu), of_cpus]));
        let every_thread = u64::from(u32::MAX) << 32;
        let mut trace = trace.to_vec();
        trace.resize(trace.len().next_multiple_of(8), 0);
        self.record(TRACE, 0, &words(&[trace.len() as u64, 0, 0, every_thread, 0]));
        self.records.extend(trace);
    }

    /// Adds a feature as it is.
    pub fn feature(&mut self, number: u32, section: Vec<u8>) {
        self.features.insert(number, section);
    }

    /// Adds a feature that is a text.
    pub fn text(&mut self, number: u32, text: &str) {
        self.feature(number, string(text));
    }

    pub fn command_line(&mut self, command: &[&str]) {
        let mut section = (command.len() as u32).to_le_bytes().to_vec();
        section.extend(command.iter().flat_map(|word| string(word)));
        self.feature(feature::CMDLINE, section);
    }

    /// Which types of events are those of which PMU.
    pub fn pmus(&mut self, pmus: &[(u32, &str)]) {
        let mut section = (pmus.len() as u32).to_le_bytes().to_vec();
        for (kind, name) in pmus {
            section.extend(kind.to_le_bytes());
            section.extend(string(name));
        }
        self.feature(feature::PMU_MAPPINGS, section);
    }

    /// The build id of a file, of 20 bytes.
    pub fn build_id(&mut self, name: &str, id: &[u8]) {
        const USER: u16 = 2;
        let mut body = vec![0xff; 4];
        body.extend(id);
        body.resize(4 + 24, 0);
        body.extend(padded(name));
        let record = record(0, USER, &body);
        self.features.entry(feature::BUILD_ID).or_default().extend(record);
    }

    fn descriptions(&self) -> Vec<u8> {
        let mut section = (self.events.len() as u32).to_le_bytes().to_vec();
        section.extend((ATTRIBUTES_BYTES as u32).to_le_bytes());
        for event in &self.events {
            section.extend(&event.attributes);
            section.extend(1_u32.to_le_bytes());
            section.extend(string(&event.name));
            section.extend(event.id.to_le_bytes());
        }
        section
    }

    /// As a file.
    pub fn file(mut self) -> Vec<u8> {
        const HEADER_BYTES: usize = 104;
        self.features.insert(feature::EVENT_DESC, self.descriptions());
        let ids_at = HEADER_BYTES;
        let attributes_at = ids_at + 8 * self.events.len();
        let attributes_bytes = (ATTRIBUTES_BYTES + 16) * self.events.len();
        let data_at = attributes_at + attributes_bytes;
        let mut bytes = b"PERFILE2".to_vec();
        bytes.extend(words(&[HEADER_BYTES as u64, (ATTRIBUTES_BYTES + 16) as u64]));
        bytes.extend(words(&[attributes_at as u64, attributes_bytes as u64]));
        bytes.extend(words(&[data_at as u64, self.records.len() as u64, 0, 0]));
        let mut flags = [0_u64; 4];
        for &number in self.features.keys() {
            flags[number as usize / 64] |= 1 << (number % 64);
        }
        bytes.extend(words(&flags));
        bytes.extend(self.events.iter().flat_map(|event| event.id.to_le_bytes()));
        for (index, event) in self.events.iter().enumerate() {
            bytes.extend(&event.attributes);
            bytes.extend(words(&[(ids_at + 8 * index) as u64, 8]));
        }
        bytes.extend(&self.records);
        let mut at = bytes.len() + 16 * self.features.len();
        for section in self.features.values() {
            bytes.extend(words(&[at as u64, section.len() as u64]));
            at += section.len();
        }
        bytes.extend(self.features.values().flatten());
        bytes
    }

    /// As it is written into a pipe.
    pub fn pipe(mut self) -> Vec<u8> {
        const ATTRIBUTES: u32 = 64;
        const FEATURE: u32 = 80;
        self.features.insert(feature::EVENT_DESC, self.descriptions());
        let mut bytes = b"PERFILE2".to_vec();
        bytes.extend(words(&[16]));
        for event in &self.events {
            let body = [&event.attributes[..], &event.id.to_le_bytes()].concat();
            bytes.extend(record(ATTRIBUTES, 0, &body));
        }
        for (number, section) in &self.features {
            let mut body = [&words(&[u64::from(*number)])[..], section].concat();
            body.resize(body.len().next_multiple_of(8), 0);
            bytes.extend(record(FEATURE, 0, &body));
        }
        bytes.extend(&self.records);
        bytes
    }
}

/// What an AMD core tells of an operation in the raw part of a sample: capabilities, then its
/// registers.
pub fn ibs_raw(capabilities: u32, data2: u64, data3: u64, address: u64) -> Vec<u8> {
    let mut bytes = capabilities.to_le_bytes().to_vec();
    bytes.extend(words(&[0, 0, 0, data2, data3, address, 0]));
    bytes
}

/// What an Arm core tells of a load: packets in the order in which it writes them.
pub fn spe_load(
    ip: u64,
    address: u64,
    thread: u32,
    latency: u16,
    events: u16,
    source: u8,
    ticks: u64,
) -> Vec<u8> {
    let mut bytes = vec![0xb0];
    bytes.extend(ip.to_le_bytes());
    bytes.push(0x65);
    bytes.extend(thread.to_le_bytes());
    bytes.extend([0x49, 0, 0x52]);
    bytes.extend(events.to_le_bytes());
    bytes.push(0x98);
    bytes.extend(latency.to_le_bytes());
    bytes.push(0xb2);
    bytes.extend(address.to_le_bytes());
    bytes.extend([0x43, source, 0x71]);
    bytes.extend(ticks.to_le_bytes());
    bytes
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend(u16::try_from(8 + body.len()).expect("a record of its size").to_le_bytes());
    bytes.extend(body);
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A name, with zeros up to a multiple of eight bytes.
fn padded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
    bytes
}

/// A length, and the text in as many bytes.
fn string(text: &str) -> Vec<u8> {
    let text = padded(text);
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text);
    bytes
}
