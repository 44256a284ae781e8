//! Records of a ring, taken apart: only what is in bounds is believed.

use crate::perf::open::{AccessEvent, Holds};
use crate::perf_data::accesses;
use crate::perf_data::attributes::Attributes as RawAttributes;
use crate::perf_data::records::{RawRecord, in_order, kind};
use crate::perf_data::role::Role;
use crate::perf_data::sample::{RawSample, user_part};
use image::elf::bytes::{u32_at, u64_at};
use insight::samples::{Access, Registers, Sample};
use records::profile::Backend;
use units::Avma;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Sample(Sample),
    /// A sample with the bytes of its stack, from the stack pointer on.
    Stack(Sample, Vec<u8>),
    /// A sample with where its callers go on, the innermost first, as the kernel found them.
    Chain(Sample, Vec<Avma>),
    /// A load or store that the hardware sampled.
    Access(Access),
    Mapped(NewMapping),
    /// A thread has a new name; a process has executed a program, if so marked.
    Named {
        process: u32,
        thread: u32,
        name: Vec<u8>,
        executed: bool,
        time_ns: u64,
    },
    /// A process or thread was made.
    Forked {
        process: u32,
        parent: u32,
        time_ns: u64,
    },
    /// A process's main thread ended.
    Ended {
        process: u32,
        time_ns: u64,
    },
    Lost {
        count: u64,
        time_ns: u64,
    },
    LostStacks {
        count: u64,
        time_ns: u64,
    },
}

/// A mapping that a process has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewMapping {
    pub process: u32,
    pub start: u64,
    pub bytes: u64,
    pub offset: u64,
    pub device: (u32, u32),
    pub inode: u64,
    /// It may hold code.
    pub executable: bool,
    /// Other processes that map the same see what is written there.
    pub is_shared: bool,
    pub name: Vec<u8>,
    pub time_ns: u64,
}

impl Event {
    pub(crate) fn time_ns(&self) -> u64 {
        match self {
            Self::Sample(sample) | Self::Stack(sample, _) | Self::Chain(sample, _) => sample.time_ns,
            Self::Access(access) => access.time_ns,
            Self::Mapped(mapping) => mapping.time_ns,
            Self::Named { time_ns, .. }
            | Self::Forked { time_ns, .. }
            | Self::Ended { time_ns, .. }
            | Self::Lost { time_ns, .. }
            | Self::LostStacks { time_ns, .. } => *time_ns,
        }
    }
}

/// In a record's `misc`: which mode the sample was taken in; that a name comes from an `exec`.
const MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;
const COMM_EXEC: u16 = 1 << 13;
/// In the rights of a mapping.
const RIGHT_TO_EXECUTE: u32 = 4;
/// In its flags, as of `mmap`.
pub(crate) const MAP_SHARED: u32 = 1;

/// What ends every record but samples: process, thread, time.
const IDENTITY_BYTES: usize = 16;

/// All records of these bytes, which begin with one, from an event that holds this. Records of
/// other kinds are left out, and what is cut off at the end, too.
pub(crate) fn events(bytes: &[u8], holds: Holds) -> Vec<Event> {
    let mut found = Vec::new();
    for record in in_order(bytes) {
        match holds {
            Holds::Accesses(event) if record.kind == kind::SAMPLE => access(event, &record, &mut found),
            _ => found.extend(event(&record, holds)),
        }
    }
    found
}

fn event(record: &RawRecord<'_>, holds: Holds) -> Option<Event> {
    let body = record.body;
    if record.kind == kind::SAMPLE {
        return sample(record, holds);
    }
    let own = body.len().checked_sub(IDENTITY_BYTES)?;
    let time_ns = u64_at(body, own + 8)?;
    let text = |from: usize| -> Option<Vec<u8>> {
        let bytes = body.get(from..own)?;
        Some(bytes.split(|&byte| byte == 0).next().unwrap_or(&[]).to_vec())
    };
    Some(match record.kind {
        kind::LOST if matches!(holds, Holds::Stacks(_)) => {
            Event::LostStacks { count: u64_at(body, 8)?, time_ns }
        }
        kind::LOST => Event::Lost { count: u64_at(body, 8)?, time_ns },
        kind::COMM => Event::Named {
            process: u32_at(body, 0)?,
            thread: u32_at(body, 4)?,
            name: text(8)?,
            executed: record.misc & COMM_EXEC != 0,
            time_ns,
        },
        kind::EXIT if u32_at(body, 0)? == u32_at(body, 8)? => {
            Event::Ended { process: u32_at(body, 0)?, time_ns }
        }
        kind::FORK => Event::Forked { process: u32_at(body, 0)?, parent: u32_at(body, 4)?, time_ns },
        kind::MMAP2 => Event::Mapped(NewMapping {
            process: u32_at(body, 0)?,
            start: u64_at(body, 8)?,
            bytes: u64_at(body, 16)?,
            offset: u64_at(body, 24)?,
            device: (u32_at(body, 32)?, u32_at(body, 36)?),
            inode: u64_at(body, 40)?,
            executable: u32_at(body, 56)? & RIGHT_TO_EXECUTE != 0,
            is_shared: u32_at(body, 60)? & MAP_SHARED != 0,
            name: text(64)?,
            time_ns,
        }),
        _ => return None,
    })
}

