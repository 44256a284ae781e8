//! What the supervisor knows of processes and threads, by `/proc` and process descriptors: which
//! live, which sleep, and on which processor.

use crate::layout::area::{Area, kind};
use crate::layout::region::Region;
use crate::supervisor::figures::POLL_RARELY_NS;
use crate::sys::cpus::Cpus;
use crate::sys::decimal::decimal;
use crate::sys::{self, PollFd};
use core::ffi::CStr;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, SCAVENGERS, ScavengerRow};

const POLLIN: i16 = 1;
/// Values of [`Area::slept`].
pub(crate) const ASLEEP: u32 = 1;
pub(crate) const IN_HANDLER: u32 = 2;
pub(crate) const STOPPED: u32 = 3;

/// Descriptors that are not kept for threads.
pub(crate) const SPARE: i32 = 16;

/// What the kernel says of a thread up to now: how long it ran, how long it waited for a processor,
/// how often it got one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) ns: u64,
    pub(crate) waited: u64,
    pub(crate) times: u64,
}

/// What the kernel says that a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadActivity {
    /// In a system call, until something happens.
    Asleep,
    /// By a signal or a tracer, at any instruction.
    Stopped,
    /// Anything else that is not the end.
    Awake,
    /// The kernel does not tell. It may sleep, so no guest comes aboard; it may run, so no guest
    /// may be taken from it.
    Unknown,
    /// It will never run again.
    Gone,
}

/// Process descriptors of the primary (first) and of the scavengers; they are readable once the
/// process has ended.
pub(crate) struct Processes {
    handles: [PollFd; 1 + SCAVENGERS],
    ended: [bool; 1 + SCAVENGERS],
    /// The kernel said so.
    told: [bool; 1 + SCAVENGERS],
    primary: i32,
    /// By scavenger: it executed another program, and is gone from this address space.
    left: [bool; SCAVENGERS],
    asked_at: u64,
    moved_at: u64,
    /// The CPUs we may use.
    allowed: Cpus,
    avoided: Cpus,
    /// Those that homes may use and none of the primary's threads is on.
    spare: Cpus,
}

impl Processes {
    pub(crate) fn new(primary: i32) -> Self {
        let nobody = || PollFd { fd: -1, events: POLLIN, revents: 0 };
        let mut all = Self {
            handles: core::array::from_fn(|_| nobody()),
            ended: [true; 1 + SCAVENGERS],
            told: [false; 1 + SCAVENGERS],
            primary,
            left: [false; SCAVENGERS],
            asked_at: 0,
            moved_at: 0,
            allowed: Cpus::of(0),
            avoided: Cpus::NONE,
            spare: Cpus::NONE,
        };
        all.watch(0, primary);
        all
    }

    fn watch(&mut self, place: usize, pid: i32) {
        let fd = sys::pidfd_open(pid);
        self.ended[place] = fd < 0;
        self.handles[place].fd = if fd < 0 { -1 } else { fd as i32 };
    }

    /// A scavenger was started, or could not be.
    pub(crate) fn add(&mut self, index: usize, pid: Option<i32>) {
        if let Some(pid) = pid {
            self.watch(1 + index, pid);
        }
    }

    /// The CPUs that the primary began with.
    pub(crate) fn allowed(&self) -> &Cpus {
        &self.allowed
    }

    pub(crate) fn primary_lives(&self) -> bool {
        !self.ended[0]
    }

    pub(crate) fn ended(&self, index: usize) -> bool {
        self.ended[1 + index]
    }

    /// The kernel said so; it is not only that nothing can be known of it.
    pub(crate) fn ended_for_certain(&self, index: usize) -> bool {
        self.told[1 + index]
    }

    pub(crate) fn left(&self, index: usize) -> bool {
        self.left[index]
    }

    /// Whether no thread of this process will run here any more, for certain. `rows` are the
    /// scavengers'.
    pub(crate) fn is_gone(&self, rows: &[ScavengerRow], pid: i32) -> bool {
        let has_left = |index: usize| self.left(index) && !self.ended(index);
        let mut its = rows.iter().enumerate().filter(|(_, row)| row.pid.load(Relaxed) == pid);
        its.any(|(index, _)| has_left(index)) || sys::kill(pid, 0) == sys::ESRCH
    }

    pub(crate) fn all_scavengers_ended(&self) -> bool {
        self.ended[1..].iter().all(|ended| *ended)
    }

