//! All records of a file, counted in the order of their times.
//!
//! Samples of time and of accesses are different things, and so are those of two kinds of hardware:
//! a profile is made of one of them. Where there are accesses, they are it.

use super::accesses;
use super::attributes::field;
use super::container::Recording;
use super::records::{RawRecord, kind};
use super::role::Role;
use super::sample::{RawSample, user_part};
use super::trace;
use super::tracking::Events;
use super::{FileRequest, PerfDataError};
use crate::files::BuildIds;
use crate::perf::event::Event;
use crate::recorder::Recorder;
use insight::samples::{Access, Registers, Sample, Tally};
use records::profile::Backend;
use std::collections::BTreeMap;
use units::Avma;

/// What was counted.
pub(super) struct Counted {
    pub tally: Tally,
    pub backend: Backend,
    /// Of each event.
    pub roles: Vec<Role>,
    pub build_ids: BuildIds,
    /// When the first and the last sample were taken.
    pub times: Option<(u64, u64)>,
    /// What the samples of a timer count.
    pub cpu_time_ns: Option<u64>,
    /// Samples that are not used, by the name of their event.
    pub left_out: BTreeMap<String, u64>,
    pub not_understood: u64,
    /// Samples of hardware that are no accesses.
    pub no_accesses: u64,
    pub without_registers: u64,
    /// Samples while a CPU had nothing to do.
    pub idle: u64,
}

/// A sample's mode, in the record's `misc`.
const MODE: u16 = 7;
const MODE_USER: u16 = 2;
/// The instruction is the one that the event is of, not one that ran later.
const EXACT: u16 = 1 << 14;

/// Counts a file's records.
pub(super) fn count(recording: &Recording<'_>, request: &FileRequest<'_>) -> Result<Counted, PerfDataError> {
    let events = Events::of(&recording.events);
    let roles: Vec<Role> = recording.events.iter().map(|event| Role::of(event, &recording.facts)).collect();
    let traced = trace::accesses(recording);
    let chosen = Chosen::of(recording, &events, &roles, &traced)?;
    let mut order: Vec<(u64, Item)> = Vec::new();
    for (index, record) in recording.records.iter().enumerate() {
        order.push((events.time_ns(record), Item::Record(index)));
    }
    if chosen.backend == Backend::Spe {
        order.extend(traced.iter().enumerate().map(|(index, access)| (access.time_ns, Item::Traced(index))));
    }
    order.sort_by_key(|(time_ns, _)| *time_ns);
    let times = times(recording, &order, &traced);
    let mut counting = Counting {
        recording,
        events,
        stacks: request.stacks,
        recorder: Recorder::default().with_build_ids(build_ids(recording, request)),
        counted: Counted {
            tally: Tally::default(),
            backend: chosen.backend,
            roles,
            build_ids: BuildIds::default(),
            times,
            cpu_time_ns: None,
            left_out: BTreeMap::new(),
            not_understood: 0,
            no_accesses: 0,
            without_registers: 0,
            idle: 0,
        },
        lost: [0; 2],
    };
    counting.recorder.tally.is_exact = chosen.is_exact;
    if let (Some((from, to)), Some((first, _))) = (request.window, times) {
        let at = |time: std::time::Duration| {
            first.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        };
        counting.recorder = counting.recorder.within(Some((at(from), at(to))));
    }
    for (time_ns, item) in order {
        match item {
            Item::Record(index) => counting.take(&recording.records[index], time_ns),
            Item::Traced(index) => counting.recorder.count(Event::Access(traced[index])),
        }
    }
    let [records_lost, samples_lost] = counting.lost;
    let mut counted = counting.counted;
    (counted.tally, counted.build_ids) = counting.recorder.into_parts();
    // Both are told of the same samples.
    counted.tally.lost = records_lost.max(samples_lost);
    Ok(counted)
}

/// What is in the order of times.
#[derive(Clone, Copy)]
enum Item {
    Record(usize),
    Traced(usize),
}

/// What a profile is made of.
struct Chosen {
    backend: Backend,
    is_exact: bool,
}

impl Chosen {
    fn of(
        recording: &Recording<'_>,
        events: &Events<'_>,
        roles: &[Role],
        traced: &[Access],
    ) -> Result<Self, PerfDataError> {
        if !traced.is_empty() {
            return Ok(Self { backend: Backend::Spe, is_exact: true });
        }
        let (mut time, mut exact, mut all) = (0_u64, 0_u64, 0_u64);
        for record in recording.records.iter().filter(|record| record.kind == kind::SAMPLE) {
            all += 1;
            let Some(event) = events.of_sample(record.body) else { continue };
            let role = roles[event];
            if role.is_time() {
                time += 1;
                exact += u64::from(record.misc & EXACT != 0);
            }
            let Some(backend) = role.backend() else { continue };
            let sample = RawSample::parse(record.body, &recording.events[event].attributes);
            if sample.is_some_and(|sample| accesses::of_sample(&sample, role, false, 1).is_some()) {
                return Ok(Self { backend, is_exact: true });
            }
        }
        if time > 0 {
            return Ok(Self { backend: Backend::Clock, is_exact: 2 * exact > time });
        }
        // A program that used hardly any time has no samples; that is no fault of the file.
        if all == 0 && roles.iter().any(|role| role.is_time()) {
            return Ok(Self { backend: Backend::Clock, is_exact: false });
        }
        let names: Vec<&str> = recording.events.iter().map(|event| event.name.as_str()).collect();
        let why = if all == 0 {
            "there are none".to_owned()
        } else {
            format!("its events are {}", names.join(", "))
        };
        Err(PerfDataError::NoSamples { why })
    }
}

