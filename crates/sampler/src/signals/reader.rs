//! What clocks in processes wrote, as the events that the kernel would have told.
//!
//! A sample stands for the CPU time since its thread's last one. Mostly that is one period. It is
//! more where the thread was in the kernel for long, and is sampled when it returns. It is more,
//! too, where it blocked the signal, or where its short runs fell between two ticks: then it is not
//! known where the thread was, and that time is not attributed.

use crate::allocations::region::{Region, now};
use crate::perf::event::Event;
use crate::target::mapping;
use heap::clock::layout::{Part, RINGS, Ring, SLOTS, STACK_BYTES, Slot, Stack, kind};
use heap::layout::{MEMORY_NAME, state};
use insight::samples::{Registers, Sample};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use units::{Avma, Estimate};

/// A slot that stays unfinished is passed over after this number of readings.
const PATIENCE: u32 = 10;
/// How often the mappings of processes that run are read.
const POLL_NS: u64 = 250_000_000;
/// A sample that stands for more periods than this is weighed by their number.
const LATE: f64 = 2.5;
/// What a process breaks may not take all time.
const MOST_PERIODS: f64 = 1e5;
const RCX: usize = 1;
/// Bytes of a system call's instruction.
const SYSCALL_BYTES: u64 = 2;

pub(crate) struct Reader {
    /// What timers are set to, and what passes between two samples.
    asked_ns: f64,
    period_ns: f64,
    unfinished: [u32; RINGS],
    processes: HashMap<u32, Known>,
    /// Parts of mappings, until the last one is there.
    parts: HashMap<(u32, u64), Vec<Text>>,
    /// Periods whose place is not known.
    pub unplaced: u64,
    /// Timers' periods between two samples of a thread, of the first samples.
    gaps: Vec<u32>,
}

/// Gaps that are kept.
const GAPS: usize = 1024;

/// A process that has a clock.
#[derive(Default)]
struct Known {
    /// Mappings that were made since then are not told yet.
    told_ns: u64,
    polled_ns: u64,
    was_sampled: bool,
    /// Lines that were told.
    lines: HashSet<Vec<u8>>,
}

struct Text {
    number: u32,
    is_last: bool,
    text: Vec<u8>,
}

impl Reader {
    pub(crate) fn of(asked_ns: u64, period_ns: u64) -> Self {
        Self {
            asked_ns: asked_ns as f64,
            period_ns: period_ns.max(asked_ns) as f64,
            unfinished: [0; RINGS],
            processes: HashMap::new(),
            parts: HashMap::new(),
            unplaced: 0,
            gaps: Vec::new(),
        }
    }

    /// Processes that were sampled and have not ended.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// How often threads were sampled, in a second of their CPU time: by the median of the time
    /// between two samples, since some come late.
    pub(crate) fn frequency(&self) -> Option<Estimate> {
        let mut gaps = self.gaps.clone();
        gaps.sort_unstable();
        let (middle, off) = (gaps.len() / 2, (0.98 * (gaps.len() as f64).sqrt()).ceil() as usize);
        let last = gaps.len().checked_sub(1)?;
        // The kernel counts whole periods.
        let rate =
            |rank: usize, off: f64| 1e9 / ((f64::from(gaps[rank.min(last)]) + off).max(0.5) * self.asked_ns);
        let (least, most) = (rate(middle + off, 0.5), rate(middle.saturating_sub(off), -0.5));
        Some(Estimate::new(rate(middle, 0.0), least, most))
    }

    /// Appends what was written since the last time.
    pub(crate) fn read(&mut self, region: &Region, events: &mut Vec<Event>) {
        let Some(clock) = region.clock() else { return };
        let now = now();
        for (number, ring) in clock.rings.iter().enumerate() {
            self.read_ring(number, ring, |ticks| region.time_ns(ticks, now), events);
        }
        for stack in &clock.stacks {
            events.extend(take_stack(stack, |ticks| region.time_ns(ticks, now)));
        }
        for part in &clock.parts {
            self.take_part(part, |ticks| region.time_ns(ticks, now), events);
        }
        self.poll(now.1, events);
    }

    fn read_ring(
        &mut self,
        number: usize,
        ring: &Ring,
        time_ns: impl Fn(u64) -> u64,
        events: &mut Vec<Event>,
    ) {
        let mut tail = ring.tail.load(Relaxed);
        let waiting = ring.head.load(Acquire).wrapping_sub(tail).min(SLOTS as u64);
        for _ in 0..waiting {
            let slot = &ring.slots[tail as usize % SLOTS];
            if slot.sequence.load(Acquire) == tail.wrapping_add(1) {
                self.take_slot(slot, time_ns(slot.ticks.load(Relaxed)), events);
            } else {
                self.unfinished[number] += 1;
                if self.unfinished[number] < PATIENCE {
                    break;
                }
            }
            self.unfinished[number] = 0;
            tail = tail.wrapping_add(1);
            ring.tail.store(tail, Release);
        }
    }

