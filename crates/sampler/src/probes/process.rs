//! Whether a process may be stopped, and whether its loads may be read in its place.
//!
//! What is stopped must have the library's handler for the signal, and nothing that takes it for
//! something else: a debugger, or a runtime that asks the kernel for its handlers itself. What is
//! read is what the thread reads next anyhow; but where reading has effects (a device's registers)
//! it would happen twice, and where reading faults on purpose (the program handles the fault) it
//! would happen here.

use crate::partly::Partly;
use image::Image;
use insight::samples::{Mapped, Tally};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

const SIGBUS: u32 = 7;
const SIGSEGV: u32 = 11;
const SIGTRAP: u32 = 5;

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct May {
    pub read: bool,
}

#[derive(Default)]
pub(super) struct Processes {
    /// By process: whether its program sets signal handlers past libc.
    past_libc: HashMap<u32, bool>,
    why_not: Option<&'static str>,
}

impl Processes {
    /// What may be done to a process now; `None`: nothing.
    pub(super) fn may(&mut self, process: u32, tally: &Tally) -> Option<May> {
        let found = self.asked(process, tally);
        if let Err(why) = found {
            self.why_not = Some(why);
        }
        found.ok()
    }

    /// Why some process was not stopped.
    pub(super) fn why_not(&self) -> Option<&'static str> {
        self.why_not
    }

    fn asked(&mut self, process: u32, tally: &Tally) -> Result<May, &'static str> {
        let status = fs::read_to_string(format!("/proc/{process}/status"));
        let status = Status::of(&status.map_err(|_| "the program ended too soon")?);
        if status.is_traced {
            return Err("a debugger traces the program");
        }
        if !status.catches(SIGTRAP) {
            return Err("the program has no handler of the profiler's for SIGTRAP");
        }
        if status.filters > own_filters() {
            return Err("the program filters its system calls (seccomp)");
        }
        if *self.past_libc.entry(process).or_insert_with(|| is_past_libc(process)) {
            return Err("the program sets its signal handlers past libc, as Go's runtime does");
        }
        let known = tally.processes.get(&process).ok_or("the process is not known")?;
        let has_device = known.space.all().any(|mapping| is_device(tally.mapped(mapping.what)));
        Ok(May { read: !has_device && !status.catches(SIGSEGV) && !status.catches(SIGBUS) })
    }
}

/// What `/proc/PID/status` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    is_traced: bool,
    caught: u64,
    filters: u64,
}

impl Status {
    fn of(text: &str) -> Self {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let number = |name: &str| field(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        Self {
            is_traced: number("TracerPid:") != 0,
            caught: field("SigCgt:").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0),
            filters: number("Seccomp_filters:").max(u64::from(number("Seccomp:") == 1)),
        }
    }

    fn catches(&self, signal: u32) -> bool {
        self.caught >> (signal - 1) & 1 != 0
    }
}

/// Filters that this process has are its children's, too: its own signals return under them.
fn own_filters() -> u64 {
    Status::of(&fs::read_to_string("/proc/self/status").unwrap_or_default()).filters
}

/// Whether a process's program asks the kernel itself for its signal handlers: then it may take
/// ours away between two looks at it.
fn is_past_libc(process: u32) -> bool {
    let program = PathBuf::from(format!("/proc/{process}/exe"));
    let Some(headers) = Partly::read_from(&program, &[]) else { return true };
    if Image::parse(headers.data()).is_ok_and(|image| image::go::is_go(&image)) {
        return true;
    }
    let is_small = fs::metadata(&program).is_ok_and(|about| about.len() <= MOST_SEARCHED);
    is_small && fs::read(&program).map_or(true, |bytes| sets_handlers(&bytes))
}

/// Larger programs are not searched: they are linked with a libc for that.
const MOST_SEARCHED: u64 = 32 << 20;

/// Whether a file has code that looks as if it asked the kernel for a signal handler: the number of
/// that call into eax, and the call near behind it.
fn sets_handlers(bytes: &[u8]) -> bool {
    /// `mov eax, 13`
    const NUMBER: [u8; 5] = [0xb8, 13, 0, 0, 0];
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    const NEAR: usize = 40;
    bytes.windows(NUMBER.len()).enumerate().filter(|(_, at)| *at == NUMBER).any(|(at, _)| {
        let behind = &bytes[at + NUMBER.len()..(at + NUMBER.len() + NEAR).min(bytes.len())];
        behind.windows(SYSCALL.len()).any(|code| code == SYSCALL)
    })
}

/// Memory of a device, by the name of what is mapped.
fn is_device(mapped: &Mapped) -> bool {
    /// Devices that are memory.
    const MEMORY: [&[u8]; 4] = [b"/dev/shm/", b"/dev/zero", b"/dev/hugepages", b"/dev/null"];
    let name = &mapped.name[..];
    let is_memory = MEMORY.iter().any(|memory| name.starts_with(memory));
    let places: [&[u8]; 3] = [b"/dev/", b"/sys/", b"anon_inode:"];
    !is_memory && places.iter().any(|place| name.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_what_a_process_catches() {
        let text = "Name:\tx\nTracerPid:\t0\nSigCgt:\t0000000000000410\nSeccomp:\t0\nSeccomp_filters:\t2\n";
        let status = Status::of(text);
        assert_eq!(status, Status { is_traced: false, caught: 0x410, filters: 2 });
        assert!(status.catches(SIGTRAP) && status.catches(SIGSEGV) && !status.catches(SIGBUS));
        assert!(Status::of("TracerPid:\t7\n").is_traced);
        assert_eq!(Status::of(""), Status::default());
    }

    #[test]
    fn programs_that_ask_the_kernel_for_handlers_are_known() {
        assert!(!sets_handlers(&fs::read("/bin/ls").unwrap()));
        let code = [0x90, 0xb8, 13, 0, 0, 0, 0xbf, 5, 0, 0, 0, 0x0f, 0x05, 0xc3];
        assert!(sets_handlers(&code) && !sets_handlers(&code[..12]));
    }

    #[test]
    fn devices_are_known_by_their_names() {
        let is = |name: &str| is_device(&Mapped { name: name.into(), device: (0, 0), inode: 0, area: None });
        assert!(is("/dev/mem") && is("/sys/bus/pci/devices/0/resource0") && is("anon_inode:[vfio-device]"));
        assert!(!is("/dev/shm/pool") && !is("/dev/zero (deleted)") && !is("[heap]") && !is("/usr/bin/sys"));
    }
}