/// An access that the hardware sampled, and its callers.
fn access(event: AccessEvent, record: &RawRecord<'_>, found: &mut Vec<Event>) {
    const EXACT: u16 = 1 << 14;
    let misc = record.misc;
    let role = if event.backend == Backend::Ibs { Role::Ibs } else { Role::Pebs };
    let Some(raw) = accesses_of(event, record).filter(|_| misc & EXACT != 0) else { return };
    let in_kernel = misc & MODE == MODE_KERNEL;
    let Some(access) = accesses::of_sample(&raw, role, in_kernel, raw.period.unwrap_or(1)) else { return };
    found.push(Event::Access(access));
    let sample = Sample {
        process: raw.process,
        thread: raw.thread,
        time_ns: raw.time_ns,
        in_kernel,
        ip: Some(Avma(raw.ip)),
        registers: None,
    };
    let mut chain = user_part(&raw.chain);
    // Its first entry is the sampled instruction itself.
    if chain.next().is_some() && !in_kernel {
        found.push(Event::Chain(sample, chain.map(Avma).collect()));
    }
}

/// The fields of a sample of such an event.
pub(crate) fn accesses_of<'b>(event: AccessEvent, record: &RawRecord<'b>) -> Option<RawSample<'b>> {
    let attributes = RawAttributes { sample_type: event.sample_type(), ..RawAttributes::default() };
    RawSample::parse(record.body, &attributes)
}

/// Where in a sample's body its registers begin; how many there are.
const REGISTERS_AT: usize = 32;
const REGISTER_COUNT: usize = 17;

fn sample(record: &RawRecord<'_>, holds: Holds) -> Option<Event> {
    const NO_REGISTERS: u64 = 0;
    let body = record.body;
    let registers = match u64_at(body, 24)? {
        NO_REGISTERS => None,
        _ => Some(registers(body)?),
    };
    let sample = Sample {
        process: u32_at(body, 8)?,
        thread: u32_at(body, 12)?,
        time_ns: u64_at(body, 16)?,
        in_kernel: record.misc & MODE == MODE_KERNEL,
        ip: registers.map(|registers| registers.ip),
        registers,
    };
    if holds == Holds::Registers {
        return Some(Event::Sample(sample));
    }
    // The stack: the bytes reserved for it, these bytes, and how many bytes of it were copied.
    let size_at = REGISTERS_AT + if registers.is_some() { 8 * REGISTER_COUNT } else { 0 };
    let reserved = usize::try_from(u64_at(body, size_at)?).ok()?;
    let stack = if reserved == 0 {
        &[][..]
    } else {
        let start = size_at + 8;
        let copied = usize::try_from(u64_at(body, start.checked_add(reserved)?)?).ok()?;
        body.get(start..start.checked_add(copied.min(reserved))?)?
    };
    Some(Event::Stack(sample, stack.to_vec()))
}