    fn take_slot(&mut self, slot: &Slot, time_ns: u64, events: &mut Vec<Event>) {
        let kind = slot.kind.load(Relaxed);
        let (process, thread) = ((kind >> 32) as u32, slot.thread.load(Relaxed));
        match kind & 0xffff_ffff {
            kind::SAMPLE => {
                let (registers, in_kernel) = registers(&slot.registers);
                let ip = Some(registers.ip);
                let registers = Some(registers);
                let sample = Sample { process, thread, time_ns, in_kernel, ip, registers };
                self.processes.entry(process).or_default().was_sampled = true;
                self.weigh(sample, slot.overrun.load(Relaxed), events);
            }
            kind::BEGAN => {
                self.processes.insert(process, Known { told_ns: time_ns, ..Known::default() });
                let name = Vec::new();
                events.push(Event::Named { process, thread: process, name, executed: true, time_ns });
            }
            kind::FORKED => {
                self.processes.insert(process, Known { told_ns: time_ns, ..Known::default() });
                events.push(Event::Forked { process, parent: thread, time_ns });
            }
            _ => {}
        }
    }

    fn weigh(&mut self, sample: Sample, overrun: u32, events: &mut Vec<Event>) {
        if self.gaps.len() < GAPS {
            self.gaps.push(overrun.saturating_add(1));
        }
        events.push(Event::Sample(sample));
        let periods = (f64::from(overrun) + 1.0) * self.asked_ns / self.period_ns;
        if periods > LATE {
            let further = periods.min(MOST_PERIODS).round() as u64 - 1;
            let registers = sample.registers.filter(|_| sample.in_kernel);
            self.unplaced += if sample.in_kernel { 0 } else { further };
            events.extend((0..further).map(|_| Event::Sample(Sample { registers, ..sample })));
        }
    }

    fn take_part(&mut self, part: &Part, time_ns: impl Fn(u64) -> u64, events: &mut Vec<Event>) {
        if part.state.load(Acquire) != state::READY {
            return;
        }
        let (process, ticks) = (part.process.load(Relaxed), part.ticks.load(Relaxed));
        let length = (part.length.load(Relaxed) as usize).min(part.text.len());
        let text = Text {
            number: part.number.load(Relaxed),
            is_last: part.is_last.load(Relaxed) != 0,
            text: part.text[..length].iter().map(|byte| byte.load(Relaxed)).collect(),
        };
        let name = part.name.iter().map(|byte| byte.load(Relaxed)).take_while(|&byte| byte != 0).collect();
        part.state.store(state::FREE, Release);
        // Just before the sample that told them.
        let time_ns = time_ns(ticks).saturating_sub(1);
        let parts = self.parts.entry((process, ticks)).or_default();
        parts.push(text);
        parts.sort_unstable_by_key(|part| part.number);
        let is_whole = parts.iter().zip(0..).all(|(part, number)| part.number == number)
            && parts.last().is_some_and(|part| part.is_last);
        if is_whole {
            let whole = parts.iter().flat_map(|part| &part.text).copied().collect::<Vec<u8>>();
            self.parts.remove(&(process, ticks));
            events.push(Event::Named { process, thread: process, name, executed: false, time_ns });
            self.tell(process, &whole, time_ns, events);
        }
    }

    /// What of this text is new is dated to when the last one was told, or when the process began:
    /// samples and allocations since then may be in it.
    fn tell(&mut self, process: u32, text: &[u8], time_ns: u64, events: &mut Vec<Event>) {
        let known = self.processes.entry(process).or_default();
        let since_ns = if known.told_ns == 0 { time_ns } else { known.told_ns };
        for line in text.split(|&byte| byte == b'\n') {
            if !known.lines.contains(line) {
                known.lines.insert(line.to_vec());
                events.extend(mapping(line, process, since_ns).map(Event::Mapped));
            }
        }
        known.told_ns = time_ns.max(known.told_ns);
    }

    /// Reads what sampled processes have mapped, and notices which have ended.
    fn poll(&mut self, now_ns: u64, events: &mut Vec<Event>) {
        // Of a process that was not sampled allocations may be told.
        let is_due = |known: &Known| {
            now_ns.saturating_sub(known.polled_ns) >= POLL_NS && (known.was_sampled || known.lines.is_empty())
        };
        let due: Vec<u32> = self.processes.iter().filter(|(_, k)| is_due(k)).map(|(id, _)| *id).collect();
        for process in due {
            match std::fs::read(format!("/proc/{process}/maps")) {
                // Empty for a process that has ended and is not waited for.
                Ok(text) if text.is_empty() => {}
                // Another process, if it has not our memory: in another name space of processes
                // numbers are others.
                Ok(text) if is_ours(&text) => self.tell(process, &text, now_ns, events),
                Ok(_) => {}
                Err(_) => {
                    self.processes.remove(&process);
                    events.push(Event::Ended { process, time_ns: now_ns });
                    continue;
                }
            }
            self.processes.entry(process).or_default().polled_ns = now_ns;
        }
    }
}

