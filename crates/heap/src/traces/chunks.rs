//! Chunks: taken by a thread, and handed over.

use super::layout::{CHUNK_BYTES, CHUNKS, CHUNKS_AT, ENTRY_BYTES, Header, STATES_AT, State, state};
use super::words::{self, CURSOR, FULL};
use crate::sys::{self, nr, syscall};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Where the shared memory is mapped; 0 while it is not.
static REGION: AtomicUsize = AtomicUsize::new(0);
/// What twins jump to when a chunk is full.
static WHEN_FULL: AtomicUsize = AtomicUsize::new(0);
/// Where the next search begins.
static NEXT: AtomicUsize = AtomicUsize::new(0);

const PATIENCE: u32 = 1000;
const WAIT_NS: usize = 10_000_000;

pub(super) fn begin(region: usize, when_full: usize) {
    WHEN_FULL.store(when_full, Relaxed);
    REGION.store(region, Relaxed);
}

pub(super) fn header() -> Option<&'static Header> {
    let region = REGION.load(Relaxed);
    // SAFETY: mapped for good, and laid out so.
    (region != 0).then(|| unsafe { &*(region as *const Header) })
}

fn state_of(chunk: usize) -> &'static State {
    let region = REGION.load(Relaxed);
    // SAFETY: as above; no number of a chunk is larger.
    unsafe { &*((region + STATES_AT) as *const State).add(chunk % CHUNKS) }
}

/// Space for one entry that is not read, in front of the first chunk; 0 if nothing is mapped.
pub(super) fn nowhere() -> usize {
    match REGION.load(Relaxed) {
        0 => 0,
        region => region + CHUNKS_AT - ENTRY_BYTES,
    }
}

/// Gives this thread a chunk; without one it writes nothing down.
pub(super) fn take() {
    let found = header().and_then(find);
    words::write::<FULL>(0);
    match found {
        Some(chunk) => {
            let at = REGION.load(Relaxed) + CHUNKS_AT + chunk * CHUNK_BYTES;
            words::write::<CURSOR>(at + ENTRY_BYTES);
            words::write::<FULL>(WHEN_FULL.load(Relaxed));
        }
        None => words::write::<CURSOR>(0),
    }
}

fn find(header: &Header) -> Option<usize> {
    for _ in 0..PATIENCE {
        let free = header.any_free.load(Acquire);
        let begin = NEXT.fetch_add(1, Relaxed);
        for number in 0..CHUNKS {
            let chunk = (begin + number) % CHUNKS;
            let about = state_of(chunk);
            let is_ours = about.state.load(Relaxed) == state::FREE
                && about.state.compare_exchange(state::FREE, state::TAKEN, AcqRel, Relaxed).is_ok();
            if is_ours {
                about.process.store(sys::process(), Relaxed);
                about.thread.store(sys::thread(), Relaxed);
                return Some(chunk);
            }
        }
        wait(&header.any_free, free);
    }
    header.gave_up.fetch_add(1, Relaxed);
    None
}

/// Hands over the chunk of this thread, which then has none.
pub(super) fn hand_over() {
    let cursor = words::read::<CURSOR>();
    words::write::<FULL>(0);
    words::write::<CURSOR>(0);
    let Some((header, chunk)) = header().zip(chunk_of(cursor)) else { return };
    let about = state_of(chunk);
    about.sequence.store(header.handed_over.fetch_add(1, Relaxed), Relaxed);
    about.state.store(state::FULL, Release);
    header.any_full.fetch_add(1, Release);
    wake(&header.any_full);
}

/// The chunk that a cursor is in, or at the end of.
fn chunk_of(cursor: usize) -> Option<usize> {
    let chunks = REGION.load(Relaxed).checked_add(CHUNKS_AT)?;
    let last = cursor.checked_sub(1)?.checked_sub(chunks)?;
    Some(last / CHUNK_BYTES).filter(|&chunk| chunk < CHUNKS)
}

const FUTEX_WAIT: usize = 0;
const FUTEX_WAKE: usize = 1;

fn wait(word: &core::sync::atomic::AtomicU32, while_it_is: u32) {
    let time = [0, WAIT_NS];
    // SAFETY: a word of the shared memory, and a time of ours.
    unsafe {
        let word = core::ptr::from_ref(word) as usize;
        syscall(nr::FUTEX, [word, FUTEX_WAIT, while_it_is as usize, time.as_ptr() as usize, 0, 0]);
    }
}

fn wake(word: &core::sync::atomic::AtomicU32) {
    // SAFETY: a word of the shared memory.
    unsafe { syscall(nr::FUTEX, [core::ptr::from_ref(word) as usize, FUTEX_WAKE, 1, 0, 0, 0]) };
}

/// Blocks all signals of this thread; the mask that it had.
pub(super) fn block_signals() -> u64 {
    const SET: usize = 2;
    let (all, mut before) = (!0_u64, 0_u64);
    // SAFETY: two masks of ours.
    unsafe {
        let (all, before) = (&raw const all as usize, &raw mut before as usize);
        syscall(nr::RT_SIGPROCMASK, [SET, all, before, 8, 0, 0]);
    }
    core::sync::atomic::fence(Ordering::SeqCst);
    before
}

pub(super) fn unblock_signals(before: u64) {
    const SET: usize = 2;
    // SAFETY: a mask of ours.
    unsafe { syscall(nr::RT_SIGPROCMASK, [SET, &raw const before as usize, 0, 8, 0, 0]) };
}
