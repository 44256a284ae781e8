//! What the process has mapped, copied for the profiler: it cannot read that of a process that has
//! ended. The first sample of a process tells it, and later ones as samples become more, since
//! programs map libraries while they run.
//!
//! Nothing is opened by a process in a sandbox.

use super::layout::{Clock, PART_BYTES, Part};
use super::state;
use crate::layout::state as buffer;
use crate::sys::{nr, syscall};
use core::ffi::CStr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// Samples of this process so far.
static SAMPLES: AtomicU32 = AtomicU32::new(0);
/// More than any text that is worth it.
const MOST_PARTS: u32 = 16;

/// Of a new process nothing was told yet.
pub(super) fn forget() {
    SAMPLES.store(0, Relaxed);
}

/// Called at each sample: copies at the first one, the fourth, the sixteenth, and so on.
pub(super) fn sampled(clock: &Clock, process: u32, ticks: u64) {
    let number = SAMPLES.fetch_add(1, Relaxed).wrapping_add(1);
    if number.is_power_of_two() && number.trailing_zeros() % 2 == 0 && !state::is_in_sandbox() {
        copy(clock, process, ticks);
    }
}

fn copy(clock: &Clock, process: u32, ticks: u64) {
    let mut name = [0; 16];
    if let Some(file) = File::open(c"/proc/self/comm") {
        let length = file.read(name.as_mut_ptr(), name.len() - 1);
        if let Some(end) = name[..length].iter().rposition(|&byte| byte == b'\n') {
            name[end] = 0;
        }
    }
    let Some(file) = File::open(c"/proc/self/maps") else { return };
    for number in 0..MOST_PARTS {
        let is_free = |part: &&Part| {
            part.state.compare_exchange(buffer::FREE, buffer::WRITTEN, AcqRel, Relaxed).is_ok()
        };
        let Some(part) = clock.parts.iter().find(is_free) else { return };
        let mut length = 0;
        let is_last = loop {
            // The kernel gives less than was asked for.
            let to = part.text[length..].as_ptr().cast_mut().cast();
            match file.read(to, PART_BYTES - length) {
                0 => break true,
                read => length += read,
            }
            if length == PART_BYTES {
                break false;
            }
        };
        part.process.store(process, Relaxed);
        part.ticks.store(ticks, Relaxed);
        part.number.store(number, Relaxed);
        part.is_last.store(u32::from(is_last), Relaxed);
        part.length.store(length as u64, Relaxed);
        for (to, byte) in part.name.iter().zip(name) {
            to.store(byte, Relaxed);
        }
        part.state.store(buffer::READY, Release);
        if is_last {
            return;
        }
    }
}

struct File(usize);

impl File {
    fn open(path: &CStr) -> Option<Self> {
        const AT_FDCWD: usize = -100_isize as usize;
        const O_CLOEXEC: usize = 0o2000000;
        // SAFETY: a string with its zero.
        let file = unsafe { syscall(nr::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0]) };
        usize::try_from(file).ok().map(Self)
    }

    /// Reads at most `most` bytes to an address that has space for them; how many were read.
    fn read(&self, to: *mut u8, most: usize) -> usize {
        // SAFETY: the callers' memory, which is atomics or their own.
        let read = unsafe { syscall(nr::READ, [self.0, to as usize, most, 0, 0, 0]) };
        usize::try_from(read).unwrap_or(0)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the file was opened by us.
        unsafe { syscall(nr::CLOSE, [self.0, 0, 0, 0, 0, 0]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::region;
    use core::sync::atomic::Ordering::Acquire;

    #[test]
    fn all_mappings_are_told_in_parts() {
        let region = region(1);
        let clock = region.clock().unwrap();
        copy(clock, 5, 77);
        let mut text = Vec::new();
        for part in clock.parts.iter().filter(|part| part.state.load(Acquire) == buffer::READY) {
            assert_eq!((part.process.load(Relaxed), part.ticks.load(Relaxed)), (5, 77));
            text.extend(part.text[..part.length.load(Relaxed) as usize].iter().map(|b| b.load(Relaxed)));
        }
        let text = String::from_utf8(text).unwrap();
        assert!(text.ends_with('\n') && text.contains("[stack]"), "{text}");
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(clock.parts[0].name[0].load(Relaxed), name.as_bytes()[0]);
    }
}