    /// Asks the kernel. `rows` are the scavengers'.
    pub(crate) fn poll(&mut self, me: i32, rows: &[ScavengerRow], now: u64) {
        let watched = &mut self.handles[..=rows.len()];
        if any_ready(watched, sys::poll_now) {
            for (place, handle) in self.handles.iter_mut().enumerate() {
                if handle.fd >= 0 && handle.revents != 0 {
                    sys::close(handle.fd);
                    handle.fd = -1;
                    self.ended[place] = true;
                    self.told[place] = true;
                }
            }
        }
        if now.saturating_sub(self.asked_at) > POLL_RARELY_NS {
            self.asked_at = now;
            // A primary that became another program is gone from this address space.
            if is_elsewhere(me, self.primary) {
                self.ended[0] = true;
            }
            for (index, row) in rows.iter().enumerate() {
                let lives = !self.left[index] && !self.ended(index);
                self.left[index] |= lives && is_elsewhere(me, row.pid.load(Relaxed));
            }
        }
    }

    /// Closes what is open for an area's thread, before the area is given back.
    pub(crate) fn forget(area: &Area) {
        ThreadStat::close(area);
        close(&area.supervisor.ran_fd);
    }

    /// The CPU time of an area's thread; exact if the thread does not run now. `None`: the kernel
    /// does not tell.
    pub(crate) fn cpu_time(area: &Area) -> Option<CpuTime> {
        let mut text = [0_u8; 96];
        parse_cpu_time(read(area, &area.supervisor.ran_fd, b"/schedstat\0", &mut text)?)
    }

    /// How many filters of system calls a thread has, and its mode of them (strict: 1). `None`: the
    /// kernel does not tell.
    pub(crate) fn filters(area: &Area) -> Option<u64> {
        let mut text = [0_u8; 4096];
        let status = status(area, &mut text)?;
        let filters = number_of(status, b"Seccomp_filters:", 10).unwrap_or(0);
        Some(filters << 8 | number_of(status, b"Seccomp:", 10)?)
    }

    /// What an area's thread does.
    pub(crate) fn activity(area: &'static Area) -> ThreadActivity {
        let (pid, tid) = (area.pid.load(Relaxed), area.tid.load(Relaxed));
        let stat = ThreadStat::read(area);
        if let Some(stat) = &stat {
            area.supervisor.cpu.store(stat.cpu, Relaxed);
        }
        match stat.map(|stat| stat.state) {
            Some(b'S') => ThreadActivity::Asleep,
            Some(b'T' | b't') => ThreadActivity::Stopped,
            // A thread that began its process stays as a zombie while others go on.
            Some(b'Z' | b'X' | b'x') => ThreadActivity::Gone,
            None if sys::tgkill(pid, tid, 0) == sys::ESRCH => ThreadActivity::Gone,
            None => ThreadActivity::Unknown,
            _ => ThreadActivity::Awake,
        }
    }

    /// Whether there is a CPU for the supervisor without a thread of the primary.
    pub(crate) fn has_cpus_to_spare(&self) -> bool {
        !self.spare.is_empty()
    }

    pub(crate) fn spare_cpus(&self) -> &Cpus {
        &self.spare
    }

    /// Moves the supervisor away from the CPUs where the primary's threads are, if there are
    /// others.
    pub(crate) fn keep_off_primaries(&mut self, region: &Region, page: &Control, now: u64) {
        if now.saturating_sub(self.moved_at) < POLL_RARELY_NS {
            return;
        }
        self.moved_at = now;
        let allowed = if page.home_cpus_known != 0 { Cpus::of_mask(page.home_cpus) } else { self.allowed };
        let areas = (0..region.slots().min(64)).map(|slot| region.area(slot));
        let mut busy = Cpus::NONE;
        areas
            .filter(|area| {
                area.kind.load(Relaxed) == kind::PRIMARY && area.supervisor.slept.load(Relaxed) != ASLEEP
            })
            .filter_map(ThreadStat::read)
            .for_each(|stat| busy.add(stat.cpu));
        self.spare = allowed.without(&busy);
        let wanted = if self.has_cpus_to_spare() { self.spare } else { allowed };
        if wanted != self.avoided && !wanted.is_empty() {
            self.avoided = wanted;
            wanted.keep_to();
        }
    }
}

