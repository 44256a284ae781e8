//! Opens events: that which samples CPU time, and breakpoints.

use crate::perf_data::attributes::field;
use records::profile::Backend;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` as of its fifth version, which every kernel since 4.1 knows.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period_or_frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const TYPE_SOFTWARE: u32 = 1;
const TYPE_BREAKPOINT: u32 = 5;
const COUNT_SW_CPU_CLOCK: u64 = 0;

/// What each sample holds; `event.rs` takes it apart in this order.
const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const EXCLUDE_IDLE: u64 = 1 << 7;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const FREQUENCY: u64 = 1 << 10;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
/// Where in the flags it stands how exactly the instruction is wanted.
const PRECISE_BITS: u32 = 15;
const MMAP_DATA: u64 = 1 << 17;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_KERNEL_CALLS: u64 = 1 << 21;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;

/// The general registers and the instruction pointer, by their bits in the kernel's header: AX, BX,
/// CX, DX, SI, DI, BP, SP, IP, and R8 to R15.
const REGISTERS: u64 = 0x1ff | 0xff << 16;

/// Arguments of `perf_event_open`.
const NO_GROUP: i32 = -1;
const CLOSE_ON_EXEC: u64 = 1 << 3;
/// In place of a thread stands the descriptor of a control group's directory.
const OF_CGROUP: u64 = 1 << 2;
const ALL_PROCESSES: u32 = u32::MAX;

/// What to sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Samples a second of each thread's CPU time.
    pub frequency_hz: u64,
    pub with_kernel: bool,
    /// It begins when the thread executes a program, not at once.
    pub from_exec: bool,
    /// Half of a ring, in bytes: when so much is in it, its reader is woken.
    pub wake_at_bytes: u32,
    pub holds: Holds,
}

impl Clock {
    /// What attributes of all kinds of events have alike.
    fn attributes(&self, flags: u64) -> Attributes {
        let kernel = if self.with_kernel { 0 } else { EXCLUDE_KERNEL };
        let begin = if self.from_exec { DISABLED | ENABLE_ON_EXEC } else { 0 };
        Attributes {
            size: size_of::<Attributes>() as u32,
            sample_period_or_frequency: self.frequency_hz,
            flags: flags | kernel | begin,
            wakeup: self.wake_at_bytes,
            sample_regs_user: REGISTERS,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        }
    }
}

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Registers at each sample, and what processes map, how they are named, and whom they make.
    Registers,
    /// Registers and as much of the stack, in bytes, at each sample; nothing else.
    Stacks(u32),
    /// Loads and stores that the hardware chooses, and the same as `Registers` beside them.
    Accesses(AccessEvent),
}

/// An event by which the hardware samples loads and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessEvent {
    pub backend: Backend,
    /// The number of its PMU.
    pub kind: u32,
    pub config: [u64; 3],
    /// How exactly the sampled instruction is wanted, from 0 to 3.
    pub precise: u64,
    /// It can leave out what the kernel accesses.
    pub excludes_kernel: bool,
}

impl AccessEvent {
    /// What each of its samples holds. The raw part has the registers of AMD's sampling.
    pub(crate) fn sample_type(&self) -> u64 {
        let raw = if self.backend == Backend::Ibs { field::RAW } else { 0 };
        let identity = field::IP | field::TID | field::TIME;
        identity | field::ADDR | field::PERIOD | field::CALLCHAIN | raw | field::WEIGHT | field::DATA_SRC
    }
}

/// Opens the event for a thread on one CPU. Threads and processes that it makes are sampled too.
pub(crate) fn open(clock: Clock, thread: u32, cpu: u32) -> io::Result<OwnedFd> {
    open_event(&attributes(clock, INHERIT), thread, cpu as i32)
}

/// Opens the event for all threads of a CPU, or for those of a control group, by its directory.
/// Idle time is left out. Of what processes map, only code is told: of data there is too much.
pub(crate) fn open_for_all(clock: Clock, cpu: u32, cgroup: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let mut attributes = attributes(clock, EXCLUDE_IDLE);
    attributes.flags &= !MMAP_DATA;
    match cgroup {
        None => open_event(&attributes, ALL_PROCESSES, cpu as i32),
        Some(group) => open_event_with(&attributes, group.as_raw_fd() as u32, cpu as i32, OF_CGROUP),
    }
}

/// The attributes of this clock's event.
fn attributes(clock: Clock, whose: u64) -> Attributes {
    let mut flags = whose | EXCLUDE_HYPERVISOR | FREQUENCY | WATERMARK | SAMPLE_ID_ALL | USE_CLOCKID;
    let mut sample_type = SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_REGS_USER;
    let mut stack_bytes = 0;
    match clock.holds {
        Holds::Registers => flags |= MMAP | COMM | TASK | MMAP_DATA | MMAP2 | COMM_EXEC,
        Holds::Accesses(event) => {
            flags |= MMAP | COMM | TASK | MMAP_DATA | MMAP2 | COMM_EXEC | EXCLUDE_KERNEL_CALLS;
            flags |= event.precise << PRECISE_BITS;
            return Attributes {
                kind: event.kind,
                config: event.config[0],
                config1: event.config[1],
                config2: event.config[2],
                sample_type: event.sample_type(),
                sample_regs_user: 0,
                ..clock.attributes(flags)
            };
        }
        Holds::Stacks(bytes) => {
            sample_type |= SAMPLE_STACK_USER;
            stack_bytes = bytes;
        }
    }
    Attributes {
        kind: TYPE_SOFTWARE,
        config: COUNT_SW_CPU_CLOCK,
        sample_type,
        sample_stack_user: stack_bytes,
        ..clock.attributes(flags)
    }
}

/// Stops a thread this number of times before it executes the instruction at an address, with the
/// signal SIGTRAP, until the event is closed. The event is not good for a second time: kernels
/// leave it stopped when the number is used up.
pub(crate) fn open_breakpoint(thread: u32, address: u64, times: u32) -> io::Result<OwnedFd> {
    const REFRESH: libc::Ioctl = 0x2402;
    const ON_EXECUTION: u32 = 4;
    const LENGTH: u64 = 8;
    const ANY_CPU: i32 = -1;
    let attributes = Attributes {
        kind: TYPE_BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        sample_period_or_frequency: 1,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | REMOVE_ON_EXEC | SIGTRAP,
        breakpoint_type: ON_EXECUTION,
        config1: address,
        config2: LENGTH,
        ..Attributes::default()
    };
    let event = open_event(&attributes, thread, ANY_CPU)?;
    // SAFETY: a descriptor of an event; the request takes a number by value.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), REFRESH, times) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(event) }
}

fn open_event(attributes: &Attributes, thread: u32, cpu: i32) -> io::Result<OwnedFd> {
    open_event_with(attributes, thread, cpu, 0)
}

fn open_event_with(attributes: &Attributes, thread: u32, cpu: i32, flags: u64) -> io::Result<OwnedFd> {
    // SAFETY: the attributes are a whole `perf_event_attr` of the size that they state, and live
    // until the call is over.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            thread as libc::pid_t,
            cpu,
            NO_GROUP,
            CLOSE_ON_EXEC | flags,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Lets an event sample, or no longer.
pub(crate) fn set_enabled(event: &OwnedFd, enabled: bool) {
    const ENABLE: libc::Ioctl = 0x2400;
    const DISABLE: libc::Ioctl = 0x2401;
    let request = if enabled { ENABLE } else { DISABLE };
    // SAFETY: a descriptor of an event; the request takes a flag by value. It cannot fail.
    unsafe { libc::ioctl(event.as_raw_fd(), request, 0) };
}

/// Lets an event write into the ring of another one of the same CPU.
pub(crate) fn write_into(event: &OwnedFd, owner: &OwnedFd) -> io::Result<()> {
    const SET_OUTPUT: libc::Ioctl = 0x2405;
    // SAFETY: both are descriptors of events; the request takes a descriptor by value.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, owner.as_raw_fd()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The CPUs that there may be; those that are offline refuse events.
pub(crate) fn cpus() -> Vec<u32> {
    let configured = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = configured.trim().rsplit(['-', ',']).next().and_then(|last| last.parse().ok());
    (0..=last.unwrap_or(0)).collect()
}

/// The most samples a second that the kernel lets an event take.
pub(crate) fn highest_frequency_hz() -> u64 {
    let limit = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or_default();
    limit.trim().parse().unwrap_or(u64::MAX)
}

/// The time on the clock that events have.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
