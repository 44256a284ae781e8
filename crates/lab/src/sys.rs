//! Safe wrappers of system calls that the standard library has none for.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;
use units::{Bytes, WouldHelp};

/// A system call that failed, and what it was for.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {}", plain(why))]
pub struct SysError {
    pub what: String,
    /// Part of this error's own text, and so no `source`.
    pub why: io::Error,
}

impl WouldHelp for SysError {
    /// Only where the host does not allow the call.
    fn would_help(&self) -> Option<&str> {
        match self.why.raw_os_error()? {
            libc::EPERM | libc::EACCES | libc::ENOSYS => Some("a container or sandbox that allows it"),
            libc::EAGAIN => Some("a higher limit on processes (ulimit -u, or pids.max of the control group)"),
            _ => None,
        }
    }
}

pub(crate) fn failed(what: impl Into<String>) -> SysError {
    SysError { what: what.into(), why: io::Error::last_os_error() }
}

/// The text of an error without its number, which adds nothing.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.find(" (os error ").map_or(text.clone(), |end| text[..end].to_owned())
}

/// Starts a scoped thread.
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, T>, SysError> {
    std::thread::Builder::new().spawn_scoped(scope, work).map_err(no_thread)
}

pub(crate) fn no_thread(why: io::Error) -> SysError {
    SysError { what: "starting a thread".to_owned(), why }
}

/// The effective user id.
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing, touches nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The limit that the shell set (`ulimit`), if it set one.
pub(crate) fn soft_limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel writes the structure, which lives until the call is over.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Writes to standard error and ends this process at once: for signal handlers.
pub(crate) fn end_with_message(line: &[u8], code: libc::c_int) -> ! {
    // SAFETY: both may be called in a signal handler; the line lives until the write is over.
    unsafe {
        libc::write(2, line.as_ptr().cast(), line.len());
        libc::_exit(code)
    }
}

pub(crate) fn on_signal(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: a zeroed sigaction is a valid one; the handlers passed here touch atomics and call
    // `signal` at most, which is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// The signal's bit if it is ignored. By the kernel: libc does not tell of its own signals.
pub(crate) fn ignored(signal: libc::c_int) -> u64 {
    // Handler, flags, restorer, mask.
    let mut action = [0_usize; 4];
    // SAFETY: the kernel fills a structure of four words; the size of the last one, a set of
    // signals, is the last argument.
    unsafe {
        let none = std::ptr::null::<usize>();
        libc::syscall(libc::SYS_rt_sigaction, signal, none, action.as_mut_ptr(), 8_usize);
    }
    u64::from(action[0] == libc::SIG_IGN) << (signal - 1)
}

/// The calling thread's mask: bit 0 is signal 1.
pub(crate) fn blocked() -> u64 {
    // SAFETY: a zeroed set is a valid one; the calls only fill and read it.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
        (1..=64)
            .filter(|&signal| libc::sigismember(&raw const mask, signal) == 1)
            .fold(0, |all, signal| all | 1 << (signal - 1))
    }
}

pub(crate) fn is_closed(fd: libc::c_int) -> bool {
    // SAFETY: asks only.
    unsafe { libc::fcntl(fd, libc::F_GETFD) == -1 }
}

pub(crate) fn default_signal(signal: libc::c_int) {
    // SAFETY: signal() with SIG_DFL is async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
    }
}

/// Involuntary switches and page faults of the calling thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadUsage {
    pub involuntary_switches: i64,
    pub voluntary_switches: i64,
    pub faults: i64,
}

pub(crate) fn thread_usage() -> ThreadUsage {
    // SAFETY: getrusage fills the struct it is given; RUSAGE_THREAD exists on every Linux since
    // 2.6.26.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    ThreadUsage {
        involuntary_switches: usage.ru_nivcsw,
        voluntary_switches: usage.ru_nvcsw,
        faults: usage.ru_minflt + usage.ru_majflt,
    }
}

/// The most memory that this process had at any time.
pub fn peak_memory() -> Bytes {
    // SAFETY: getrusage fills the struct it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    // In KiB.
    Bytes(u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10)
}

