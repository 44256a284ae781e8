//! The files that processes had mapped, read for their code and their variables.

use crate::target::mappings_of;
use image::Image;
use insight::ModuleFile;
use insight::tally::{Mapped, Tally};
use insight::unwind::UnwindTables;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
    let data = bytes_of(mapped)?;
    Some(UnwindTables::of(&Image::parse(&data).ok()?))
}

fn path_of(mapped: &Mapped) -> &Path {
    Path::new(OsStr::from_bytes(&mapped.name))
}

/// The bytes of a file that is mapped, or of the vDSO.
pub(crate) fn bytes_of(mapped: &Mapped) -> Option<Vec<u8>> {
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
    let memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut data, vdso.start).ok()?;
    Some(data)
}

/// The bytes of an ELF file. Devices and pipes may be mapped, too: these are not read.
fn elf(path: &Path) -> Option<Vec<u8>> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > LARGEST_BYTES {
        return None;
    }
    let mut file = std::fs::File::open(path).ok()?;
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
    fn the_vdso_is_read_from_memory() {
        let Some(data) = own_vdso() else { return }; // a kernel may be told to have none
        let image = Image::parse(&data).expect("an ELF file");
        assert!(image.is_position_independent() && !image.loads().is_empty());
    }
}
