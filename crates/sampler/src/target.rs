//! The profiled program: started, but waiting until it is watched; or attached to.

use crate::Output;
use crate::perf::event::{Event, NewMapping};
use crate::perf::open::now_ns;
use lab::inherited::Inherited;
use std::ffi::{CString, OsString};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// A program that was started and waits.
pub(crate) struct Child {
    pub pid: u32,
    go: std::fs::File,
    /// Tells why the program could not be executed; ends without a word if it was.
    failed: std::fs::File,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Killed(i32),
}

impl Child {
    /// Forks a process that executes the command as soon as it is let go. What it prints can
    /// go elsewhere. Without an
    /// environment it has that of this process.
    pub(crate) fn start(
        command: &[OsString],
        environment: Option<&[CString]>,
        output: Output,
        begin: &Inherited,
    ) -> io::Result<Self> {
        let invalid = |_| io::Error::new(io::ErrorKind::InvalidInput, "an argument holds a zero byte");
        let words: Vec<CString> = command
            .iter()
            .map(|word| CString::new(word.as_bytes()).map_err(invalid))
            .collect::<Result<_, _>>()?;
        let pointers = pointers_to(&words);
        let environment = environment.map(pointers_to);
        let (wait, go) = pipe()?;
        let (failed, tell) = pipe()?;
        // SAFETY: the child calls only what may be called after a fork of a process with threads:
        // system calls, on memory prepared before.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            // SAFETY: this is the child, which ends in `execvp` or `_exit`: it neither returns nor
            // allocates.
            unsafe { become_program(&wait, &go, &tell, &pointers, environment.as_deref(), output, begin) }
        }
        Ok(Self { pid: pid as u32, go: go.into(), failed: failed.into() })
    }

    /// Lets it execute its program; an error if that is not possible.
    pub(crate) fn go(mut self) -> io::Result<Running> {
        self.go.write_all(&[1])?;
        drop(self.go);
        let mut number = [0; 4];
        let running = Running { pid: self.pid };
        if self.failed.read(&mut number)? == 0 {
            return Ok(running);
        }
        running.wait();
        Err(io::Error::from_raw_os_error(i32::from_le_bytes(number)))
    }
}

/// A program that runs.
pub(crate) struct Running {
    pub pid: u32,
}

impl Running {
    /// How it ended, if it has; its CPU time is this process's children's then.
    pub(crate) fn ended(&self) -> Option<End> {
        self.wait_with(libc::WNOHANG)
    }

    fn wait(&self) {
        let _ = self.wait_with(0);
    }

    fn wait_with(&self, options: i32) -> Option<End> {
        let mut status = 0;
        // SAFETY: `status` lives until the call is over.
        let pid = unsafe { libc::waitpid(self.pid as i32, &raw mut status, options) };
        if pid != self.pid as i32 {
            return None;
        }
        Some(if libc::WIFEXITED(status) {
            End::Exited(libc::WEXITSTATUS(status))
        } else {
            End::Killed(libc::WTERMSIG(status))
        })
    }
}

/// As the kernel wants them: ended by a null pointer.
fn pointers_to(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Waits for the word, then becomes the program.
///
/// # Safety
///
/// Only in a child right after `fork`; `words` and `environment` end with a null pointer.
unsafe fn become_program(
    wait: &OwnedFd,
    go: &OwnedFd,
    tell: &OwnedFd,
    words: &[*const libc::c_char],
    environment: Option<&[*const libc::c_char]>,
    output: Output,
    begin: &Inherited,
) -> ! {
    // SAFETY: system calls on descriptors and memory that this process has.
    unsafe {
        // With its own end for writing open, the child would never see its parent's end closed.
        libc::close(go.as_raw_fd());
        let mut byte = 0_u8;
        if libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
            libc::_exit(127);
        }
        match output {
            Output::AsItIs => {}
            Output::ToError => {
                libc::dup2(2, 1);
            }
            Output::Nowhere => {
                let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                libc::dup2(nowhere, 1);
                libc::dup2(nowhere, 2);
            }
        }
        // A Rust program ignores SIGPIPE; what it starts finds it as the shell left it. Signals
        // with handlers get their defaults back by executing, all others stay as they were.
        let ignored = begin.ignored >> (libc::SIGPIPE - 1) & 1 == 1;
        libc::signal(libc::SIGPIPE, if ignored { libc::SIG_IGN } else { libc::SIG_DFL });
        match environment {
            Some(environment) => libc::execvpe(words[0], words.as_ptr(), environment.as_ptr()),
            None => libc::execvp(words[0], words.as_ptr()),
        };
        let number = (*libc::__errno_location()).to_le_bytes();
        libc::write(tell.as_raw_fd(), number.as_ptr().cast(), number.len());
        libc::_exit(127)
    }
}

/// CPU time of this process's children that have ended and were waited for, and of theirs.
pub(crate) fn cpu_time_of_children() -> Duration {
    // SAFETY: a structure of numbers, for which all zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the structure, which lives until the call is over.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, 1000 * time.tv_usec as u32);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// The threads of a running process.
pub(crate) fn threads_of(process: u32) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task"))?;
    let mut threads: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    Ok(threads)
}