/// In a sample the registers stand in the order of their bits in the mask; in instructions they
/// have other numbers.
fn registers(body: &[u8]) -> Option<Registers> {
    /// The numbers of AX, BX, CX, DX, SI, DI, BP, SP.
    const NUMBERS: [usize; 8] = [0, 3, 1, 2, 6, 7, 5, 4];
    let at = |index: usize| u64_at(body, REGISTERS_AT + 8 * index);
    let mut general = [0; 16];
    for (index, number) in NUMBERS.into_iter().enumerate() {
        general[number] = at(index)?;
    }
    let ip = at(8)?;
    for (number, value) in general.iter_mut().enumerate().skip(8) {
        *value = at(number + 1)?;
    }
    Some(Registers { general, ip: Avma(ip) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::records::record;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn samples_hold_registers_by_their_numbers() {
        let mut body = words(&[0x40_1003, 7 << 32 | 5, 99, 2]);
        body.extend(words(&[10, 13, 11, 12, 16, 17, 15, 14, 0x40_1003, 18, 19, 20, 21, 22, 23, 24, 25]));
        let found = events(&record(kind::SAMPLE, 2, &body), Holds::Registers);
        let Event::Sample(sample) = &found[0] else { panic!("{found:?}") };
        assert_eq!((sample.process, sample.thread, sample.time_ns, sample.in_kernel), (5, 7, 99, false));
        let registers = sample.registers.unwrap();
        assert_eq!(registers.general, std::array::from_fn(|number| number as u64 + 10));
        assert_eq!(registers.ip, Avma(0x40_1003));
        let none = events(&record(kind::SAMPLE, 1, &words(&[1, 2, 3, 0])), Holds::Registers);
        assert!(matches!(&none[0], Event::Sample(s) if s.in_kernel && s.registers.is_none()), "{none:?}");
    }

    #[test]
    fn stacks_are_as_long_as_was_copied() {
        let mut body = words(&[0x40_1003, 7 << 32 | 5, 99, 2]);
        body.extend(words(&[1; REGISTER_COUNT]));
        body.extend(words(&[32, 0xa, 0xb, 0xc, 0xd, 16]));
        let found = events(&record(kind::SAMPLE, 2, &body), Holds::Stacks(32));
        let Event::Stack(sample, stack) = &found[0] else { panic!("{found:?}") };
        assert_eq!((sample.thread, &stack[..]), (7, &words(&[0xa, 0xb])[..]));
        let none = events(&record(kind::SAMPLE, 1, &words(&[1, 2, 3, 0, 0])), Holds::Stacks(32));
        assert!(matches!(&none[0], Event::Stack(s, stack) if s.registers.is_none() && stack.is_empty()));
        let mut too_long = words(&[1, 2, 3, 0, 1 << 40]);
        too_long.extend(words(&[u64::MAX; 8]));
        assert_eq!(events(&record(kind::SAMPLE, 1, &too_long), Holds::Stacks(32)), []);
    }

    #[test]
    fn mappings_names_and_forks() {
        let mut body = words(&[5 | 5 << 32, 0x1000, 0x2000, 0x3000, 8 | 1 << 32, 77, 0, 5 | 1 << 32]);
        body.extend(b"/bin/ls\0");
        body.extend(words(&[5 | 5 << 32, 1234]));
        let mapping = NewMapping {
            process: 5,
            start: 0x1000,
            bytes: 0x2000,
            offset: 0x3000,
            device: (8, 1),
            inode: 77,
            executable: true,
            is_shared: true,
            name: b"/bin/ls".to_vec(),
            time_ns: 1234,
        };
        let mut bytes = record(kind::MMAP2, 2, &body);
        let mut body = words(&[5 | 6 << 32]);
        body.extend(b"ls\0\0\0\0\0\0");
        body.extend(words(&[0, 1235]));
        bytes.extend(record(kind::COMM, COMM_EXEC, &body));
        bytes.extend(record(kind::FORK, 0, &words(&[8 | 5 << 32, 8 | 5 << 32, 1, 0, 1236])));
        // A thread of a process ends, and the process.
        bytes.extend(record(kind::EXIT, 0, &words(&[8 | 5 << 32, 9 | 5 << 32, 1, 0, 1236])));
        bytes.extend(record(kind::EXIT, 0, &words(&[8 | 5 << 32, 8 | 5 << 32, 1, 0, 1236])));
        bytes.extend(record(kind::LOST, 0, &words(&[1, 42, 0, 1237])));
        bytes.extend(record(11, 0, &words(&[0, 0, 0])));
        let named =
            Event::Named { process: 5, thread: 6, name: b"ls".to_vec(), executed: true, time_ns: 1235 };
        assert_eq!(
            events(&bytes, Holds::Registers),
            [
                Event::Mapped(mapping),
                named,
                Event::Forked { process: 8, parent: 5, time_ns: 1236 },
                Event::Ended { process: 8, time_ns: 1236 },
                Event::Lost { count: 42, time_ns: 1237 }
            ]
        );
    }

    #[test]
    fn what_is_cut_off_is_left_out() {
        let whole = record(kind::LOST, 0, &words(&[1, 42, 0, 1237]));
        for length in 0..whole.len() {
            assert_eq!(events(&whole[..length], Holds::Registers), []);
        }
        for kind in [kind::LOST, kind::COMM, kind::FORK, kind::SAMPLE, kind::MMAP2] {
            for length in 0..80 {
                for holds in [Holds::Registers, Holds::Stacks(8192)] {
                    let _ = events(&record(kind, 0xffff, &vec![0xff; length]), holds);
                }
            }
        }
        assert_eq!(events(&[0; 64], Holds::Registers), [], "a size of zero ends it");
    }
}
