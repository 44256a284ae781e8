//! Tries what only trying can tell: opens perf events, reads model-specific registers.
//!
//! The questions and what follows from the answers are in the `host` crate; this is its hand.

use host::probe::{EventSpec, Prober, Refusal};
use std::hint::black_box;
use std::io::Read as _;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;

/// Asks the kernel this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveProber;

/// Touched by every trial, watched by the trial of breakpoints.
static WATCHED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Prober for LiveProber {
    fn event(&self, event: &EventSpec) -> Result<u64, Refusal> {
        let leader = match event.leader {
            Some(config) => {
                let leader =
                    EventSpec { config, config1: 0, precise: 0, period: None, leader: None, ..event.clone() };
                Some(open(&leader, None)?)
            }
            None => None,
        };
        let opened = open(event, leader.as_ref())?;
        work();
        let mut count = [0; 8];
        match std::fs::File::from(opened).read(&mut count) {
            Ok(8) => Ok(u64::from_ne_bytes(count)),
            // Samplers that write elsewhere have nothing to read; that they opened is the answer.
            Ok(_) => Ok(0),
            Err(e) => Err(refusal(&e)),
        }
    }

    fn msr(&self, cpu: u32, register: u32) -> Result<u64, Refusal> {
        let mut value = [0; 8];
        std::fs::File::open(format!("/dev/cpu/{cpu}/msr"))
            .and_then(|f| f.read_exact_at(&mut value, u64::from(register)))
            .map_err(|e| refusal(&e))?;
        Ok(u64::from_ne_bytes(value))
    }
}

fn refusal(error: &std::io::Error) -> Refusal {
    error.raw_os_error().map_or_else(|| Refusal::NotTried(error.to_string()), Refusal::Errno)
}

/// `struct perf_event_attr` up to and with `config2`: every kernel since 2.6.33 knows this much.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
}

const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const PRECISE_SHIFT: u32 = 15;
const BREAKPOINT_READ_WRITE: u32 = 3;
const FLAG_CLOSE_ON_EXEC: libc::c_ulong = 8;

fn open(event: &EventSpec, leader: Option<&OwnedFd>) -> Result<OwnedFd, Refusal> {
    let mut attributes = Attributes {
        kind: event.kind,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        sample_period: event.period.unwrap_or(0),
        sample_type: 0,
        read_format: 0,
        flags: u64::from(event.precise) << PRECISE_SHIFT,
        wakeup_events: 0,
        breakpoint_type: 0,
        config1: event.config1,
        config2: 0,
    };
    if event.exclude_kernel {
        attributes.flags |= EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
    }
    if event.breakpoint {
        attributes.breakpoint_type = BREAKPOINT_READ_WRITE;
        attributes.config1 = (&raw const WATCHED).addr() as u64;
        attributes.config2 = size_of_val(&WATCHED) as u64;
    }
    let group = leader.map_or(-1, AsRawFd::as_raw_fd);
    let (this_thread, any_cpu) = (0, -1);
    // SAFETY: the kernel reads `size` bytes of the attributes, which live through the call, and
    // keeps no pointer.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            group,
            FLAG_CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(refusal(&std::io::Error::last_os_error()));
    }
    // SAFETY: the call gave a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Something for the events to see: arithmetic, loads that miss, and writes to the watched
/// variable.
fn work() {
    let memory = vec![1_u8; 4 << 20];
    let mut sum = 0_u64;
    for line in (0..memory.len()).step_by(4096 + 64) {
        sum += u64::from(black_box(memory[line]));
    }
    for _ in 0..16 {
        WATCHED.fetch_add(black_box(sum), std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn software_clock(kind: u32) -> EventSpec {
        EventSpec {
            name: "task-clock",
            kind,
            config: 1,
            config1: 0,
            precise: 0,
            period: None,
            exclude_kernel: true,
            leader: None,
            breakpoint: false,
        }
    }

    #[test]
    fn answers_are_counts_or_errors() {
        match LiveProber.event(&software_clock(1)) {
            Ok(count) => assert!(count > 0, "a task clock that stands still"),
            Err(Refusal::Errno(e)) => assert!(e > 0),
            Err(Refusal::NotTried(why)) => panic!("tried and not tried: {why}"),
        }
        assert!(matches!(LiveProber.event(&software_clock(0xffff_fff0)), Err(Refusal::Errno(_))));
    }

    #[test]
    fn leaves_no_descriptor_behind() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let _ = LiveProber.event(&software_clock(1));
        let before = open();
        for _ in 0..64 {
            let _ = LiveProber.event(&software_clock(1));
            let _ = LiveProber.msr(0, 0x10);
        }
        // Other tests of this process come and go; a leak would show as 64 or more.
        assert!(open() < before + 48);
    }

    #[test]
    fn a_breakpoint_fires_where_it_opens() {
        let spec =
            EventSpec { name: "breakpoint", kind: 5, config: 0, breakpoint: true, ..software_clock(5) };
        if let Ok(count) = LiveProber.event(&spec) {
            assert!(count >= 16, "{count} hits");
        }
    }
}
