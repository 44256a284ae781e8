//! The files that sampled processes map, opened while these run: what was deleted since is still
//! read, and so is what a container alone has.
//!
//! The kernel tells a file by its path as its process sees it, its device and its inode. So the
//! mapping itself is opened (`/proc/PID/map_files`), or the path below the process's own root, or
//! that of the process that made it, if it has ended. What has another inode by then is another
//! file, unless its build id is the one in the process's memory: file systems in layers have
//! numbers of their own.

use crate::files::{self, Missing};
use crate::partly::{Partly, elf};
use image::Image;
use image::elf::bytes::{u16_at, u32_at, u64_at};
use insight::ModuleFile;
use insight::samples::{AddressSpace, Mapped, MappedId, Tally, UnwindTables};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::FileOffset;

/// Why a file could not be read.
const REPLACED: &str = "another file has its name by now";
const GONE: &str = "it was gone before it could be opened";
const TOO_MANY: &str = "too many files are open already";
pub(crate) const TOO_DEAR: &str = "reading it takes more than --budget allows in this time";

/// Ancestors that are asked for their root.
const MOST_ANCESTORS: usize = 16;

/// CPU time that a byte of a file takes: most of it is read, and its symbols are sorted.
const SECONDS_A_BYTE: f64 = 3e-9;
/// What any file takes beside that.
const SECONDS_A_FILE: f64 = 1e-3;

/// The files of all processes, by what is mapped.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    by_id: HashMap<MappedId, Result<Arc<File>, &'static str>>,
    open: usize,
    most: usize,
    /// Which process made which.
    pub parents: HashMap<u32, u32>,
}

impl Opened {
    /// No more than this number of files are kept open.
    pub(crate) fn new(most: usize) -> Self {
        Self { by_id: HashMap::new(), open: 0, most, parents: HashMap::new() }
    }

    /// Without any file.
    pub(crate) fn emptied(self) -> Self {
        Self::new(self.most)
    }

    /// Closes all but these files.
    pub(crate) fn keep(&mut self, wanted: &HashSet<MappedId>) {
        self.by_id.retain(|what, _| wanted.contains(what));
        self.open = self.by_id.values().filter(|file| file.is_ok()).count();
    }

    /// Opens what a process maps, if it was not opened before.
    pub(crate) fn need(&mut self, what: MappedId, mapped: &Mapped, process: u32, space: &AddressSpace) {
        if self.by_id.contains_key(&what) || mapped.area.is_some() || mapped.name == files::VDSO {
            return;
        }
        let found =
            if self.open < self.most { self.find(what, mapped, process, space) } else { Err(TOO_MANY) };
        self.open += usize::from(found.is_ok());
        self.by_id.insert(what, found.map(Arc::new));
    }

    pub(crate) fn unwind_tables(
        &mut self,
        what: MappedId,
        mapped: &Mapped,
        process: u32,
        space: &AddressSpace,
    ) -> Option<UnwindTables> {
        if mapped.name == files::VDSO {
            return files::unwind_tables(mapped);
        }
        self.need(what, mapped, process, space);
        let file = self.by_id.get(&what)?.as_ref().ok()?;
        let file = Partly::read_from(&path_to(file), &[".eh_frame", ".eh_frame_hdr"])?;
        Some(UnwindTables::of(&Image::parse(file.data()).ok()?))
    }

