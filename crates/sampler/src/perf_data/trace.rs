//! The trace of an Arm core in a file: which bytes are of which thread, and when they were written.

use super::container::Recording;
use super::records::kind;
use super::role::is_neoverse;
use super::{accesses, spe};
use image::elf::cursor::Cursor;
use insight::samples::Access;
use std::collections::HashMap;

/// All accesses that are traced. Those whose time is not told come last: after all mappings.
pub(super) fn accesses(recording: &Recording<'_>) -> Vec<Access> {
    const ARM_SPE: u32 = 4;
    let info = recording.records.iter().find(|record| record.kind == kind::TRACE_INFO);
    if info.and_then(|record| Cursor::new(record.body, 0).u32()) != Some(ARM_SPE) {
        return Vec::new();
    }
    let clock = recording.records.iter().find(|record| record.kind == kind::TIME_CONVERSION);
    let clock = clock.and_then(|record| Clock::parse(record.body));
    let processes = processes(recording);
    let is_neoverse = is_neoverse(&recording.facts);
    let mut found = Vec::new();
    for record in recording.records.iter().filter(|record| record.kind == kind::TRACE) {
        // Of a whole CPU's trace the thread is not told here.
        let of_thread = Cursor::new(record.body, 28).u32().filter(|thread| *thread != u32::MAX);
        for access in spe::records(record.trace) {
            let thread = access.context.filter(|thread| processes.contains_key(thread)).or(of_thread);
            let thread = thread.unwrap_or(0);
            let process = processes.get(&thread).copied().unwrap_or(thread);
            let ticks = access.ticks.zip(clock.as_ref());
            let time_ns = ticks.map_or(u64::MAX, |(ticks, clock)| clock.ns(ticks));
            found.push(accesses::of_spe(&access, is_neoverse, process, thread, time_ns));
        }
    }
    found
}

/// The processes of threads, as far as records tell.
fn processes(recording: &Recording<'_>) -> HashMap<u32, u32> {
    let mut processes = HashMap::new();
    for record in &recording.records {
        let mut at = Cursor::new(record.body, 0);
        let (process, thread) = match record.kind {
            kind::COMM | kind::MMAP | kind::MMAP2 => (at.u32(), at.u32()),
            kind::FORK => {
                let process = at.u32();
                at.u32();
                (process, at.u32())
            }
            _ => continue,
        };
        if let (Some(process), Some(thread)) = (process, thread) {
            processes.insert(thread, process);
        }
    }
    processes
}

/// How ticks of the generic timer become nanoseconds of the events' clock.
struct Clock {
    shift: u32,
    factor: u64,
    zero: u64,
}

impl Clock {
    fn parse(body: &[u8]) -> Option<Self> {
        let mut at = Cursor::new(body, 0);
        let shift = u32::try_from(at.u64()?).ok().filter(|shift| *shift < 64)?;
        Some(Self { shift, factor: at.u64()?, zero: at.u64()? })
    }

    fn ns(&self, ticks: u64) -> u64 {
        let ns = (u128::from(ticks) * u128::from(self.factor)) >> self.shift;
        self.zero.wrapping_add(ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::RawRecord;
    use super::*;
    use units::Avma;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn accesses_have_process_thread_and_time() {
        let trace = testkit::perf_data::spe_load(0x40_1000, 0x8000, 42, 9, 0b100, 14, 1000);
        let (info, clock) = (words(&[4, 0]), words(&[1, 10, 7]));
        let comm = [&words(&[5 | 42 << 32])[..], b"p\0\0\0\0\0\0\0"].concat();
        let of_cpu = words(&[trace.len() as u64, 0, 0, u64::from(u32::MAX) << 32, 0]);
        let raw = |kind, body, trace| RawRecord { kind, misc: 0, body, trace };
        let mut recording = Recording::default();
        recording.facts.processor_id = "0x00000000413fd0c1".to_owned();
        recording.records = vec![
            raw(kind::TRACE_INFO, &info, &[]),
            raw(kind::TIME_CONVERSION, &clock, &[]),
            raw(kind::COMM, &comm, &[]),
            raw(kind::TRACE, &of_cpu, &trace),
        ];
        let found = accesses(&recording);
        let [access] = &found[..] else { panic!("{found:?}") };
        assert_eq!((access.process, access.thread, access.time_ns), (5, 42, 7 + 5000));
        assert_eq!((access.ip, access.level), (Avma(0x40_1000), records::profile::Level::Dram));
        recording.records.remove(1);
        assert_eq!(accesses(&recording)[0].time_ns, u64::MAX);
        recording.records.remove(0);
        assert_eq!(accesses(&recording), [], "the trace of another hardware");
    }
}
