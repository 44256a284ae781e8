//! The memory through which the kernel hands over the events of one CPU.

use crate::perf::open::Holds;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel's page in front of the data, and offsets of its two counters.
const PAGE_BYTES: usize = 4096;
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// Bytes of one CPU's rings: of registers, and of stacks. What users without rights may lock in
/// memory, 516 KiB a CPU, holds both.
pub(crate) const RING_BYTES: usize = 256 << 10;
pub(crate) const STACK_RING_BYTES: usize = 128 << 10;

/// A ring and the event that owns it.
pub(crate) struct Ring {
    event: OwnedFd,
    /// Further events that write into it.
    others: Vec<OwnedFd>,
    at: NonNull<u8>,
    data_bytes: usize,
    holds: Holds,
}

impl Ring {
    /// Maps the ring of an event.
    pub(crate) fn of(event: OwnedFd, holds: Holds) -> io::Result<Self> {
        let data_bytes = match holds {
            Holds::Registers | Holds::Accesses(_) => RING_BYTES,
            Holds::Stacks(_) => STACK_RING_BYTES,
        };
        Self::of_size(event, holds, data_bytes)
    }

    /// The same with this much space for what the event tells.
    pub(crate) fn of_size(event: OwnedFd, holds: Holds, data_bytes: usize) -> io::Result<Self> {
        assert!(data_bytes.is_power_of_two() && data_bytes >= PAGE_BYTES, "{data_bytes}");
        // SAFETY: a new mapping of a descriptor that we own, wherever the kernel likes.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE_BYTES + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).expect("the kernel maps nothing at address zero unasked");
        Ok(Self { event, others: Vec::new(), at, data_bytes, holds })
    }

    pub(crate) fn holds(&self) -> Holds {
        self.holds
    }

    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Keeps an event open that writes into this ring.
    pub(crate) fn keep(&mut self, event: OwnedFd) {
        self.others.push(event);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.event.as_fd()
    }

    /// What its events have counted so far, for all threads and for those that these made.
    pub(crate) fn counted(&self) -> u64 {
        let count = |event: &OwnedFd| {
            let mut count = [0; 8];
            let read = rustix::io::read(event, &mut count);
            if read == Ok(count.len()) { u64::from_le_bytes(count) } else { 0 }
        };
        self.others.iter().chain([&self.event]).map(count).sum()
    }

    /// Appends what the kernel has written since the last time to `out`.
    pub(crate) fn drain(&mut self, out: &mut Vec<u8>) {
        let head = self.counter(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.counter(DATA_TAIL).load(Ordering::Relaxed);
        let waiting = (head.wrapping_sub(tail) as usize).min(self.data_bytes);
        let from = tail as usize % self.data_bytes;
        let first = waiting.min(self.data_bytes - from);
        // SAFETY: both ranges lie in the data behind the first page, and the kernel does not write
        // to them before the tail has moved beyond them, which happens below.
        let (one, two) = unsafe {
            let data = self.at.as_ptr().add(PAGE_BYTES);
            (
                std::slice::from_raw_parts(data.add(from), first),
                std::slice::from_raw_parts(data, waiting - first),
            )
        };
        out.extend_from_slice(one);
        out.extend_from_slice(two);
        self.counter(DATA_TAIL).store(head, Ordering::Release);
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the counters lie in the first page, aligned, for as long as the mapping lives;
        // the kernel changes them with whole stores.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(offset).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody holds a reference into it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), PAGE_BYTES + self.data_bytes) };
    }
}
