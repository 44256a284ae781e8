//! The primary's yields are switched on only while guests may be met there.
//!
//! Each yield has a switch byte: with one value it does nothing, with the other it is a jump to the
//! yield (`docs/harvest-abi.md`). The byte is changed while the primary's threads run; each fetches
//! the one or the other value. A single byte is written through `/proc/self/mem`, which needs no
//! writable mapping, else its page is made writable for that time. Where all bytes of a file are
//! written at once it is the other way round: two calls to `mprotect` for the code that they lie
//! in, where single writes would take two each.
//!
//! Yields are switched off again when no guest has been there for a while, so that a guest that is
//! home for a moment costs nothing; and those that do not pay, while others do, one by one
//! ([`super`]).

use crate::layout::page;
use crate::supervisor::figures::{AT_ONCE_LEAST, LINGER_NS, LINGER_SHARED_CPU, LINGER_TIMES};
use crate::sys;
use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicU8, fence};
use runtime_abi::control::{Control, ON, SwitchRow};

const PAGE: usize = 4096;
const RUN: usize = sys::PROT_READ | sys::PROT_EXEC;

/// One yield that can be switched.
pub(crate) struct SwitchedYield {
    /// The address of its switch byte, and where the primary goes on behind the yield.
    place: usize,
    pub(crate) resume: u64,
    /// The byte in its file; 0: it is not what it should be, and left alone.
    off: u8,
    /// While others are on it is switched off until then; 0: it is not.
    pub(crate) off_until: u64,
    pub(crate) off_since: u64,
    /// How often it was switched off by itself.
    pub(crate) times: u32,
    /// Outcomes up to these counts do not tell about it any more.
    pub(crate) outcomes: u64,
    pub(crate) soon: u64,
}

/// The yields of one file.
struct FileYields {
    yields: Range<usize>,
    /// The pages from the first to the last of them, if they are one segment of code; empty: not
    /// known.
    pages: Range<usize>,
}

pub(crate) struct YieldSwitches {
    page: &'static Control,
    memory: i32,
    pub(crate) yields: &'static mut [SwitchedYield],
    files: &'static mut [FileYields],
    on: bool,
    /// How often single yields were switched.
    pub(crate) changes: u32,
    /// A thread of the primary may meet guests at its sites, or its pace is sampled there. Set in
    /// each round.
    pub(crate) wanted: bool,
    /// A thread is awaited at a yield: one that lost its guests since it came to none, or that is
    /// to lend its processor there. Set in each round.
    pub(crate) awaited: bool,
    linger: Linger,
}

/// How long yields stay on without a guest. Pure.
#[derive(Clone, Copy, Debug, Default)]
struct Linger {
    /// When a guest was there last.
    needed_at: u64,
    /// When a thread was awaited last.
    awaited_at: u64,
    /// How much CPU time it took to switch them, in nanoseconds.
    took: u64,
    /// The supervisor has a CPU of its own.
    own_cpu: bool,
}

impl Linger {
    /// Until when they stay on.
    fn until(&self) -> u64 {
        let times = if self.own_cpu { LINGER_TIMES } else { LINGER_SHARED_CPU };
        let needed = self.needed_at + LINGER_NS.max(times * self.took);
        needed.max(self.awaited_at + LINGER_TIMES * self.took)
    }

    /// Whether they are to be on now, given whether they are, whether guests need them, and whether
    /// a thread is awaited.
    fn poll(&mut self, on: bool, guests: bool, awaited: bool, now: u64) -> bool {
        if guests {
            self.needed_at = now;
        }
        if awaited {
            self.awaited_at = now;
        }
        guests || awaited || on && now < self.until()
    }
}

