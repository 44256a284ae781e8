//! The library as a file, and the environment that brings it into the program.
//!
//! It is a file in a directory of its own, not a memory file: a daemon that the program leaves
//! behind may start programs when the profiler has ended, and a library that is gone is an error of
//! the dynamic loader on their standard error. The directory goes with the profiler if no such
//! process is left.

use super::region::{ClockSettings, Region, ticks_are_steady};
use crate::perf::open::cpus;
use crate::request::{Request, Subject};
use heap::layout::VARIABLE;
use heap::library::RECORDER;
use image::elf::bytes::{u16_at, u32_at, u64_at};
use insight::samples::Tally;
use records::run::Refused;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::ffi::{CString, OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) struct Preload {
    directory: tempfile::TempDir,
    pub region: Region,
}

impl Preload {
    /// What is needed to tell of a command's allocations, and to sample it if there is to be a
    /// clock; or why that cannot be.
    pub(crate) fn of(
        command: &[OsString],
        cpus: usize,
        clock: Option<ClockSettings>,
    ) -> Result<Self, String> {
        loads_libraries(command.first().map_or(OsStr::new(""), OsString::as_os_str))?;
        if !ticks_are_steady() {
            return Err("the time stamp counter is not steady here".to_owned());
        }
        let region =
            Region::new(cpus, clock).map_err(|e| format!("no shared memory: {}", records::plain(&e)))?;
        let directory = directory().ok_or("no directory for the library: is every one mounted noexec?")?;
        let write = || -> std::io::Result<()> {
            std::fs::write(directory.path().join(NAME), RECORDER)?;
            // The program may run as another user than the profiler.
            std::fs::set_permissions(directory.path().join(NAME), PermissionsExt::from_mode(0o755))?;
            std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711))
        };
        write().map_err(|e| {
            let place = directory.path().display();
            format!("{place}: the library was not written: {}", records::plain(&e))
        })?;
        Ok(Self { directory, region })
    }

    /// This process's environment with the library in it.
    pub(crate) fn environment(&self) -> Vec<CString> {
        let library = self.directory.path().join(NAME);
        let region = self.region.path();
        let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        // In front of other libraries: one of them may be an allocator, to which ours passes on.
        extend(&mut all, "LD_PRELOAD", library.as_os_str(), true);
        extend(&mut all, VARIABLE, region.as_os_str(), false);
        // Else a program built with this sanitizer ends at once, since a library comes before it.
        extend(&mut all, "ASAN_OPTIONS", OsStr::new("verify_asan_link_order=0"), false);
        all.into_iter()
            .filter_map(|(mut name, value)| {
                name.push("=");
                name.push(value);
                CString::new(name.into_vec()).ok()
            })
            .collect()
    }

    /// The run is over. Where processes go on, they may start others: the library stays for these.
    pub(crate) fn end(self, tally: &Tally) {
        if tally.processes.keys().any(|process| Path::new(&format!("/proc/{process}")).exists()) {
            let _ = self.directory.keep();
        }
    }
}

const NAME: &str = "libgleaner-heap.so";

/// Sets a variable, or puts a word in front of or behind what is in it.
fn extend(all: &mut Vec<(OsString, OsString)>, name: &str, word: &OsStr, in_front: bool) {
    let Some((_, value)) = all.iter_mut().find(|(known, _)| known == name) else {
        all.push((name.into(), word.to_owned()));
        return;
    };
    if name == VARIABLE || value.is_empty() {
        word.clone_into(value);
        return;
    }
    let (mut first, second) =
        if in_front { (word.to_owned(), &*value) } else { (value.clone(), &word.to_owned()) };
    first.push(":");
    first.push(second);
    *value = first;
}

/// A directory whose files can be executed, with a name that the dynamic loader takes as one.
pub(crate) fn directory() -> Option<tempfile::TempDir> {
    let mut places = vec![std::env::temp_dir()];
    places.extend(["/tmp", "/var/tmp", "/dev/shm", "/run"].map(PathBuf::from));
    places.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    let is_good = |place: &PathBuf| {
        let is_plain =
            place.is_absolute() && !place.as_os_str().as_bytes().iter().any(|b| b" :\t\n;$".contains(b));
        is_plain && statvfs(place).is_ok_and(|about| !about.f_flag.contains(StatVfsMountFlags::NOEXEC))
    };
    let make = |place: PathBuf| records::temporary_directory_in(&place, "gleaner-").ok();
    places.into_iter().filter(is_good).find_map(make)
}