/// A running process and all processes below it, of the same user: a server's workers are profiled
/// with it. Those that begin later are anyway.
pub(crate) fn family(process: u32) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let owner = |process: u32| std::fs::metadata(format!("/proc/{process}")).ok().map(|it| it.uid());
    let children = |process: u32| -> Vec<u32> {
        let of_thread = |thread: u32| {
            std::fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).unwrap_or_default()
        };
        let told: String = threads_of(process).unwrap_or_default().into_iter().map(of_thread).collect();
        told.split_whitespace().filter_map(|child| child.parse().ok()).collect()
    };
    let (own, mut found) = (owner(process), vec![process]);
    let mut looked_at = 0;
    while let Some(&parent) = found.get(looked_at) {
        looked_at += 1;
        let of_user = children(parent).into_iter().filter(|child| owner(*child) == own);
        found.extend(of_user.filter(|child| !found.contains(child)).collect::<Vec<u32>>());
    }
    found
}

/// What a process that runs already would have told: its name and what it has mapped.
pub(crate) fn told_by(process: u32) -> Vec<Event> {
    let mut name = std::fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    name.truncate(name.trim_ascii_end().len());
    let named = Event::Named { process, thread: process, name, executed: false, time_ns: now_ns() };
    let mappings = mappings_of(process).unwrap_or_default();
    [named].into_iter().chain(mappings.into_iter().map(Event::Mapped)).collect()
}

/// What a running process has mapped, as if it had mapped it now.
pub(crate) fn mappings_of(process: u32) -> io::Result<Vec<NewMapping>> {
    let text = std::fs::read(format!("/proc/{process}/maps"))?;
    let time_ns = now_ns();
    Ok(text.split(|&byte| byte == b'\n').filter_map(|line| mapping(line, process, time_ns)).collect())
}

/// Where a running process has memory that no file has, and that it reads and writes.
pub(crate) fn own_memory_of(process: u32) -> io::Result<Vec<Range<u64>>> {
    const RIGHTS: &[u8] = b" rw-p ";
    let text = std::fs::read(format!("/proc/{process}/maps"))?;
    let lines = text.split(|&byte| byte == b'\n');
    let writable = lines.filter(|line| line.windows(RIGHTS.len()).any(|part| part == RIGHTS));
    let own = writable.filter_map(|line| mapping(line, process, 0)).filter(|mapping| {
        mapping.inode == 0 && (mapping.name.is_empty() || mapping.name.starts_with(b"[anon:"))
    });
    Ok(own.map(|mapping| mapping.start..mapping.start.saturating_add(mapping.bytes)).collect())
}

/// A line of `/proc/PID/maps`: `start-end rights offset major:minor inode   name`.
pub(crate) fn mapping(line: &[u8], process: u32, time_ns: u64) -> Option<NewMapping> {
    let mut rest = line;
    let mut field = || {
        let from = rest.iter().position(|&byte| byte != b' ')?;
        let to = rest[from..].iter().position(|&byte| byte == b' ').map_or(rest.len(), |at| from + at);
        let (field, behind) = (&rest[from..to], &rest[to..]);
        rest = behind;
        std::str::from_utf8(field).ok()
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = field()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let rights = field()?;
    let (executable, is_shared) = (rights.contains('x'), rights.ends_with('s'));
    let offset = hex(field()?)?;
    let (major, minor) = field()?.split_once(':')?;
    let device = (hex(major)? as u32, hex(minor)? as u32);
    let inode = field()?.parse().ok()?;
    let name = rest.iter().position(|&byte| byte != b' ').map_or(&[][..], |from| &rest[from..]).to_vec();
    let bytes = end.checked_sub(start)?;
    Some(NewMapping { process, start, bytes, offset, device, inode, executable, is_shared, name, time_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_line_by_line() {
        let line = b"55d0c000-55d0e000 r-xp 00002000 fe:01 1234                       /opt/a b/prog";
        let found = mapping(line, 7, 9).unwrap();
        assert_eq!((found.start, found.bytes, found.offset), (0x55d0_c000, 0x2000, 0x2000));
        assert!(found.executable);
        assert_eq!((found.device, found.inode, &*found.name), ((0xfe, 1), 1234, &b"/opt/a b/prog"[..]));
        let anonymous = mapping(b"7f00-7f10 rw-p 00000000 00:00 0 ", 7, 9).unwrap();
        assert!(!anonymous.executable && !anonymous.is_shared);
        let shared = mapping(b"7f00-7f10 rw-s 00002000 00:01 3082    /dev/zero (deleted)", 7, 9).unwrap();
        assert!(shared.is_shared && shared.offset == 0x2000 && shared.inode == 3082);
        assert_eq!(&*shared.name, b"/dev/zero (deleted)");
        assert_eq!((anonymous.bytes, &*anonymous.name), (0x10, &b""[..]));
        for damaged in [&b""[..], b"7f00", b"7f00-7e00 rw-p 0 00:00 0", b"x-y rw-p 0 0:0 0"] {
            assert!(mapping(damaged, 7, 9).is_none(), "{damaged:?}");
        }
        assert!(mappings_of(std::process::id()).unwrap().len() > 3);
        let memory = vec![1_u8; 1 << 20];
        let own = own_memory_of(std::process::id()).unwrap();
        let holds = |at: u64| own.iter().any(|memory| memory.contains(&at));
        assert!(holds(memory.as_ptr() as u64) && !holds(maps_are_read_line_by_line as *const () as u64));
        assert!(matches!(&told_by(std::process::id())[0], Event::Named { name, .. } if !name.is_empty()));
        assert!(threads_of(std::process::id()).unwrap().contains(&std::process::id()));
    }

    #[test]
    fn a_family_is_all_processes_below_one() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let all = family(std::process::id());
        assert!(all.contains(&std::process::id()) && all.contains(&child.id()), "{all:?}");
        assert_eq!(family(child.id()), [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