fn is_ours(maps: &[u8]) -> bool {
    let name = format!("/memfd:{MEMORY_NAME}");
    maps.windows(name.len()).any(|window| window == name.as_bytes())
}

fn take_stack(stack: &Stack, time_ns: impl Fn(u64) -> u64) -> Option<Event> {
    if stack.state.load(Acquire) != state::READY {
        return None;
    }
    let (registers, in_kernel) = registers(&stack.registers);
    let sample = Sample {
        process: stack.process.load(Relaxed),
        thread: stack.thread.load(Relaxed),
        time_ns: time_ns(stack.ticks.load(Relaxed)),
        in_kernel,
        ip: Some(registers.ip),
        registers: Some(registers),
    };
    let length = (stack.length.load(Relaxed) as usize).min(STACK_BYTES);
    let bytes = stack.words[..length / 8].iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
    stack.state.store(state::FREE, Release);
    Some(Event::Stack(sample, bytes))
}

/// The registers, and whether the thread was in the kernel: a system call leaves in RCX where it
/// returns to. One that is begun again has gone back to its instruction.
fn registers(told: &[AtomicU64; 17]) -> (Registers, bool) {
    let general: [u64; 16] = std::array::from_fn(|number| told[number].load(Relaxed));
    let ip = told[16].load(Relaxed);
    let in_kernel = general[RCX] == ip || general[RCX] == ip.wrapping_add(SYSCALL_BYTES);
    (Registers { general, ip: Avma(if in_kernel { general[RCX] } else { ip }) }, in_kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(in_kernel: bool) -> Sample {
        let registers = Some(Registers { ip: Avma(0x40_1000), ..Registers::default() });
        Sample {
            process: 5,
            thread: 6,
            time_ns: 9,
            in_kernel,
            ip: registers.map(|r: Registers| r.ip),
            registers,
        }
    }

    fn weighed(in_kernel: bool, overrun: u32) -> (usize, usize) {
        let mut reader = Reader::of(1_000_000, 4_000_000);
        let mut events = Vec::new();
        reader.weigh(sample(in_kernel), overrun, &mut events);
        let placed = |event: &&Event| matches!(event, Event::Sample(s) if s.registers.is_some());
        (events.len(), events.iter().filter(placed).count())
    }

    #[test]
    fn late_samples_stand_for_the_time_since_the_last_one() {
        assert_eq!(weighed(false, 3), (1, 1), "one period");
        assert_eq!(weighed(false, 39), (10, 1), "where nine of ten were is not known");
        assert_eq!(weighed(true, 39), (10, 10), "in the kernel all the time");
        assert_eq!(weighed(true, u32::MAX).0 as f64, MOST_PERIODS);
    }

    #[test]
    fn the_frequency_is_that_of_the_usual_sample() {
        let mut reader = Reader::of(250_000, 4_000_000);
        assert_eq!(reader.frequency(), None);
        for overrun in [15; 90].into_iter().chain([400; 30]) {
            reader.weigh(sample(false), overrun, &mut Vec::new());
        }
        let found = reader.frequency().unwrap();
        assert!(found.value == 250.0 && found.lo < 250.0 && found.hi < 260.0, "{found:?}");
    }

    #[test]
    fn samples_behind_system_calls_are_of_the_kernel() {
        let told = |rcx: u64, rip: u64| {
            let told: [AtomicU64; 17] = std::array::from_fn(|_| AtomicU64::new(0));
            told[RCX].store(rcx, Relaxed);
            told[16].store(rip, Relaxed);
            let (registers, in_kernel) = registers(&told);
            (registers.ip.0, in_kernel)
        };
        assert_eq!(told(7, 0x1000), (0x1000, false));
        assert_eq!(told(0x1000, 0x1000), (0x1000, true));
        assert_eq!(told(0x1002, 0x1000), (0x1002, true), "begun again");
    }

    #[test]
    fn new_mappings_are_dated_to_the_last_telling() {
        let mut reader = Reader::of(1, 1);
        let mut events = Vec::new();
        let first = b"1000-2000 r-xp 00000000 08:01 7 /bin/x\n";
        let both = [&first[..], b"3000-4000 r-xp 00000000 08:01 8 /lib/y\n"].concat();
        reader.tell(5, first, 100, &mut events);
        reader.tell(5, &both, 200, &mut events);
        let mapped: Vec<(u64, u64)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Mapped(new) => Some((new.start, new.time_ns)),
                _ => None,
            })
            .collect();
        assert_eq!(mapped, [(0x1000, 100), (0x3000, 100)]);
    }
}