impl YieldSwitches {
    /// Finds the yields. The supervisor's, which has no descriptor open.
    pub(crate) fn new(page: &'static Control) -> Self {
        let none = Self {
            page,
            memory: -1,
            yields: &mut [],
            files: &mut [],
            on: false,
            changes: 0,
            wanted: true,
            awaited: false,
            linger: Linger::default(),
        };
        let found = || page::modules(page).iter().filter(|module| module.found.load(Acquire) != 0);
        let count = found().map(|module| module.switches as usize).sum();
        if count == 0 {
            return none;
        }
        let (Some(yields), Some(files)) =
            (zeroed::<SwitchedYield>(count), zeroed::<FileYields>(found().count()))
        else {
            return none;
        };
        let mut first = 0;
        for (module, file) in found().zip(files.iter_mut()) {
            let (bias, rows) = (module.bias.load(Relaxed), page::switches(page, module));
            file.yields = first..first + rows.len();
            file.pages = pages(bias, rows, module.code);
            first = file.yields.end;
            for (row, of) in rows.iter().zip(yields[file.yields.clone()].iter_mut()) {
                of.place = bias.wrapping_add(row.place) as usize;
                of.resume = bias.wrapping_add(row.resume);
                // SAFETY: code of the program that was started, or of a library of its, which have
                // just begun.
                let byte = unsafe { AtomicU8::from_ptr(of.place as *mut u8) }.load(Relaxed);
                of.off = if matches!(byte, 0x0f | 0xb8..=0xbf | 0x3d) { byte } else { 0 };
            }
        }
        let memory = sys::open(c"/proc/self/mem", sys::O_RDWR | sys::O_CLOEXEC) as i32;
        Self { memory, yields, files, ..none }
    }

    pub(crate) fn are_on(&self) -> bool {
        self.on
    }

    /// `guests`: some may meet the primary. `spare`: the supervisor has a CPU of its own.
    pub(crate) fn follow(&mut self, guests: bool, spare: bool, now: u64) {
        self.linger.own_cpu = spare;
        let on = self.linger.poll(self.on, guests && self.wanted, self.awaited, now);
        if on != self.on && !self.yields.is_empty() {
            self.switch_all(on);
        }
    }

    /// The last guest is gone for good.
    pub(crate) fn leave(&mut self) {
        if self.on {
            self.switch_all(false);
        }
    }

    /// When they may have to be switched off.
    pub(crate) fn poll_at(&self) -> u64 {
        if self.on { self.linger.until() } else { u64::MAX }
    }

    fn switch_all(&mut self, on: bool) {
        let began = sys::own_cpu_ns();
        self.on = on;
        for file in &*self.files {
            self.switch_file(file, on);
        }
        self.linger.took = sys::own_cpu_ns().saturating_sub(began);
    }

    fn switch_file(&self, file: &FileYields, on: bool) {
        let Range { start, end } = file.pages;
        // SAFETY: code of the program, which stays what it is but for the bytes below, and may be
        // run all the time.
        let protect = |protection| unsafe { sys::mprotect(start, end - start, protection) };
        let writable =
            file.yields.len() >= AT_ONCE_LEAST && start < end && protect(RUN | sys::PROT_WRITE) == 0;
        for index in file.yields.clone() {
            let of = &self.yields[index];
            let on = on && of.off_until == 0;
            if !writable {
                self.set(index, on);
            } else if of.off != 0 {
                // SAFETY: as above; it is one byte, either value of it is right, and any other is a
                // debugger's breakpoint.
                let byte = unsafe { AtomicU8::from_ptr(of.place as *mut u8) };
                let (before, after) = if on { (of.off, ON) } else { (ON, of.off) };
                let _ = byte.compare_exchange(before, after, Relaxed, Relaxed);
            }
        }
        if writable {
            protect(RUN);
        }
    }

    /// Switches one of them.
    pub(crate) fn set(&self, index: usize, on: bool) {
        let of = &self.yields[index];
        if of.off == 0 {
            return;
        }
        // Any other byte is a debugger's breakpoint.
        if !self.read(of.place).is_some_and(|byte| byte == of.off || byte == ON) {
            return;
        }
        let errno = self.write(of.place, if on { ON } else { of.off });
        if errno != 0 {
            self.page.switch_errno.store(errno, Relaxed);
        }
    }

