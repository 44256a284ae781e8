//! System calls, without a libc in between: each returns what the kernel returned, an error as its
//! negative number.
//!
//! To add one: a number in the bare-calls room, a function here; safe where no argument can break
//! memory.

pub(crate) mod cpus;
pub(crate) mod decimal;
#[cfg(freestanding)]
mod freestanding;

pub(crate) use bare_calls::{nr, syscall};
use core::ffi::CStr;
use core::sync::atomic::AtomicU32;

pub(crate) const SIGABRT: i32 = 6;
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGCHLD: i32 = 17;

pub(crate) const EINTR: isize = -4;
pub(crate) const ESRCH: isize = -3;
pub(crate) const EAGAIN: i32 = 11;

/// A system call whose arguments are numbers only.
#[inline]
fn plain(number: usize, a: [usize; 3]) -> isize {
    // SAFETY: used below only for calls that neither read nor write memory of ours.
    unsafe { syscall(number, [a[0], a[1], a[2], 0, 0, 0]) }
}

pub(crate) fn write(fd: i32, bytes: &[u8]) -> isize {
    // SAFETY: the kernel reads what the slice holds.
    unsafe { syscall(nr::WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

pub(crate) fn read(fd: i32, bytes: &mut [u8]) -> isize {
    // SAFETY: the kernel writes at most the slice.
    unsafe { syscall(nr::READ, [fd as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

pub(crate) fn pread(fd: i32, bytes: &mut [u8], offset: u64) -> isize {
    // SAFETY: as for read.
    unsafe {
        syscall(nr::PREAD, [fd as usize, bytes.as_mut_ptr() as usize, bytes.len(), offset as usize, 0, 0])
    }
}

pub(crate) fn pwrite(fd: i32, bytes: &[u8], offset: u64) -> isize {
    // SAFETY: as for write.
    unsafe { syscall(nr::PWRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), offset as usize, 0, 0]) }
}

pub(crate) const O_RDONLY: usize = 0;
pub(crate) const O_WRONLY: usize = 1;
pub(crate) const O_RDWR: usize = 2;
pub(crate) const O_CREAT: usize = 0o100;
pub(crate) const O_TRUNC: usize = 0o1000;
pub(crate) const O_APPEND: usize = 0o2000;
pub(crate) const O_CLOEXEC: usize = 0o2000000;

const AT_FDCWD: usize = -100_isize as usize;

pub(crate) fn open(path: &CStr, flags: usize) -> isize {
    // SAFETY: the path is a string with its zero.
    unsafe { syscall(nr::OPENAT, [AT_FDCWD, path.as_ptr() as usize, flags, 0o666, 0, 0]) }
}

pub(crate) const O_DIRECTORY: usize = 0o200000;
const RLIMIT_NOFILE: usize = 7;

/// The same file at a number where programs do not look, closed by those that are executed. An
/// error is negative.
pub(crate) fn keep_aside(fd: i32) -> isize {
    const F_DUPFD_CLOEXEC: usize = 1030;
    /// A table of descriptors is as large as the highest of them wants.
    const ASIDE: u64 = 1024;
    let [most, _] = limit(RLIMIT_NOFILE);
    plain(nr::FCNTL, [fd as usize, F_DUPFD_CLOEXEC, most.min(ASIDE).saturating_sub(1) as usize])
}

/// Where a symbolic link leads, cut to what fits; how long that is.
pub(crate) fn link(path: &CStr, into: &mut [u8]) -> isize {
    // SAFETY: a string with its zero, and the kernel writes at most the slice.
    unsafe {
        let (path, to, size) = (path.as_ptr() as usize, into.as_mut_ptr() as usize, into.len());
        syscall(nr::READLINKAT, [AT_FDCWD, path, to, size, 0, 0])
    }
}

/// More of what is in a directory; 0 behind the last.
pub(crate) fn entries(fd: i32, into: &mut [u8]) -> isize {
    // SAFETY: the kernel writes at most the slice.
    unsafe { syscall(nr::GETDENTS64, [fd as usize, into.as_mut_ptr() as usize, into.len(), 0, 0, 0]) }
}

/// What is asked of the kernel's `struct stat`.
pub(crate) struct Stat {
    pub(crate) inode: u64,
    pub(crate) mode: u64,
    /// Which one a file that stands for a device stands for.
    pub(crate) device: u64,
    pub(crate) size: u64,
}

/// None where nothing is open at that number.
pub(crate) fn fstat(fd: i32) -> Option<Stat> {
    let mut words = [0_u64; 18];
    // SAFETY: the kernel writes one `struct stat`, which is 144 bytes.
    let result = unsafe { syscall(nr::FSTAT, [fd as usize, words.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    (result == 0).then_some(Stat {
        inode: words[1],
        mode: words[3] & 0xffff_ffff,
        device: words[5],
        size: words[6],
    })
}

pub(crate) const RLIMIT_STACK: usize = 3;

/// What the calling process may have of a resource, and what it may allow itself; nothing where the
/// kernel does not tell.
pub(crate) fn limit(resource: usize) -> [u64; 2] {
    let mut now = [0; 2];
    // SAFETY: the kernel writes one `struct rlimit64`.
    unsafe { syscall(nr::PRLIMIT, [0, resource, 0, now.as_mut_ptr() as usize, 0, 0]) };
    now
}

/// The calling process may open as many files as it may allow itself. How many that is.
pub(crate) fn open_many() -> u64 {
    let [now, most] = limit(RLIMIT_NOFILE);
    if most == 0 {
        return now;
    }
    let wanted = [most; 2];
    // SAFETY: the kernel reads one `struct rlimit64`.
    let result = unsafe { syscall(nr::PRLIMIT, [0, RLIMIT_NOFILE, wanted.as_ptr() as usize, 0, 0, 0]) };
    if result < 0 { now } else { most }
}

pub(crate) fn chdir(path: &CStr) -> isize {
    // SAFETY: as for open.
    unsafe { syscall(nr::CHDIR, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) }
}

pub(crate) fn close(fd: i32) {
    plain(nr::CLOSE, [fd as usize, 0, 0]);
}

pub(crate) fn close_from(first: u32) {
    if plain(nr::CLOSE_RANGE, [first as usize, u32::MAX as usize, 0]) < 0 {
        for fd in first..1024 {
            close(fd as i32);
        }
    }
}

pub(crate) fn dup2(from: i32, to: i32) -> isize {
    plain(nr::DUP2, [from as usize, to as usize, 0])
}

pub(crate) fn getpid() -> i32 {
    plain(nr::GETPID, [0; 3]) as i32
}

pub(crate) fn gettid() -> i32 {
    plain(nr::GETTID, [0; 3]) as i32
}

pub(crate) fn getppid() -> i32 {
    plain(nr::GETPPID, [0; 3]) as i32
}

pub(crate) fn kill(pid: i32, signal: i32) -> isize {
    plain(nr::KILL, [pid as usize, signal as usize, 0])
}

pub(crate) fn tgkill(pid: i32, tid: i32, signal: i32) -> isize {
    plain(nr::TGKILL, [pid as usize, tid as usize, signal as usize])
}

pub(crate) fn sched_yield() {
    plain(nr::SCHED_YIELD, [0; 3]);
}

pub(crate) fn exit_group(code: i32) -> ! {
    plain(nr::EXIT_GROUP, [code as usize, 0, 0]);
    loop {
        core::hint::spin_loop();
    }
}

pub(crate) fn pidfd_open(pid: i32) -> isize {
    plain(nr::PIDFD_OPEN, [pid as usize, 0, 0])
}

/// Whether two processes have one address space; negative where the kernel does not say.
pub(crate) fn same_memory(a: i32, b: i32) -> isize {
    const KCMP_VM: usize = 1;
    plain(nr::KCMP, [a as usize, b as usize, KCMP_VM])
}

/// From now on [`pass_barrier`] may be asked for. Whether the kernel lets us.
pub(crate) fn prepare_barrier() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;
    plain(nr::MEMBARRIER, [REGISTER_PRIVATE_EXPEDITED, 0, 0]) == 0
}

/// Every processor that runs a thread of this address space passes a memory barrier. Whether they
/// did.
pub(crate) fn pass_barrier() -> bool {
    const PRIVATE_EXPEDITED: usize = 1 << 3;
    plain(nr::MEMBARRIER, [PRIVATE_EXPEDITED, 0, 0]) == 0
}

#[repr(C)]
pub(crate) struct PollFd {
    pub(crate) fd: i32,
    pub(crate) events: i16,
    pub(crate) revents: i16,
}

/// Polls which of them are ready, without waiting.
pub(crate) fn poll_now(fds: &mut [PollFd]) -> isize {
    // SAFETY: the kernel reads and writes the slice.
    unsafe { syscall(nr::POLL, [fds.as_mut_ptr() as usize, fds.len(), 0, 0, 0, 0]) }
}

pub(crate) const PR_SET_PDEATHSIG: usize = 1;
pub(crate) const PR_SET_NAME: usize = 15;
pub(crate) const PR_SET_SECCOMP: usize = 22;
pub(crate) const PR_SET_NO_NEW_PRIVS: usize = 38;

/// # Safety
/// `b` must be what option `a` wants: a number or a pointer.
pub(crate) unsafe fn prctl(a: usize, b: usize, c: usize) -> isize {
    // SAFETY: the caller's.
    unsafe { syscall(nr::PRCTL, [a, b, c, 0, 0, 0]) }
}

pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the kernel reads at most 16 bytes, up to the zero.
    unsafe { prctl(PR_SET_NAME, name.as_ptr() as usize, 0) };
}

pub(crate) const FUTEX_WAIT: usize = 0;
pub(crate) const FUTEX_WAKE: usize = 1;

/// Sleeps while `word` is `value`; ends early at a signal.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    // SAFETY: the kernel reads the word. Not a private futex: waker and sleeper are different
    // processes.
    unsafe { syscall(nr::FUTEX, [word.as_ptr() as usize, FUTEX_WAIT, value as usize, 0, 0, 0]) };
}

/// The same, for `nanoseconds` at most. Whether it slept: the word had that value.
pub(crate) fn futex_wait_for(word: &AtomicU32, value: u32, nanoseconds: u64) -> bool {
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    let (at, time) = (word.as_ptr() as usize, time.as_ptr() as usize);
    // SAFETY: the kernel reads the word and one timespec.
    unsafe { syscall(nr::FUTEX, [at, FUTEX_WAIT, value as usize, time, 0, 0]) != -(EAGAIN as isize) }
}

pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the word's address only.
    unsafe { syscall(nr::FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, 1, 0, 0, 0]) };
}

pub(crate) fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { syscall(nr::FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, i32::MAX as usize, 0, 0, 0]) };
}

pub(crate) fn sleep_ns(nanoseconds: u64) {
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: the kernel reads one timespec.
    unsafe { syscall(nr::NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

pub(crate) fn now_ns() -> u64 {
    const CLOCK_MONOTONIC: usize = 1;
    clock_ns(CLOCK_MONOTONIC)
}

/// The CPU time that the calling thread has had.
pub(crate) fn own_cpu_ns() -> u64 {
    const CLOCK_THREAD_CPUTIME_ID: usize = 3;
    clock_ns(CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: usize) -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: the kernel writes one timespec.
    unsafe { syscall(nr::CLOCK_GETTIME, [clock, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// The calling thread runs only where no other thread wants to. Returns the kernel's error, or 0.
pub(crate) fn set_idle_policy() -> i32 {
    const SCHED_IDLE: usize = 5;
    let priority = 0_i32;
    // SAFETY: the kernel reads one sched_param, which is one number.
    unsafe { -syscall(nr::SCHED_SETSCHEDULER, [0, SCHED_IDLE, &raw const priority as usize, 0, 0, 0]) as i32 }
}

/// Asks that the calling thread, which runs for microseconds at a time, has its turn soon after it
/// wakes, not when the running thread's turn is over. Kernels before 6.12 take no notice.
pub(crate) fn ask_for_short_turns() {
    const SCHED_OTHER: isize = 0;
    const SHORTEST_NS: u64 = 100_000;
    const PRIO_PROCESS: usize = 0;
    // SAFETY: no memory is passed.
    let policy = unsafe { syscall(nr::SCHED_GETSCHEDULER, [0; 6]) };
    // SAFETY: 〃
    let nice = 20 - unsafe { syscall(nr::GETPRIORITY, [PRIO_PROCESS, 0, 0, 0, 0, 0]) };
    if policy != SCHED_OTHER {
        return;
    }
    // A sched_attr: its size, the policy, no flags, nice and priority, runtime, deadline, period.
    let attributes = [48, 0, u64::from(nice as u32), SHORTEST_NS, 0, 0_u64];
    // SAFETY: the kernel reads 48 bytes.
    unsafe { syscall(nr::SCHED_SETATTR, [0, attributes.as_ptr() as usize, 0, 0, 0, 0]) };
}

pub(crate) fn set_affinity(tid: i32, mask: &[u64]) -> isize {
    // SAFETY: the kernel reads the slice.
    unsafe {
        let (size, from) = (size_of_val(mask), mask.as_ptr() as usize);
        syscall(nr::SCHED_SETAFFINITY, [tid as usize, size, from, 0, 0, 0])
    }
}

/// The CPUs a thread may use; what is not told is left as it is.
pub(crate) fn affinity(tid: i32, mask: &mut [u64]) {
    // SAFETY: the kernel writes at most the slice.
    unsafe {
        let (size, to) = (size_of_val(mask), mask.as_mut_ptr() as usize);
        syscall(nr::SCHED_GETAFFINITY, [tid as usize, size, to, 0, 0, 0]);
    }
}

/// The scheduling policy of a thread; 0 is the calling one.
pub(crate) fn policy(tid: i32) -> isize {
    plain(nr::SCHED_GETSCHEDULER, [tid as usize, 0, 0])
}

/// Twenty less a thread's nice value; 0 is the calling one.
pub(crate) fn priority(tid: i32) -> isize {
    plain(nr::GETPRIORITY, [0, tid as usize, 0])
}

pub(crate) const SIG_SETMASK: usize = 2;

/// Sets the calling thread's signal mask and returns what it was.
pub(crate) fn set_signal_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: the kernel reads one word and writes another.
    unsafe {
        let (new, old) = (&raw const mask as usize, &raw mut before as usize);
        syscall(nr::RT_SIGPROCMASK, [SIG_SETMASK, new, old, 8, 0, 0]);
    }
    before
}

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct SigAction {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) restorer: usize,
    pub(crate) mask: u64,
}

/// # Safety
/// A handler must be one.
pub(crate) unsafe fn sigaction(signal: i32, new: Option<&SigAction>, old: Option<&mut SigAction>) -> isize {
    let new = new.map_or(0, |action| core::ptr::from_ref(action) as usize);
    let old = old.map_or(0, |action| core::ptr::from_mut(action) as usize);
    // SAFETY: pointers to the kernel's own structure, or none.
    unsafe { syscall(nr::RT_SIGACTION, [signal as usize, new, old, 8, 0, 0]) }
}

pub(crate) const PROT_NONE: usize = 0;
pub(crate) const PROT_READ: usize = 1;
pub(crate) const PROT_WRITE: usize = 2;
pub(crate) const PROT_EXEC: usize = 4;
pub(crate) const MAP_SHARED: usize = 1;
pub(crate) const MAP_PRIVATE: usize = 2;
pub(crate) const MAP_FIXED: usize = 0x10;
pub(crate) const MAP_ANONYMOUS: usize = 0x20;
pub(crate) const MAP_STACK: usize = 0x20000;
pub(crate) const MAP_NORESERVE: usize = 0x4000;
pub(crate) const MAP_FIXED_NOREPLACE: usize = 0x100000;

/// # Safety
/// With `MAP_FIXED` it replaces what is there; that must be the caller's.
pub(crate) unsafe fn mmap(
    at: usize,
    size: usize,
    protection: usize,
    flags: usize,
    fd: i32,
    offset: u64,
) -> Result<usize, i32> {
    // SAFETY: the caller's.
    let result =
        unsafe { syscall(nr::MMAP, [at, size, protection, flags, fd as isize as usize, offset as usize]) };
    address(result)
}

/// New memory for `count` values, never unmapped. The kernel gives pages only to those that are
/// used.
///
/// # Safety
/// Zero must be a value of `T`.
pub(crate) unsafe fn zeroed<T>(count: usize) -> Result<&'static mut [T], i32> {
    let size = (count * size_of::<T>()).max(1);
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: a new mapping of that size, which no other code knows; the rest is the caller's.
    unsafe {
        let at = mmap(0, size, PROT_READ | PROT_WRITE, flags, -1, 0)?;
        Ok(core::slice::from_raw_parts_mut(at as *mut T, count))
    }
}

/// What a system call answered whose result is an address.
pub(crate) fn address(result: isize) -> Result<usize, i32> {
    if (-4095..0).contains(&result) { Err(-result as i32) } else { Ok(result as usize) }
}

/// # Safety
/// Users of that memory may go on using it.
pub(crate) unsafe fn mprotect(at: usize, size: usize, protection: usize) -> isize {
    // SAFETY: the caller's.
    unsafe { syscall(nr::MPROTECT, [at, size, protection, 0, 0, 0]) }
}

/// # Safety
/// No code may use that memory any more.
pub(crate) unsafe fn munmap(at: usize, size: usize) -> isize {
    // SAFETY: the caller's.
    unsafe { syscall(nr::MUNMAP, [at, size, 0, 0, 0, 0]) }
}
