//! The bytes in a running program's code that switch each prefetch.
//!
//! One byte is written at a time, which other CPUs see before or after, and with either the code
//! does what it did. Each process has its own copy of the page from then on; what it forks later
//! has the state of that moment.

use crate::settings::prefetched::{self, SwitchedFile};
use lab::child;
use records::recipe::{Ahead, PrefetchedLoad, Setting};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use twin::Switch;

pub(super) struct Switched {
    process: u32,
    files: Vec<SwitchedFile>,
}

impl Switched {
    /// The prefetches of these settings, whose rewritten files are in this directory.
    pub(super) fn of(process: u32, settings: &[Setting], directory: &Path) -> Result<Self, String> {
        let files = prefetched::switches(settings, directory)?;
        if files.iter().all(|file| file.switches.is_empty()) {
            return Err("its rewritten files hold no prefetch".to_owned());
        }
        Ok(Self { process, files })
    }

    pub(super) fn is_running(&self) -> bool {
        // One that has ended and is not waited for yet has no memory.
        let maps = std::fs::read(format!("/proc/{}/maps", self.process));
        maps.is_ok_and(|maps| !maps.is_empty())
    }

    /// These are switched on, and all others off. How many places there are in all processes.
    pub(super) fn set(&self, settings: &[Setting]) -> io::Result<usize> {
        let is_on = |file: &SwitchedFile, switch: &Switch| {
            settings.iter().any(|setting| match setting {
                Setting::Prefetch(load) => load.file.path == file.path && is_of(load, switch),
                _ => false,
            })
        };
        let mut places = 0;
        for process in child::tree(self.process) {
            match self.set_in(process, &is_on) {
                Ok(number) => places += number,
                // It may have ended meanwhile; the one that was asked for must not fail.
                Err(_) if process != self.process => {}
                Err(error) => return Err(error),
            }
        }
        Ok(places)
    }

    fn set_in(&self, process: u32, is_on: &dyn Fn(&SwitchedFile, &Switch) -> bool) -> io::Result<usize> {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
        let mut memory = None;
        let mut places = 0;
        for mapped in maps.lines().filter_map(Mapped::of).filter(|mapped| mapped.is_code) {
            let Some(file) = self.files.iter().find(|file| Path::new(mapped.path) == file.place) else {
                continue;
            };
            let inside = file.switches.iter().filter(|one| mapped.offsets.contains(&one.offset));
            for switch in inside {
                let memory = match &memory {
                    Some(memory) => memory,
                    None => memory.insert(open(process)?),
                };
                let address = mapped.begin + (switch.offset - mapped.offsets.start);
                write(memory, address, switch, is_on(file, switch))?;
                places += 1;
            }
        }
        Ok(places)
    }
}

fn is_of(load: &PrefetchedLoad, switch: &Switch) -> bool {
    let is_as_far = match (load.ahead, switch.ahead) {
        (Ahead::Bytes(one), twin::Ahead::Bytes(other)) | (Ahead::Steps(one), twin::Ahead::Steps(other)) => {
            one == other
        }
        _ => false,
    };
    load.address == switch.load && is_as_far
}

/// Whether code may be written to at all: some kernels let only debuggers. This process's own
/// tells.
pub(super) fn can_be_written() -> io::Result<()> {
    let address = can_be_written as fn() -> io::Result<()> as usize as u64;
    let memory = open(std::process::id())?;
    let mut now = [0];
    memory.read_exact_at(&mut now, address)?;
    memory.write_all_at(&now, address)
}

fn open(process: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(format!("/proc/{process}/mem"))
}

/// Nothing is written where another byte stands than one of the two.
fn write(memory: &File, address: u64, switch: &Switch, on: bool) -> io::Result<()> {
    let mut now = [0];
    memory.read_exact_at(&mut now, address)?;
    if ![switch.on, switch.off].contains(&now[0]) {
        return Err(io::Error::other("its code is not what was written for it"));
    }
    let wanted = if on { switch.on } else { switch.off };
    if now[0] == wanted { Ok(()) } else { memory.write_all_at(&[wanted], address) }
}

/// One line of /proc/PID/maps.
struct Mapped<'l> {
    begin: u64,
    offsets: std::ops::Range<u64>,
    is_code: bool,
    path: &'l str,
}

impl<'l> Mapped<'l> {
    fn of(line: &'l str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (begin, end) = words.next()?.split_once('-')?;
        let (rights, offset) = (words.next()?, words.next()?);
        let path = words.nth(2)?.trim_start();
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (begin, end, offset) = (number(begin)?, number(end)?, number(offset)?);
        Some(Self {
            begin,
            offsets: offset..offset + end.checked_sub(begin)?,
            is_code: rights.contains('x'),
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read() {
        let line = "55d0c7a02000-55d0c7a05000 r-xp 00002000 fe:00 123456                     /a dir/rewritten-0/prog";
        let mapped = Mapped::of(line).unwrap();
        assert_eq!((mapped.begin, mapped.offsets), (0x55d0c7a02000, 0x2000..0x5000));
        assert!(mapped.is_code && mapped.path == "/a dir/rewritten-0/prog");
        assert!(Mapped::of("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ").unwrap().path.is_empty());
    }

    #[test]
    fn what_is_no_switch_is_left_alone() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[0x0f, 0x18, 0x77]).unwrap();
        let switch = |offset| Switch { load: 0, ahead: twin::Ahead::Bytes(64), offset, on: 0x18, off: 0x1f };
        write(&file, 1, &switch(1), false).unwrap();
        write(&file, 1, &switch(1), false).unwrap();
        let mut bytes = [0; 3];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [0x0f, 0x1f, 0x77]);
        write(&file, 1, &switch(1), true).unwrap();
        assert!(write(&file, 2, &switch(2), false).unwrap_err().to_string().contains("not what was written"));
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [0x0f, 0x18, 0x77]);
    }
}
