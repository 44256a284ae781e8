//! A process that becomes another program, which finds everything as if its user had started it:
//! signals that this process handles or ignores are as they were, closed streams are closed. A
//! program beside another one runs when nobody else wants the processor, and ends with its starter.
//!
//! The standard library can do none of this for a child without unsafe code between `fork` and
//! `execve`. So this binary is started again, and executes the program once all is set.
//!
//! ```text
//!  gleaner ── fork, execve ──► /proc/self/exe --gleaner-starter … ── execve ──► the program
//! ```
//!
//! A program that starts others this way calls [`serve_if_asked`] first in its `main`.

use crate::inherited::Inherited;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The first argument that makes a program the starter; for this program alone.
const STARTER_ARGUMENT: &str = "--gleaner-starter";
/// What a shell says of a program that cannot be executed.
const NOT_EXECUTED: u8 = 126;

/// How the program is to run.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'t> {
    pub inherited: Inherited,
    /// Under `SCHED_IDLE`, and killed with the thread that starts it.
    pub is_beside: bool,
    /// The CPUs that it may use; none: those of this process.
    pub cpus: Option<&'t [u32]>,
}

/// A command that becomes this file, called with these arguments, of which the first is its name.
pub fn command(file: &Path, arguments: &[OsString], terms: &Terms<'_>) -> Command {
    let Inherited { ignored, blocked, closed } = terms.inherited;
    let cpus = terms.cpus.unwrap_or_default().iter().fold(0, |all: u64, cpu| all | 1 << (cpu % 64));
    let parent = if terms.is_beside { std::process::id() } else { 0 };
    let mut command = Command::new("/proc/self/exe");
    command.arg(STARTER_ARGUMENT);
    command.args([ignored, blocked, u64::from(closed), cpus, u64::from(parent)].map(|word| word.to_string()));
    command.arg(file).args(arguments);
    command
}

/// Becomes the program that the arguments of this process name, if they ask for that; returns only
/// if they do not, or if it cannot be executed.
pub fn serve_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != STARTER_ARGUMENT {
        return None;
    }
    let mut word = || arguments.next()?.to_str()?.parse::<u64>().ok();
    let (ignored, blocked, closed, cpus, parent) = (word()?, word()?, word()?, word()?, word()?);
    let file = arguments.next()?;
    if parent != 0 && !run_beside(parent) {
        return Some(NOT_EXECUTED.into());
    }
    if cpus != 0 {
        run_on(cpus);
    }
    let why = become_program(&file, arguments, &Inherited { ignored, blocked, closed: closed as u32 });
    eprintln!("gleaner: {}: {}", Path::new(&file).display(), crate::sys::plain(&why));
    Some(NOT_EXECUTED.into())
}

/// Under the lowest priority, and not for longer than its parent lives; whether that lives still.
fn run_beside(parent: u64) -> bool {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: `prctl` takes a number here, `getppid` nothing; the structure lives until the call is
    // over, and the kernel only reads it.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority);
        // It may have died before it was asked to tell.
        libc::getppid() as u64 == parent
    }
}

/// On these CPUs, the lowest bit is CPU 0. They were tried before: where that changed, it runs
/// where it may.
fn run_on(cpus: u64) {
    // SAFETY: a zeroed set is an empty one; it lives until the call is over.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (0..64).filter(|cpu| cpus >> cpu & 1 == 1).for_each(|cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

fn become_program(
    file: &OsStr,
    arguments: impl Iterator<Item = OsString>,
    inherited: &Inherited,
) -> io::Error {
    let words = std::iter::once(file.to_owned()).chain(arguments).map(|word| CString::new(word.into_vec()));
    let Ok(words) = words.collect::<Result<Vec<CString>, _>>() else {
        return io::ErrorKind::InvalidInput.into();
    };
    let pointers: Vec<*const libc::c_char> =
        words[1..].iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: this process has one thread, which does nothing else any more; the pointers are to
    // texts that live until the end, and a null pointer ends them.
    unsafe {
        for signal in 1..64 {
            if inherited.ignored >> (signal - 1) & 1 == 1 {
                libc::signal(signal, libc::SIG_IGN);
            } else if signal == libc::SIGPIPE {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        (1..64)
            .filter(|signal| inherited.blocked >> (signal - 1) & 1 == 1)
            .for_each(|signal| _ = libc::sigaddset(&raw mut blocked, signal));
        libc::sigprocmask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut());
        (0..3).filter(|fd| inherited.closed >> fd & 1 == 1).for_each(|fd| _ = libc::close(fd));
        libc::execv(words[0].as_ptr(), pointers.as_ptr());
    }
    io::Error::last_os_error()
}
