//! The memory that the profiler shares with the traced processes: chunks of accesses, taken as they
//! are handed over. What processes write is not believed further than it must be.

use heap::traces::layout::{
    CHUNK_BYTES, CHUNKS, CHUNKS_AT, ENTRIES, Entry, Header, MAGIC, MEMORY_NAME, REGION_BYTES, STATES_AT,
    State, state,
};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// An access as a twin wrote it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub address: u64,
    pub place: u64,
}

/// The thread and process a chunk is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Writer {
    pub process: u32,
    pub thread: u32,
}

pub(crate) struct Memory {
    file: OwnedFd,
    at: NonNull<u8>,
}

impl Memory {
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create(MEMORY_NAME, MemfdFlags::CLOEXEC)?;
        ftruncate(&file, REGION_BYTES as u64)?;
        // SAFETY: a new mapping of a descriptor that we own, wherever the kernel likes.
        let at = unsafe {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            libc::mmap(std::ptr::null_mut(), REGION_BYTES, protection, flags, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast::<u8>()).expect("the kernel maps nothing at address zero unasked");
        let memory = Self { file, at };
        memory.header().magic.store(MAGIC, Release);
        Ok(memory)
    }

    /// Where other processes of this user open it while this process lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped as long as this value lives, aligned to a page, all atomics.
        unsafe { self.at.cast::<Header>().as_ref() }
    }

    fn state(&self, chunk: usize) -> &State {
        assert!(chunk < CHUNKS, "a chunk that is none");
        // SAFETY: as above; the states lie behind the header, and there are as many as chunks.
        unsafe { self.at.add(STATES_AT).cast::<State>().add(chunk).as_ref() }
    }

    fn entries(&self, chunk: usize) -> &[Entry] {
        assert!(chunk < CHUNKS, "a chunk that is none");
        // SAFETY: as above; the region ends behind the last chunk.
        unsafe {
            let first = self.at.add(CHUNKS_AT + chunk * CHUNK_BYTES).cast::<Entry>();
            std::slice::from_raw_parts(first.as_ptr(), ENTRIES)
        }
    }

    /// Processes that the library came into.
    pub(crate) fn processes(&self) -> u32 {
        self.header().processes.load(Relaxed)
    }

    /// Threads that gave up.
    pub(crate) fn gave_up(&self) -> u32 {
        self.header().gave_up.load(Relaxed)
    }

    /// Waits until a chunk is handed over, or a time is over.
    pub(crate) fn wait(&self, most: Duration) {
        let word = &self.header().any_full;
        let now = word.load(Acquire);
        if (0..CHUNKS).any(|chunk| self.state(chunk).state.load(Relaxed) == state::FULL) {
            return;
        }
        let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
        futex(word, libc::FUTEX_WAIT, now, &raw const time);
    }

    /// Takes the full chunks in the order in which they were handed over.
    pub(crate) fn drain(&self, with: &mut dyn FnMut(Writer, &[Told])) -> usize {
        let mut full: Vec<(u64, usize)> = (0..CHUNKS)
            .filter(|&chunk| self.state(chunk).state.load(Acquire) == state::FULL)
            .map(|chunk| (self.state(chunk).sequence.load(Relaxed), chunk))
            .collect();
        full.sort_unstable();
        let mut told = Vec::with_capacity(ENTRIES);
        for &(_, chunk) in &full {
            self.take(chunk, &mut told, with);
        }
        full.len()
    }

    /// Takes what chunks hold that nobody hands over any more: their threads ended otherwise.
    pub(crate) fn drain_rest(&self, with: &mut dyn FnMut(Writer, &[Told])) {
        while self.drain(with) > 0 {}
        let mut told = Vec::with_capacity(ENTRIES);
        for chunk in (0..CHUNKS).filter(|&chunk| self.state(chunk).state.load(Acquire) == state::TAKEN) {
            self.take(chunk, &mut told, with);
        }
    }

    fn take(&self, chunk: usize, told: &mut Vec<Told>, with: &mut dyn FnMut(Writer, &[Told])) {
        told.clear();
        // The first entry stays free.
        for entry in &self.entries(chunk)[1..] {
            let place = entry.place.load(Relaxed);
            if place == 0 {
                break;
            }
            told.push(Told { address: entry.address.load(Relaxed), place });
            entry.place.store(0, Relaxed);
        }
        let about = self.state(chunk);
        let writer = Writer { process: about.process.load(Relaxed), thread: about.thread.load(Relaxed) };
        if about.state.load(Relaxed) == state::FULL {
            about.state.store(state::FREE, Release);
            let word = &self.header().any_free;
            word.fetch_add(1, Release);
            futex(word, libc::FUTEX_WAKE, 1, std::ptr::null());
        }
        with(writer, told);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size; nothing borrowed from it outlives the value.
        unsafe { libc::munmap(self.at.as_ptr().cast(), REGION_BYTES) };
    }
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, time: *const libc::timespec) {
    // SAFETY: a word of the shared memory; the time is null or one of the caller's.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, time, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use twin_format::trace;

    #[test]
    fn library_and_twins_agree_on_chunks() {
        assert_eq!((trace::CHUNK_BYTES, trace::ENTRY_BYTES), (CHUNK_BYTES, size_of::<Entry>()));
    }

    #[test]
    fn chunks_come_in_the_order_of_their_sequence_and_are_free_again() {
        let memory = Memory::new().unwrap();
        for (chunk, sequence) in [(3, 7), (9, 5)] {
            for entry in &memory.entries(chunk)[1..=2] {
                entry.address.store(sequence, Relaxed);
                entry.place.store(1, Relaxed);
            }
            let about = memory.state(chunk);
            about.sequence.store(sequence, Relaxed);
            about.state.store(state::FULL, Release);
        }
        let mut seen = Vec::new();
        let mut see = |_: Writer, told: &[Told]| seen.extend(told.iter().map(|told| told.address));
        assert_eq!(memory.drain(&mut see), 2);
        assert_eq!(memory.drain(&mut see), 0);
        assert_eq!(seen, [5, 5, 7, 7]);
        assert!(memory.entries(3).iter().all(|entry| entry.place.load(Relaxed) == 0));
    }
}
