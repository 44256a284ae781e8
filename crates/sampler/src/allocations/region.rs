//! The memory that the preloaded library writes into. The profiler owns it as a memory file, which
//! processes open by its path under `/proc`; nothing of it outlives the profiler.
//!
//! What processes write is not believed further than it must be: it may be wrong, never unsafe.

use crate::perf::open::now_ns;
use heap::clock::layout::Clock;
use heap::layout::{self, Probe, Region as Memory, SLOTS, STACK_BYTES, STACKS, kind, region_bytes, state};
use insight::samples::Registers;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use units::{Avma, Bytes};

/// What a record told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Allocated {
        address: u64,
        size: u64,
        return_address: u64,
        key: u64,
        is_kept: bool,
    },
    Freed {
        address: u64,
    },
    /// Memory that no file has was mapped.
    Mapped {
        address: u64,
        size: u64,
        return_address: u64,
        key: u64,
    },
    Unmapped {
        address: u64,
        size: u64,
    },
    Lowered {
        threshold: u32,
    },
    Began {
        is_interposed: bool,
    },
    Probed {
        ip: u64,
        address: u64,
        thread: u32,
        ticks: (u32, u32),
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub process: u32,
    pub time_ns: u64,
    pub what: What,
}

/// Registers and stack of an allocation, as they are when the allocating function has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub process: u32,
    pub key: u64,
    pub registers: Registers,
    pub stack: Vec<u8>,
}

/// The budget: records a second of one ring. One costs the program about 50 ns, and the profiler
/// some more on a CPU that may be another one: less than 1% of the time of each.
const RECORDS_A_SECOND: u64 = 40_000;
/// A slot that stays unfinished while others behind it are done is passed over after this number of
/// readings: its process was killed.
const PATIENCE: u32 = 10;

/// What the clock in the processes is set to, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockSettings {
    /// CPU time between two expirations.
    pub period_ns: u64,
    /// A stack is copied at one sample of this number; 0 for none.
    pub stack_every: u32,
}

pub(crate) struct Region {
    file: OwnedFd,
    at: NonNull<u8>,
    memory: Memory,
    /// The time stamp counter and the clock at the beginning.
    began: (u64, u64),
    /// By ring, how often the next slot was found unfinished.
    unfinished: Vec<u32>,
    pub passed_over: u64,
    is_busy: bool,
    /// As it was at the last reading.
    threshold: u32,
}