    /// What samples are in, read, as far as this CPU time allows, in seconds: first the files with
    /// most samples for their size. And what was not read.
    pub(crate) fn modules(&self, tally: &Tally, allowed_s: f64) -> (Vec<ModuleFile>, Vec<Missing>) {
        let mut samples: HashMap<u32, u64> = HashMap::new();
        for (place, counts) in &tally.places {
            *samples.entry(place.what.0).or_default() += counts.user + counts.kernel;
        }
        for place in tally.stacks.places() {
            samples.entry(place.what.0).or_default();
        }
        let cost_s = |what: u32| SECONDS_A_FILE + SECONDS_A_BYTE * self.bytes(MappedId(what)) as f64;
        let mut wanted: Vec<(u32, u64, f64)> =
            samples.into_iter().map(|(what, count)| (what, count, cost_s(what))).collect();
        wanted.sort_unstable_by(|(a, x, x_costs), (b, y, y_costs)| {
            (*y as f64 / y_costs).total_cmp(&(*x as f64 / x_costs)).then(a.cmp(b))
        });
        let (mut found, mut missing, mut taken_s) = (Vec::new(), Vec::new(), 0.0);
        for (what, count, cost_s) in wanted {
            let mapped = &tally.mapped[what as usize];
            let path = records::text_of(files::path_of(mapped));
            if mapped.area.is_some() {
                continue;
            }
            let data = if mapped.name == files::VDSO {
                files::bytes_of(mapped).ok_or(GONE)
            } else if taken_s + cost_s > allowed_s {
                Err(TOO_DEAR)
            } else {
                self.read(MappedId(what))
            };
            match data {
                Ok(data) => {
                    taken_s += cost_s;
                    let debug = crate::debug_files::of(&data);
                    found.push(ModuleFile { what, path, data, debug, told: BTreeMap::new() });
                }
                Err(why) if count > 0 && path.starts_with('/') => {
                    missing.push(Missing { path, why, samples: count });
                }
                Err(_) => {}
            }
        }
        missing.sort_by_key(|file| std::cmp::Reverse(file.samples));
        (found, missing)
    }

    fn bytes(&self, what: MappedId) -> u64 {
        let file = self.by_id.get(&what).and_then(|file| file.as_ref().ok());
        file.and_then(|file| file.metadata().ok()).map_or(0, |about| about.len())
    }

    fn read(&self, what: MappedId) -> Result<Vec<u8>, &'static str> {
        let file = self.by_id.get(&what).ok_or(GONE)?.as_ref().map_err(|why| *why)?;
        elf(&path_to(file)).ok_or("it is no ELF file")
    }

    fn find(
        &self,
        what: MappedId,
        mapped: &Mapped,
        process: u32,
        space: &AddressSpace,
    ) -> Result<File, &'static str> {
        let path = files::path_of(mapped);
        if !path.is_absolute() || mapped.name.starts_with(b"//") {
            return Err("it is no file");
        }
        let path = as_it_was(path);
        for mapping in space.all().filter(|mapping| mapping.what == what) {
            let exact = format!("/proc/{process}/map_files/{:x}-{:x}", mapping.start.0, mapping.end.0);
            if let Some(file) = regular(Path::new(&exact)).filter(|file| is_same(file, mapped)) {
                return Ok(file);
            }
        }
        let program = format!("/proc/{process}/exe");
        if let Some(file) = regular(Path::new(&program)).filter(|file| is_same(file, mapped)) {
            return Ok(file);
        }
        let mut why = GONE;
        let ancestors = std::iter::successors(Some(process), |process| self.parents.get(process).copied());
        for process in ancestors.take(MOST_ANCESTORS) {
            let Some(file) = in_root_of(process, &path) else { continue };
            if is_same(&file, mapped) || has_build_id_of_memory(&file, what, process, space) {
                return Ok(file);
            }
            why = REPLACED;
        }
        match regular(&path) {
            Some(file) if is_same(&file, mapped) => Ok(file),
            Some(_) => Err(REPLACED),
            None => Err(why),
        }
    }
}

/// `/proc/PID/maps` marks what has no name any more.
fn as_it_was(path: &Path) -> PathBuf {
    let text = path.as_os_str().as_encoded_bytes();
    match text.strip_suffix(b" (deleted)") {
        Some(name) => {
            use std::os::unix::ffi::OsStrExt;
            PathBuf::from(std::ffi::OsStr::from_bytes(name))
        }
        None => path.to_owned(),
    }
}

