//! The files that processes had mapped, read for their code and their variables.

use crate::target::mappings_of;
use image::Image;
use image::elf::bytes::{u16_at, u64_at};
use insight::ModuleFile;
use insight::tally::{Mapped, Tally};
use insight::unwind::UnwindTables;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use units::FileOffset;

/// Larger files are data, or more than a summary is worth.
const LARGEST_BYTES: u64 = 1 << 30;

/// All ELF files and the vDSO among what was mapped, that can still be read.
pub(crate) fn modules(tally: &Tally) -> Vec<ModuleFile> {
    let mut found = Vec::new();
    for (what, mapped) in tally.mapped.iter().enumerate() {
        let Some(data) = bytes_of(mapped) else { continue };
        let separate = Image::parse(&data)
            .ok()
            .and_then(|image| image::names::separate_debug_file(image.build_id()?))
            .and_then(|path| elf(&path));
        let path = records::text_of(path_of(mapped));
        found.push(ModuleFile { what: what as u32, path, data, debug: separate });
    }
    found
}

/// How to unwind through the code of what is mapped, if it is a file that has any.
pub(crate) fn unwind_tables(mapped: &Mapped) -> Option<UnwindTables> {
    let file = Partly::of(mapped, &UNWIND_SECTIONS)?;
    Some(UnwindTables::of(&Image::parse(file.data()).ok()?))
}

/// What unwinding takes of a file.
const UNWIND_SECTIONS: [&str; 2] = [".eh_frame", ".eh_frame_hdr"];

/// An ELF file of which only headers and some sections are read; all else is zero. While the
/// program runs, a hundred megabytes are not read for a few.
pub(crate) struct Partly {
    data: Vec<u8>,
    /// `None`: all of it is read.
    file: Option<File>,
}

impl Partly {
    pub(crate) fn of(mapped: &Mapped, sections: &[&str]) -> Option<Self> {
        let is_file = mapped.area.is_none() && path_of(mapped).is_absolute() && mapped.name != VDSO;
        let partly = if is_file { Self::read_from(path_of(mapped), sections) } else { None };
        partly.or_else(|| Some(Self { data: bytes_of(mapped)?, file: None }))
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Bytes of the file, from anywhere.
    pub(crate) fn read(&self, at: FileOffset, size: usize) -> Option<Vec<u8>> {
        let Some(file) = &self.file else {
            let at = usize::try_from(at.0).ok()?;
            return Some(self.data.get(at..at.checked_add(size)?)?.to_vec());
        };
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, at.0).ok()?;
        Some(bytes)
    }

    pub(crate) fn read_from(path: &Path, sections: &[&str]) -> Option<Self> {
        const HEADERS: u64 = 4096;
        let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let size = about.len();
        if !(HEADERS..=LARGEST_BYTES).contains(&size) {
            return None;
        }
        let file = File::open(path).ok()?;
        let mut partly = Self { data: vec![0; usize::try_from(size).ok()?], file: Some(file) };
        partly.fill(0, HEADERS)?;
        if !partly.data.starts_with(b"\x7fELF") {
            return None;
        }
        let number = |at| Some(u64::from(u16_at(&partly.data, at)?));
        let (rows, size, count, names) = (u64_at(&partly.data, 40)?, number(58)?, number(60)?, number(62)?);
        partly.fill(rows, size * count)?;
        let row = usize::try_from(rows.checked_add(names * size)?).ok()?;
        let (at, size) = (u64_at(&partly.data, row.checked_add(24)?)?, u64_at(&partly.data, row + 32)?);
        partly.fill(at, size)?;
        let ranges: Vec<(u64, u64)> = {
            let image = Image::parse(&partly.data).ok()?;
            let of = |name: &&str| image.section(name).map(|section| (section.offset, section.size));
            sections.iter().filter_map(of).collect()
        };
        for (at, size) in ranges {
            partly.fill(at, size)?;
        }
        Some(partly)
    }

    fn fill(&mut self, at: u64, size: u64) -> Option<()> {
        let (from, to) = (usize::try_from(at).ok()?, usize::try_from(at.checked_add(size)?).ok()?);
        self.file.as_ref()?.read_exact_at(self.data.get_mut(from..to)?, at).ok()
    }
}

fn path_of(mapped: &Mapped) -> &Path {
    Path::new(OsStr::from_bytes(&mapped.name))
}

/// The bytes of a file that is mapped, or of the vDSO.
fn bytes_of(mapped: &Mapped) -> Option<Vec<u8>> {
    let path = path_of(mapped);
    match &mapped.name[..] {
        VDSO => own_vdso(),
        _ if mapped.area.is_some() || !path.is_absolute() => None,
        _ => elf(path),
    }
}

/// The kernel's own library, which it maps into every process: the same bytes in each.
pub(crate) const VDSO: &[u8] = b"[vdso]";

fn own_vdso() -> Option<Vec<u8>> {
    let own = mappings_of(std::process::id()).ok()?;
    let vdso = own.into_iter().find(|mapping| mapping.name == VDSO)?;
    let mut data = vec![0; usize::try_from(vdso.bytes).ok()?];
    let memory = File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut data, vdso.start).ok()?;
    Some(data)
}

/// The bytes of an ELF file. Devices and pipes may be mapped, too: these are not read.
fn elf(path: &Path) -> Option<Vec<u8>> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > LARGEST_BYTES {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut data = vec![0; 4];
    file.read_exact(&mut data).ok()?;
    if data != *b"\x7fELF" {
        return None;
    }
    file.take(LARGEST_BYTES).read_to_end(&mut data).ok()?;
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_alone() {
        let path = Path::new("/proc/self/exe");
        let (whole, part) =
            (std::fs::read(path).unwrap(), Partly::read_from(path, &UNWIND_SECTIONS).unwrap());
        assert_eq!(part.read(FileOffset(100), 50).unwrap(), whole[100..150]);
        let (whole, part) = (Image::parse(&whole).unwrap(), Image::parse(part.data()).unwrap());
        let bytes = |image: &Image<'_>, name| {
            image.section(name).and_then(|section| image.section_bytes(section)).map(<[u8]>::to_vec)
        };
        for name in UNWIND_SECTIONS {
            assert!(bytes(&whole, name).is_some_and(|bytes| !bytes.is_empty()), "{name}");
            assert_eq!(bytes(&whole, name), bytes(&part, name));
        }
        assert!(bytes(&part, ".text").is_some_and(|text| text.iter().all(|&byte| byte == 0)));
        assert!(Partly::read_from(Path::new("/etc/passwd"), &UNWIND_SECTIONS).is_none());
    }

    #[test]
    fn the_vdso_is_read_from_memory() {
        let Some(data) = own_vdso() else { return }; // a kernel may be told to have none
        let image = Image::parse(&data).expect("an ELF file");
        assert!(image.is_position_independent() && !image.loads().is_empty());
    }
}