/// Whether a command's program has a dynamic loader that takes our library; if not, why.
fn loads_libraries(command: &OsStr) -> Result<(), String> {
    let mut path = found(command).ok_or("the program was not found")?;
    for _ in 0..4 {
        let mut head = Vec::new();
        let file = std::fs::File::open(&path).map_err(|e| records::plain(&e))?;
        file.take(4096).read_to_end(&mut head).map_err(|e| records::plain(&e))?;
        match interpreter(&head) {
            Some(next) => path = next,
            None => return is_dynamic(&head),
        }
    }
    Err("the program is a script of scripts".to_owned())
}

/// Whether there is such a program at all.
pub(crate) fn is_there(command: &OsStr) -> bool {
    found(command).is_some_and(|path| path.exists())
}

pub(crate) fn found(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(command));
    }
    let is_executable = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let paths = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&paths).map(|directory| directory.join(command)).find(is_executable)
}

/// What a script says it is for.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let word = line.split(|byte| b" \t".contains(byte)).find(|word| !word.is_empty())?;
    Some(Path::new(OsStr::from_bytes(word)).to_owned())
}

fn is_dynamic(head: &[u8]) -> Result<(), String> {
    const INTERPRETER: u32 = 3;
    if !head.starts_with(b"\x7fELF") {
        return Ok(()); // A script without its first line: the shell runs it.
    }
    if head.get(4) != Some(&2) || u16_at(head, 18) != Some(62) {
        return Err("the program is not one for x86-64".to_owned());
    }
    let (at, size, count) = (u64_at(head, 32), u16_at(head, 54), u16_at(head, 56));
    let (Some(at), Some(size), Some(count)) = (at, size, count) else {
        return Err("the program's headers are cut off".to_owned());
    };
    let has_loader = (0..u64::from(count)).any(|number| {
        let header = at.saturating_add(number * u64::from(size));
        u32_at(head, usize::try_from(header).unwrap_or(usize::MAX)) == Some(INTERPRETER)
    });
    if has_loader {
        Ok(())
    } else {
        Err("the program is linked statically: no library comes into it".to_owned())
    }
}

/// What tells of the allocations of the program that is asked for, or why nothing does.
pub(crate) fn for_allocations(request: &Request) -> (Option<Preload>, Option<Refused>) {
    match &request.subject {
        _ if !request.finds_out.allocations => (None, None),
        Subject::Process(_) => (
            None,
            Some(refused("known only of programs that the profiler starts, not of those it attaches to")),
        ),
        Subject::Command(words) => match Preload::of(words, cpus().len(), None) {
            Ok(preload) => (Some(preload), None),
            Err(why) => (None, Some(refused(why))),
        },
    }
}

/// What is not known of allocations, for the record.
pub(crate) fn refused(why: impl Into<String>) -> Refused {
    Refused { what: "allocations".to_owned(), why: why.into(), would_help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_take_libraries_are_known() {
        assert_eq!(loads_libraries(OsStr::new("sh")), Ok(()));
        assert!(loads_libraries(OsStr::new("no-such-program")).is_err());
        assert!(is_dynamic(b"\x7fELF\x01").unwrap_err().contains("x86-64"));
        let mut head = std::fs::read("/proc/self/exe").unwrap();
        head.truncate(4096);
        assert_eq!(is_dynamic(&head), Ok(()));
        head[56..58].copy_from_slice(&[0, 0]);
        assert!(is_dynamic(&head).unwrap_err().contains("statically"));
        assert_eq!(interpreter(b"#! /bin/sh -e\n"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn what_the_user_preloads_stays() {
        let mut all = vec![("LD_PRELOAD".into(), "a.so".into())];
        extend(&mut all, "LD_PRELOAD", OsStr::new("ours.so"), true);
        extend(&mut all, "ASAN_OPTIONS", OsStr::new("x=0"), false);
        extend(&mut all, "ASAN_OPTIONS", OsStr::new("y=0"), false);
        let expected: Vec<(OsString, OsString)> =
            vec![("LD_PRELOAD".into(), "ours.so:a.so".into()), ("ASAN_OPTIONS".into(), "x=0:y=0".into())];
        assert_eq!(all, expected);
    }
}