/// When the first and the last sample were taken, of those that tell it.
fn times(recording: &Recording<'_>, order: &[(u64, Item)], traced: &[Access]) -> Option<(u64, u64)> {
    let is_sample = |item: &Item| match item {
        Item::Record(index) => recording.records[*index].kind == kind::SAMPLE,
        Item::Traced(index) => traced[*index].time_ns != u64::MAX,
    };
    let mut told =
        order.iter().filter(|(time_ns, item)| *time_ns > 0 && is_sample(item)).map(|(time_ns, _)| *time_ns);
    let first = told.next()?;
    Some((first, told.next_back().unwrap_or(first)))
}

/// Those of the features and those that mappings tell.
fn build_ids(recording: &Recording<'_>, request: &FileRequest<'_>) -> BuildIds {
    let events = Events::of(&recording.events);
    let mapped = recording.records.iter().filter(|record| record.kind == kind::MMAP2);
    let told = mapped.filter_map(|record| events.build_id(record));
    let ids = recording.facts.build_ids.iter().map(|(name, id)| (name.clone(), id.clone()));
    BuildIds::of_recording(ids.chain(told), request.copies)
}

struct Counting<'r> {
    recording: &'r Recording<'r>,
    events: Events<'r>,
    stacks: bool,
    recorder: Recorder,
    counted: Counted,
    /// As told by records that stand where samples were lost, and by those at the end.
    lost: [u64; 2],
}

impl Counting<'_> {
    fn take(&mut self, record: &RawRecord<'_>, time_ns: u64) {
        let word = |at: usize| image::elf::cursor::Cursor::new(record.body, at).u64().unwrap_or(0);
        match record.kind {
            kind::SAMPLE => self.sample(record),
            kind::LOST => self.lost[0] = self.lost[0].saturating_add(word(8)),
            kind::LOST_SAMPLES => self.lost[1] = self.lost[1].saturating_add(word(0)),
            _ => {
                if let Some(event) = self.events.tracked(record, time_ns) {
                    self.recorder.count(event);
                }
            }
        }
    }

    fn sample(&mut self, record: &RawRecord<'_>) {
        let Some(event) = self.events.of_sample(record.body) else {
            self.counted.not_understood += 1;
            return;
        };
        let role = self.counted.roles[event];
        let described = &self.recording.events[event];
        let is_chosen = match self.counted.backend {
            Backend::Clock => role.is_time(),
            backend => role.backend() == Some(backend),
        };
        if !is_chosen {
            *self.counted.left_out.entry(described.name.clone()).or_default() += 1;
            return;
        }
        let Some(raw) = RawSample::parse(record.body, &described.attributes) else {
            self.counted.not_understood += 1;
            return;
        };
        let in_kernel = record.misc & MODE != MODE_USER;
        // Where a frequency was asked for without the period of each sample, all count the same.
        let fixed = if described.attributes.is_frequency { 1 } else { described.attributes.period };
        let period = raw.period.unwrap_or(fixed);
        let sample = self.of_time(&raw, in_kernel);
        let is_idle = described.attributes.holds(field::TID) && (raw.process, raw.thread) == (0, 0);
        if is_idle && role.is_time() {
            self.counted.idle += 1;
            return;
        }
        // Instruction-based sampling of AMD does not always tell which instruction it was.
        let is_known = role != Role::Ibs || record.misc & EXACT != 0;
        if role.is_time() {
            if role == Role::Clock && raw.period.or(Some(fixed)).is_some_and(|period| period > 1) {
                let all = self.counted.cpu_time_ns.get_or_insert(0);
                *all = all.saturating_add(period);
            }
            self.counted.without_registers += u64::from(!in_kernel && sample.registers.is_none());
            self.recorder.count(Event::Sample(sample));
        } else if let Some(access) = accesses::of_sample(&raw, role, in_kernel, period).filter(|_| is_known) {
            self.recorder.count(Event::Access(access));
        } else {
            self.counted.no_accesses += 1;
            return;
        }
        if self.stacks {
            self.stack(sample, &raw);
        }
    }

    /// A sample of time; of an access, what its stack is unwound from.
    fn of_time(&self, raw: &RawSample<'_>, in_kernel: bool) -> Sample {
        let registers: Option<Registers> = if in_kernel { raw.user } else { raw.interrupted.or(raw.user) };
        let entered = || user_part(&raw.chain).next().map(Avma);
        let ip = if in_kernel {
            registers.map(|registers| registers.ip).or_else(entered)
        } else {
            Some(Avma(raw.ip))
        };
        // Behind a sample whose instruction is exact, registers are those of a later one.
        let is_exact = self.recorder.tally.is_exact;
        let registers = registers.filter(|_| !is_exact || !raw.stack.is_empty());
        Sample { process: raw.process, thread: raw.thread, time_ns: raw.time_ns, in_kernel, ip, registers }
    }

    fn stack(&mut self, sample: Sample, raw: &RawSample<'_>) {
        if !raw.stack.is_empty() && raw.user.is_some() {
            let sample = Sample { registers: raw.user, ..sample };
            self.recorder.count(Event::Stack(sample, raw.stack.to_vec()));
        } else if user_part(&raw.chain).next().is_some() {
            // Its first entry is the sampled instruction itself.
            let callers = user_part(&raw.chain).skip(1).map(Avma).collect();
            self.recorder.count(Event::Chain(sample, callers));
        }
    }
}