impl Region {
    pub(crate) fn new(cpus: usize, clock: Option<ClockSettings>) -> io::Result<Self> {
        let rings = cpus.next_power_of_two().clamp(2, layout::MOST_RINGS as usize) as u32;
        let bytes = region_bytes(rings, clock.is_some());
        let file = memfd_create(layout::MEMORY_NAME, MemfdFlags::CLOEXEC)?;
        // All of it is there from the beginning: a process that writes never finds it missing.
        fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)?;
        // SAFETY: a new mapping of a descriptor that we own, wherever the kernel likes.
        let at = unsafe {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast::<u8>()).expect("the kernel maps nothing at address zero unasked");
        // SAFETY: mapped above with this size, page-aligned, until this value is dropped.
        let memory = unsafe { Memory::new(at.as_ptr(), rings, clock.is_some()) };
        let unfinished = vec![0; rings as usize];
        let region = Self {
            file,
            at,
            memory,
            began: now(),
            unfinished,
            passed_over: 0,
            is_busy: false,
            threshold: u32::MAX,
        };
        let header = memory.header();
        header.rings.store(rings, Relaxed);
        header.read_mostly.threshold.store(u32::MAX, Relaxed);
        header.read_mostly.large_from.store(layout::LARGE_FROM, Relaxed);
        let ticks_a_second = ticks_a_second();
        header.least_ticks.store(layout::STRETCH * ticks_a_second / RECORDS_A_SECOND, Relaxed);
        if let Some((settings, clock)) = clock.zip(memory.clock()) {
            clock.period_ns.store(settings.period_ns, Relaxed);
            clock.stack_every.store(settings.stack_every, Relaxed);
            header.has_clock.store(1, Relaxed);
        }
        header.magic.store(layout::MAGIC, Release);
        Ok(region)
    }

    /// Where other processes of this user open it while this process lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// No allocation is recorded.
    pub(crate) fn forgo_allocations(&self) {
        let mostly = &self.memory.header().read_mostly;
        mostly.threshold.store(0, Relaxed);
        mostly.large_from.store(u64::MAX, Relaxed);
    }

    /// Only allocations of this size and more are recorded.
    pub(crate) fn only_from(&self, size: Bytes) {
        let mostly = &self.memory.header().read_mostly;
        mostly.threshold.store(0, Relaxed);
        mostly.large_from.store(size.0, Relaxed);
    }

    pub(crate) fn clock(&self) -> Option<&Clock> {
        self.memory.clock()
    }

    /// The memory itself, for a clock in this process.
    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// Fewer pages are chosen from now on.
    pub(crate) fn lower(&self, threshold: u32) {
        self.memory.header().read_mostly.threshold.fetch_min(threshold, Relaxed);
    }

    /// What the library is told of the loads that are probed.
    pub(crate) fn probe(&self, number: u32) -> &Probe {
        self.memory.probe(number)
    }

    /// Lets one of the library's functions write into it.
    ///
    /// # Safety
    /// As the function's.
    pub(crate) unsafe fn probed(
        &self,
        process: u32,
        ip: u64,
        general: &heap::probe::General,
        probe: unsafe fn(&Memory, u32, u64, &heap::probe::General) -> bool,
    ) -> bool {
        // SAFETY: the caller's.
        unsafe { probe(&self.memory, process, ip, general) }
    }

    /// Ticks of the time stamp counter in a nanosecond, since the beginning.
    pub(crate) fn ticks_a_ns(&self) -> f64 {
        let now = now();
        now.0.wrapping_sub(self.began.0) as f64 / (now.1 - self.began.1).max(1) as f64
    }

    /// Records that found no space.
    pub(crate) fn lost(&self) -> u64 {
        self.memory.header().shared.lost.load(Relaxed)
    }

    /// Whether the next reading should come soon, by what was written before the last one.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Appends what was written since the last time: records, and the stacks that they refer to.
    pub(crate) fn drain(&mut self, told: &mut Vec<Told>, copied: &mut Vec<Copied>) {
        let now = now();
        let before = told.len();
        for ring in 0..self.memory.rings() {
            self.drain_ring(ring, now, told);
        }
        // Where the ring was full, this was not told.
        let threshold = self.memory.header().read_mostly.threshold.load(Relaxed);
        if threshold < self.threshold {
            self.threshold = threshold;
            told.push(Told { process: 0, time_ns: now.1, what: What::Lowered { threshold } });
        }
        let stacks = copied.len();
        // A stack is ready before a record refers to it. So all that those above refer to are here.
        for number in 0..STACKS {
            copied.extend(self.take_stack(number));
        }
        let filled = copied.len() - stacks;
        self.is_busy = told.len() - before > SLOTS as usize / 8 || filled > STACKS as usize / 8;
    }

    fn drain_ring(&mut self, ring: u32, now: (u64, u64), told: &mut Vec<Told>) {
        let head = self.memory.head(ring);
        let mut tail = head.reader.tail.load(Relaxed);
        let written = head.head.load(Acquire);
        // More than the slots there are was never given out.
        let waiting = written.wrapping_sub(tail).min(SLOTS);
        for _ in 0..waiting {
            let slot = self.memory.slot(ring, tail);
            if slot.sequence.load(Acquire) == tail.wrapping_add(1) {
                let kind = slot.kind.load(Relaxed);
                let address = slot.address.load(Relaxed);
                let what = match kind & 0xffff_ffff {
                    kind::ALLOCATED => Some(What::Allocated {
                        address,
                        size: slot.size.load(Relaxed),
                        return_address: slot.return_address.load(Relaxed),
                        key: slot.key.load(Relaxed),
                        is_kept: slot.is_kept.load(Relaxed) != 0,
                    }),
                    kind::FREED => Some(What::Freed { address }),
                    kind::MAPPED => Some(What::Mapped {
                        address,
                        size: slot.size.load(Relaxed),
                        return_address: slot.return_address.load(Relaxed),
                        key: slot.key.load(Relaxed),
                    }),
                    kind::UNMAPPED => Some(What::Unmapped { address, size: slot.size.load(Relaxed) }),
                    kind::LOWERED => Some(What::Lowered { threshold: address as u32 }),
                    kind::BEGAN => Some(What::Began { is_interposed: address != 0 }),
                    kind::PROBED => Some(What::Probed {
                        ip: slot.return_address.load(Relaxed),
                        address,
                        thread: slot.key.load(Relaxed) as u32,
                        ticks: heap::probe::unpacked(slot.size.load(Relaxed)),
                    }),
                    _ => None,
                };
                let time_ns = self.time_ns(slot.ticks.load(Relaxed), now);
                told.extend(what.map(|what| Told { process: (kind >> 32) as u32, time_ns, what }));
            } else {
                let count = &mut self.unfinished[ring as usize];
                *count += 1;
                if *count < PATIENCE {
                    break;
                }
                self.passed_over += 1;
            }
            self.unfinished[ring as usize] = 0;
            tail = tail.wrapping_add(1);
            head.reader.tail.store(tail, Release);
        }
    }

    /// The time of a tick, by the rate since the beginning.
    pub(crate) fn time_ns(&self, ticks: u64, now: (u64, u64)) -> u64 {
        let (elapsed, elapsed_ns) = (now.0.wrapping_sub(self.began.0), now.1.saturating_sub(self.began.1));
        let before_now = now.0.wrapping_sub(ticks) as i64;
        let ns = before_now as f64 * elapsed_ns as f64 / elapsed.max(1) as f64;
        now.1.saturating_add_signed(-(ns as i64))
    }

    fn take_stack(&self, number: u32) -> Option<Copied> {
        /// The numbers of RBX, RBP, R12 to R15, and of RSP.
        const KEPT: [usize; 6] = [3, 5, 12, 13, 14, 15];
        const RSP: usize = 4;
        let buffer = self.memory.stack(number);
        if buffer.state.load(Acquire) != state::READY {
            return None;
        }
        let length = (buffer.length.load(Relaxed) as usize).min(STACK_BYTES);
        let stack =
            buffer.words[..length / 8].iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let mut registers = Registers { ip: Avma(buffer.ip.load(Relaxed)), ..Registers::default() };
        for (number, value) in KEPT.into_iter().zip(&buffer.kept) {
            registers.general[number] = value.load(Relaxed);
        }
        registers.general[RSP] = buffer.sp.load(Relaxed);
        let (process, key) = (buffer.process.load(Relaxed), buffer.key.load(Relaxed));
        let _ = buffer.state.compare_exchange(state::READY, state::FREE, AcqRel, Relaxed);
        Some(Copied { process, key, registers, stack })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe {
            libc::munmap(
                self.at.as_ptr().cast(),
                region_bytes(self.memory.rings(), self.memory.clock().is_some()),
            )
        };
    }
}