    fn read(&self, at: usize) -> Option<u8> {
        let mut byte = [0];
        if self.memory < 0 {
            // SAFETY: code of the program.
            return Some(unsafe { AtomicU8::from_ptr(at as *mut u8) }.load(Relaxed));
        }
        (sys::pread(self.memory, &mut byte, at as u64) == 1).then_some(byte[0])
    }

    /// Writes a byte of code. Returns why it cannot be done.
    fn write(&self, at: usize, byte: u8) -> i32 {
        if self.memory >= 0 && sys::pwrite(self.memory, &[byte], at as u64) == 1 {
            return 0;
        }
        let begin = at & !(PAGE - 1);
        // SAFETY: code of the program, which stays what it is but for that byte, and may be run all
        // the time.
        let result = unsafe { sys::mprotect(begin, PAGE, RUN | sys::PROT_WRITE) };
        if result < 0 {
            return -result as i32;
        }
        // SAFETY: writable now; it is one byte, and either value of it is right.
        unsafe { AtomicU8::from_ptr(at as *mut u8) }.store(byte, Relaxed);
        fence(core::sync::atomic::Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { sys::mprotect(begin, PAGE, RUN) };
        0
    }
}

/// The pages from the first to the last of these yields, if they lie in one segment of code.
fn pages(bias: u64, rows: &[SwitchRow], code: [u64; 2]) -> Range<usize> {
    let places = || rows.iter().map(|row| row.place);
    let (Some(first), Some(last)) = (places().min(), places().max()) else { return 0..0 };
    if first < code[0] || last >= code[1] {
        return 0..0;
    }
    let page = |place: u64| bias.wrapping_add(place) as usize & !(PAGE - 1);
    page(first)..page(last) + PAGE
}

/// Zeroed memory for `count` values; zero is a value of all `T` here.
fn zeroed<T>(count: usize) -> Option<&'static mut [T]> {
    // SAFETY: numbers and rows of them.
    unsafe { sys::zeroed(count) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest that is there for a millisecond of every `every`, for two seconds; switching takes
    /// `took`. Returns how often yields were switched.
    fn live(every: u64, took: u64, own_cpu: bool) -> u32 {
        let (mut linger, mut on, mut switched) = (Linger { took, own_cpu, ..Linger::default() }, false, 0);
        for ms in 0..2000_u64 {
            let is_on = linger.poll(on, ms % every == 0, false, (ms + 100) * 1_000_000);
            switched += u32::from(is_on != on);
            on = is_on;
        }
        switched
    }

    #[test]
    fn a_guest_that_is_home_for_a_moment_switches_nothing() {
        assert_eq!(live(2, 0, true), 1);
        assert!(live(100, 0, true) >= 38, "each time");
        // Switching takes 5 ms: dear, and dearer where it takes the primary's own time.
        assert_eq!(live(40, 5_000_000, true), 1);
        assert!(live(100, 5_000_000, true) >= 38);
        assert_eq!(live(400, 5_000_000, false), 1);
    }

    #[test]
    fn a_thread_that_is_awaited_keeps_them_on_until_it_came() {
        let mut linger = Linger { took: 10_000, ..Linger::default() };
        let start = 1_000_000_000;
        assert!(linger.poll(false, false, true, start) && linger.poll(true, false, true, start + 9_000_000));
        let taken = start + 9_000_000;
        assert!(linger.poll(true, false, false, taken + 99_000), "switching is dearer");
        assert!(!linger.poll(true, false, false, taken + 180_000), "no guest, no 2 ms");
        // A guest that was there before still counts.
        assert!(linger.poll(false, true, true, taken + 200_000));
        assert!(linger.poll(true, false, false, taken + 2_100_000));
        assert!(!linger.poll(true, false, false, taken + 2_300_000));
    }
}