/// Whether any of them is readable. The kernel looks at no more of them at once than files may be
/// open, however few are.
fn any_ready(handles: &mut [PollFd], poll: impl Fn(&mut [PollFd]) -> isize) -> bool {
    let found = poll(handles);
    if found >= 0 {
        return found > 0;
    }
    let mut any = false;
    for handle in handles {
        any |= poll(core::slice::from_mut(handle)) > 0;
    }
    any
}

/// Whether a process has become another program, in an address space of its own. One whose first
/// thread has ended while others go on has none by that thread, and is here still.
fn is_elsewhere(me: i32, pid: i32) -> bool {
    sys::same_memory(me, pid) > 0 && ThreadStat::of(pid).is_some_and(|stat| stat.size != 0)
}

/// What a file of `/proc` says of the thread of an area. Its descriptor, plus one, is kept in
/// `open`, if there are enough of them; one that was left there is of the thread that had the area
/// before.
fn read<'t>(area: &Area, open: &AtomicI32, what: &[u8], text: &'t mut [u8]) -> Option<&'t [u8]> {
    let (pid, tid) = (area.pid.load(Relaxed), area.tid.load(Relaxed));
    let size = match open.load(Relaxed) - 1 {
        fd if fd >= 0 => sys::pread(fd, text, 0),
        _ => 0,
    };
    if size > 0 {
        return Some(&text[..size as usize]);
    }
    close(open);
    let (fd, size) = read_anew(pid, tid, what, text)?;
    if fd < area.region().kept_descriptors.load(Relaxed) {
        open.store(fd + 1, Relaxed);
    } else {
        sys::close(fd);
    }
    Some(&text[..size])
}

/// The same, and the descriptor.
fn read_anew(pid: i32, tid: i32, what: &[u8], text: &mut [u8]) -> Option<(i32, usize)> {
    let mut path = [0_u8; 64];
    let fd = sys::open(path_of(&mut path, pid, tid, what), sys::O_RDONLY | sys::O_CLOEXEC) as i32;
    if fd < 0 {
        return None;
    }
    let size = sys::pread(fd, text, 0);
    if size <= 0 {
        sys::close(fd);
    }
    (size > 0).then_some((fd, size as usize))
}

fn close(open: &AtomicI32) {
    let fd = open.swap(0, Relaxed) - 1;
    if fd >= 0 {
        sys::close(fd);
    }
}

/// The three numbers of `/proc/…/schedstat`.
fn parse_cpu_time(text: &[u8]) -> Option<CpuTime> {
    let mut numbers = text.split(|byte| !byte.is_ascii_digit()).map(|digits| {
        digits.iter().fold(0_u64, |n, digit| n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
    });
    Some(CpuTime { ns: numbers.next()?, waited: numbers.next()?, times: numbers.next()? })
}

/// What `/proc/…/stat` says of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ThreadStat {
    state: u8,
    pub(crate) parent: i32,
    pub(crate) threads: u64,
    /// When it began, in ticks since the kernel did.
    pub(crate) born: u64,
    /// Bytes of its address space that are mapped.
    pub(crate) size: u64,
    cpu: u32,
}

impl ThreadStat {
    fn read(area: &'static Area) -> Option<Self> {
        let mut text = [0_u8; 512];
        Self::parse(read(area, &area.supervisor.stat_fd, b"/stat\0", &mut text)?)
    }

    /// Of a process's first thread.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let mut text = [0_u8; 512];
        let (fd, size) = read_anew(pid, pid, b"/stat\0", &mut text)?;
        sys::close(fd);
        Self::parse(&text[..size])
    }

    fn close(area: &Area) {
        close(&area.supervisor.stat_fd);
    }

    /// The name in the second field may hold anything, also spaces and brackets.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = text.get(name_end + 2..)?.split(|byte| *byte == b' ');
        let state = *fields.next()?.first()?;
        // Behind the state, which is field 3: parent, threads, beginning, size, processor are
        // fields 4, 20, 22, 23, 39.
        let mut number = |skipped: usize| {
            fields.nth(skipped)?.iter().try_fold(0_u64, |n, digit| {
                digit.is_ascii_digit().then(|| n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
            })
        };
        let (parent, threads, born, size, cpu) =
            (number(0)?, number(15)?, number(1)?, number(0)?, number(15)?);
        Some(Self { state, parent: parent as i32, threads, born, size, cpu: cpu as u32 })
    }
}

