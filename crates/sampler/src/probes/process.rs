//! Whether a process may be stopped, and whether its loads may be read in its place.
//!
//! What is stopped must have the library's handler for the signal, and nothing that takes it for
//! something else: a debugger, or a runtime that asks the kernel for its handlers itself. What is
//! read is what the thread reads next anyhow; but where reading has effects (a device's registers)
//! it would happen twice, and where reading faults on purpose (the program handles the fault) it
//! would happen here.

use crate::partly::Partly;
use image::Image;
use insight::tally::{Mapped, Tally};
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
    /// By process: whether its program is one of Go's, whose runtime sets signal handlers itself.
    is_go: HashMap<u32, bool>,
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
        let is_go = *self.is_go.entry(process).or_insert_with(|| is_go(process));
        if is_go {
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

fn is_go(process: u32) -> bool {
    let program = PathBuf::from(format!("/proc/{process}/exe"));
    let Some(headers) = Partly::read_from(&program, &[]) else { return true };
    Image::parse(headers.data()).is_ok_and(|image| image::go::is_go(&image))
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
        assert!(!is_go(std::process::id()));
    }

    #[test]
    fn devices_are_known_by_their_names() {
        let is = |name: &str| is_device(&Mapped { name: name.into(), device: (0, 0), inode: 0, area: None });
        assert!(is("/dev/mem") && is("/sys/bus/pci/devices/0/resource0") && is("anon_inode:[vfio-device]"));
        assert!(!is("/dev/shm/pool") && !is("/dev/zero (deleted)") && !is("[heap]") && !is("/usr/bin/sys"));
    }
}