/// The time stamp counter and the clock that events have, read together.
pub(crate) fn now() -> (u64, u64) {
    // SAFETY: every x86-64 has it.
    (unsafe { std::arch::x86_64::_rdtsc() }, now_ns())
}

fn ticks_a_second() -> u64 {
    let before = now();
    std::thread::sleep(std::time::Duration::from_millis(2));
    let after = now();
    let (ticks, ns) = (after.0.wrapping_sub(before.0), after.1 - before.1);
    (ticks as f64 / ns.max(1) as f64 * 1e9) as u64
}

/// Whether the time stamp counter is good for ordering what different CPUs do.
pub(crate) fn ticks_are_steady() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.split_whitespace().any(|word| word == *flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(region: &Region, ring: u32, kind: u64, address: u64) {
        let head = region.memory.head(ring);
        let number = head.head.fetch_add(1, Relaxed);
        let slot = region.memory.slot(ring, number);
        slot.kind.store(kind | 7 << 32, Relaxed);
        slot.address.store(address, Relaxed);
        slot.ticks.store(now().0, Relaxed);
        slot.sequence.store(number + 1, Release);
    }

    #[test]
    fn records_are_read_with_their_times() {
        let mut region = Region::new(1, None).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let before = now_ns();
        write(&region, 0, kind::FREED, 0x5000);
        let after = now_ns();
        let (mut told, mut copied) = (Vec::new(), Vec::new());
        region.drain(&mut told, &mut copied);
        assert_eq!((told.len(), told[0].process, told[0].what), (1, 7, What::Freed { address: 0x5000 }));
        let near = before.saturating_sub(100_000)..after + 100_000;
        assert!(near.contains(&told[0].time_ns), "{before} {after} {told:?}");
        region.drain(&mut told, &mut copied);
        assert_eq!(told.len(), 1, "each is read once");
    }

    #[test]
    fn a_slot_that_is_never_finished_is_passed_over() {
        let mut region = Region::new(1, None).unwrap();
        region.memory.head(0).head.fetch_add(1, Relaxed);
        write(&region, 0, kind::FREED, 0x5000);
        let (mut told, mut copied) = (Vec::new(), Vec::new());
        for _ in 0..PATIENCE {
            region.drain(&mut told, &mut copied);
        }
        assert_eq!((told.len(), region.passed_over), (1, 1));
    }

    #[test]
    fn what_a_process_breaks_is_not_believed() {
        let mut region = Region::new(1, None).unwrap();
        region.memory.head(0).head.store(u64::MAX / 2, Relaxed);
        write(&region, 1, 77, 1);
        let buffer = region.memory.stack(3);
        buffer.length.store(u64::MAX, Relaxed);
        buffer.state.store(state::READY, Relaxed);
        let (mut told, mut copied) = (Vec::new(), Vec::new());
        region.drain(&mut told, &mut copied);
        assert_eq!((told.len(), copied[0].stack.len()), (0, STACK_BYTES));
    }
}