fn path_to(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A device or a pipe must not stop the profiler.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn regular(path: &Path) -> Option<File> {
    let file: File = open(path, FLAGS, Mode::empty()).ok()?.into();
    file.metadata().is_ok_and(|about| about.is_file()).then_some(file)
}

/// A file by its path as a process sees it: links in there do not lead outside.
fn in_root_of(process: u32, path: &Path) -> Option<File> {
    let root = open(format!("/proc/{process}/root"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let file: File = openat2(root, path, FLAGS, Mode::empty(), ResolveFlags::IN_ROOT).ok()?.into();
    file.metadata().is_ok_and(|about| about.is_file()).then_some(file)
}

/// By its inode: devices differ where a file system lies over another one.
fn is_same(file: &File, mapped: &Mapped) -> bool {
    mapped.inode != 0 && file.metadata().is_ok_and(|about| about.ino() == mapped.inode)
}

/// Whether a file has the build id that a process has in its memory.
fn has_build_id_of_memory(file: &File, what: MappedId, process: u32, space: &AddressSpace) -> bool {
    let mapping = space.all().find(|mapping| mapping.what == what && mapping.offset == FileOffset(0));
    let Some(start) = mapping.map(|mapping| mapping.start.0) else { return false };
    let Ok(memory) = File::open(format!("/proc/{process}/mem")) else { return false };
    let of_memory = build_id(|at, bytes| memory.read_exact_at(bytes, start.checked_add(at)?).ok());
    of_memory.is_some() && of_memory == build_id(|at, bytes| file.read_exact_at(bytes, at).ok())
}

/// The build id of an ELF file whose beginning can be read: its headers and its notes, which lie
/// where they do in the file.
fn build_id(read: impl Fn(u64, &mut [u8]) -> Option<()>) -> Option<Vec<u8>> {
    const NOTE: u32 = 4;
    const BUILD_ID: u32 = 3;
    const MOST: u64 = 64 << 10;
    let mut head = [0; 64];
    read(0, &mut head)?;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let (rows, count) = (u64_at(&head, 32)?, u64::from(u16_at(&head, 56)?));
    for row in 0..count.min(64) {
        let mut header = [0; 56];
        read(rows.checked_add(row * 56)?, &mut header)?;
        let (at, size) = (u64_at(&header, 8)?, u64_at(&header, 32)?);
        if u32_at(&header, 0)? != NOTE || size > MOST {
            continue;
        }
        let mut notes = vec![0; size as usize];
        read(at, &mut notes)?;
        let mut rest = &notes[..];
        while let (Some(name), Some(value), Some(kind)) = (u32_at(rest, 0), u32_at(rest, 4), u32_at(rest, 8))
        {
            let (name, value) = (name as usize, value as usize);
            let from = 12 + name.next_multiple_of(4);
            if kind == BUILD_ID && rest.get(12..12 + name) == Some(b"GNU\0") {
                return Some(rest.get(from..from.checked_add(value)?)?.to_vec());
            }
            rest = rest.get(from.checked_add(value)?.next_multiple_of(4)..)?;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_found_in_memory_as_in_files() {
        let file = File::open("/proc/self/exe").unwrap();
        let found = build_id(|at, bytes| file.read_exact_at(bytes, at).ok());
        let data = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(found.as_deref(), Image::parse(&data).unwrap().build_id());
        for length in 0..200 {
            let _ = build_id(|at, bytes| {
                let at = at as usize;
                bytes.copy_from_slice(data[..length].get(at..at.checked_add(bytes.len())?)?);
                Some(())
            });
        }
    }

    #[test]
    fn names_of_what_is_deleted_are_whole() {
        assert_eq!(as_it_was(Path::new("/a/b c (deleted)")), Path::new("/a/b c"));
        assert_eq!(as_it_was(Path::new("/a/b")), Path::new("/a/b"));
    }
}