/// Whether there are signals for the thread of a home, or its process, that the program lets in and
/// the runtime, while the thread is parked, does not.
pub(crate) fn signals_wait(area: &Area) -> Option<bool> {
    let mut text = [0_u8; 4096];
    let text = status(area, &mut text)?;
    let waiting = signal_set(text, b"SigPnd:")? | signal_set(text, b"ShdPnd:")?;
    Some(waiting & !area.thread.parked_mask.load(Relaxed) != 0)
}

/// `/proc/…/status` of the thread of an area.
fn status<'t>(area: &Area, text: &'t mut [u8; 4096]) -> Option<&'t [u8]> {
    let (fd, size) = read_anew(area.pid.load(Relaxed), area.tid.load(Relaxed), b"/status\0", text)?;
    sys::close(fd);
    Some(&text[..size])
}

/// A line of `/proc/…/status` that is a set of signals.
fn signal_set(text: &[u8], name: &[u8]) -> Option<u64> {
    number_of(text, name, 16)
}

/// One that is a number.
fn number_of(text: &[u8], name: &[u8], base: u32) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find(|line| line.starts_with(name))?;
    line[name.len()..].iter().filter(|byte| !byte.is_ascii_whitespace()).try_fold(0_u64, |number, digit| {
        let digit = u64::from(char::from(*digit).to_digit(base)?);
        Some(number.wrapping_mul(u64::from(base)).wrapping_add(digit))
    })
}

/// `/proc/PID/task/TID/…`.
fn path_of<'b>(buffer: &'b mut [u8; 64], pid: i32, tid: i32, what: &[u8]) -> &'b CStr {
    let mut at = 0;
    let mut put = |text: &[u8]| {
        buffer[at..at + text.len()].copy_from_slice(text);
        at += text.len();
    };
    let mut digits = [0_u8; 10];
    put(b"/proc/");
    put(decimal(&mut digits, pid));
    put(b"/task/");
    put(decimal(&mut digits, tid));
    put(what);
    CStr::from_bytes_until_nul(buffer).unwrap_or(c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let text = b"12 (a) S b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 7 0 0";
        assert_eq!(
            ThreadStat::parse(text),
            Some(ThreadStat { state: b'R', parent: 1, threads: 17, born: 19, size: 20, cpu: 7 })
        );
        assert_eq!(ThreadStat::parse(b"12 (cut"), None);
    }

    #[test]
    fn times_are_the_kernels() {
        assert_eq!(parse_cpu_time(b"123 45 6\n"), Some(CpuTime { ns: 123, waited: 45, times: 6 }));
        assert_eq!(parse_cpu_time(b"123 45"), None);
    }

    #[test]
    fn ended_processes_are_seen_where_few_files_may_be_open() {
        let few = |handles: &mut [PollFd]| {
            if handles.len() > 2 {
                return -22; // EINVAL
            }
            for handle in handles.iter_mut() {
                handle.revents = if handle.fd == 7 { POLLIN } else { 0 };
            }
            handles.iter().filter(|handle| handle.revents != 0).count() as isize
        };
        let mut handles = [5, 7, -1, 6].map(|fd| PollFd { fd, events: POLLIN, revents: 0 });
        assert!(any_ready(&mut handles, few));
        assert_eq!(handles.map(|handle| handle.revents), [0, POLLIN, 0, 0]);
        assert!(!any_ready(&mut [5, -1, 6].map(|fd| PollFd { fd, events: POLLIN, revents: 0 }), few));
    }

    #[test]
    fn paths_are_those_of_the_kernel() {
        let path = |what: &[u8]| path_of(&mut [0; 64], 1234567, 2147483647, what).to_owned();
        assert_eq!(path(b"/stat\0").as_c_str(), c"/proc/1234567/task/2147483647/stat");
        assert_eq!(path(b"/status\0").as_c_str(), c"/proc/1234567/task/2147483647/status");
    }

    #[test]
    fn signals_stand_in_lines_of_their_own() {
        let text = b"Name:\tSigPnd:\nSigQ:\t0/7\nSigPnd:\t0000000000000200\nShdPnd:\t8000000000000001\n";
        assert_eq!(signal_set(text, b"SigPnd:"), Some(0x200));
        assert_eq!(signal_set(text, b"ShdPnd:"), Some(1 << 63 | 1));
        assert_eq!(signal_set(text, b"SigBlk:"), None);
        let text = b"nonvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t120\n";
        assert_eq!(number_of(text, b"voluntary_ctxt_switches:", 10), Some(120));
    }
}