/// Whether a child ends within this time. Where the kernel cannot tell, it is waited for.
pub(crate) fn ends_within(child: libc::pid_t, limit: Duration) -> bool {
    // SAFETY: asks for a descriptor, which is closed below.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    let Ok(file) = libc::c_int::try_from(file) else { return true };
    if file < 0 {
        return true;
    }
    let until = std::time::Instant::now() + limit;
    let mut ready = 0;
    while ready == 0 {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let milliseconds = libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX);
        let mut one = libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor. A signal ends the waiting early, and it begins again.
        ready = unsafe { libc::poll(&raw mut one, 1, milliseconds) }.max(0);
        if milliseconds == 0 {
            break;
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    ready > 0
}

pub(crate) fn ask_to_end(child: libc::pid_t) {
    // SAFETY: as for `kill`.
    unsafe { libc::kill(child, libc::SIGTERM) };
}

pub(crate) fn kill(child: libc::pid_t) {
    // SAFETY: a child that has not been waited for, so that the number is still its own.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// The end of a child, with its CPU time and its most memory.
pub(crate) fn wait_with_usage(child: libc::pid_t) -> io::Result<(ExitStatus, Duration, Bytes)> {
    let mut status = 0;
    // SAFETY: wait4 fills what it is given.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: as above.
        if unsafe { libc::wait4(child, &raw mut status, 0, &raw mut usage) } == child {
            break;
        }
        let why = io::Error::last_os_error();
        if why.kind() != io::ErrorKind::Interrupted {
            return Err(why);
        }
    }
    let time = |of: libc::timeval| {
        Duration::from_secs(u64::try_from(of.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(of.tv_usec).unwrap_or(0))
    };
    let peak = Bytes(u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10);
    Ok((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime), peak))
}

/// CPUs that the calling thread may run on, ascending.
pub(crate) fn allowed_cpus() -> Result<Vec<usize>, SysError> {
    // The kernel refuses a mask smaller than its own, so grow it until it fits.
    let mut words = 16usize;
    loop {
        let mut mask = vec![0u64; words];
        // SAFETY: the kernel writes at most `words * 8` bytes into the vector.
        let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, words * 8, mask.as_mut_ptr()) };
        if got >= 0 {
            return Ok((0..words * 64).filter(|&cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect());
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) || words > 1 << 12 {
            return Err(failed("reading the CPU affinity"));
        }
        words *= 2;
    }
}

pub(crate) fn set_affinity(cpus: &[usize]) -> Result<(), SysError> {
    let words = cpus.iter().max().map_or(1, |m| m / 64 + 1);
    let mut mask = vec![0u64; words];
    for cpu in cpus {
        mask[cpu / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads `words * 8` bytes from the vector.
    let done = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, words * 8, mask.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(failed(format!("pinning to CPU {cpus:?}"))) }
}

pub(crate) fn raw_monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the timespec; CLOCK_MONOTONIC_RAW exists since Linux 2.6.28.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Takes a file's lock for as long as the file is open; `WouldBlock` if another process has it.
pub(crate) fn lock_file(file: &std::fs::File) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: takes a descriptor that is open and a constant.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Leaves the session that this process was started in, keeps no descriptor of it but the standard
/// ones, and is deaf to the signals that end programs.
pub(crate) fn stand_alone() {
    // SAFETY: called at the start of `main`, while this process owns nothing yet that a closed
    // descriptor could break; the rest takes constants.
    unsafe {
        libc::setsid();
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) != 0 {
            // Kernels before 5.9.
            for descriptor in 3..4096 {
                libc::close(descriptor);
            }
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP]
        {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// The system call that does least.
pub(crate) fn empty_call() {
    // SAFETY: takes nothing and touches nothing.
    unsafe {
        libc::syscall(libc::SYS_getppid);
    }
}

/// Sleeps as long as the word has this value, or until woken.
pub(crate) fn futex_wait(word: &std::sync::atomic::AtomicU32, value: u32) {
    let no_limit = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives through the call; waiting for ever is asked for.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            no_limit,
        );
    }
}

/// Wakes one that sleeps on the word.
pub(crate) fn futex_wake(word: &std::sync::atomic::AtomicU32) {
    // SAFETY: the word lives through the call; waking touches nothing else.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
}

/// A pipe: its reading end and its writing end.
pub(crate) fn pipe() -> Result<(std::fs::File, std::fs::File), SysError> {
    use std::os::fd::FromRawFd as _;
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors into the array; both are new, and owned from here
    // on by the files.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(failed("making a pipe"));
        }
        Ok((std::fs::File::from_raw_fd(ends[0]), std::fs::File::from_raw_fd(ends[1])))
    }
}

/// The CPU time of a process, with that of its threads that have ended; 0 where there is none.
pub(crate) fn cpu_ns_of(process: libc::pid_t) -> u64 {
    let mut clock = 0;
    // SAFETY: only writes the clock's name.
    let is_there = unsafe { libc::clock_getcpuclockid(process, &raw mut clock) } == 0;
    if is_there { ThreadClock(clock).ns() } else { 0 }
}

/// How many of these a second has in what the kernel tells of processes.
pub(crate) fn ticks_a_second() -> u64 {
    // SAFETY: touches no memory.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

/// The clock of the CPU time that one thread has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    pub(crate) fn of<T>(thread: &std::thread::JoinHandle<T>) -> Self {
        use std::os::unix::thread::JoinHandleExt as _;
        let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // The handle is a number in glibc, and a pointer in musl.
        // SAFETY: a thread that is not joined yet has a valid handle; the call only writes the
        // clock's name.
        unsafe {
            libc::pthread_getcpuclockid(thread.as_pthread_t() as libc::pthread_t, &raw mut clock);
        }
        Self(clock)
    }

    pub(crate) fn mine_ns() -> u64 {
        Self(libc::CLOCK_THREAD_CPUTIME_ID).ns()
    }

    /// 0 once the thread has ended.
    pub(crate) fn ns(self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: fills the timespec, or leaves it alone if the thread is gone.
        unsafe {
            libc::clock_gettime(self.0, &raw mut time);
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}
