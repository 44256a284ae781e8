//! The files that processes had mapped, read for their code and their variables.

use crate::debug_files;
use crate::partly::{Partly, elf};
use crate::target::mappings_of;
use image::Image;
use image::elf::abi;
use image::elf::bytes::hex;
use insight::ModuleFile;
use insight::samples::{Mapped, Tally, UnwindTables};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use units::Svma;

/// The build ids that files must have to be those that were mapped. None are asked for while the
/// program runs here.
#[derive(Debug, Default)]
pub(crate) struct BuildIds {
    by_name: HashMap<Vec<u8>, Vec<u8>>,
    /// The samples are from a file, perhaps of another day and machine.
    of_recording: bool,
    /// Where `perf record` keeps copies of the files that it has seen.
    copies: Option<PathBuf>,
}

impl BuildIds {
    /// Those that a recording tells.
    pub(crate) fn of_recording(
        ids: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        copies: Option<&Path>,
    ) -> Self {
        let copies = copies.map(Path::to_owned);
        Self { by_name: ids.into_iter().collect(), of_recording: true, copies }
    }

    /// The bytes of what was mapped, or the copy that perf made of them.
    fn bytes_of(&self, mapped: &Mapped) -> Option<Vec<u8>> {
        bytes_of(mapped).filter(|data| self.allow(&mapped.name, data)).or_else(|| self.copy_of(&mapped.name))
    }

    fn copy_of(&self, name: &[u8]) -> Option<Vec<u8>> {
        let (folder, id) = (self.copies.as_ref()?, hex(self.by_name.get(name)?));
        let (first, rest) = id.split_at_checked(2)?;
        let kept = folder.join(".build-id").join(first).join(rest);
        let copy = elf(&kept.join("elf")).or_else(|| elf(&kept.join("vdso")))?;
        self.allow(name, &copy).then_some(copy)
    }

    /// Whether these bytes are the file that was mapped under this name. The kernel's own library
    /// is another one in each kernel, so its build id must be told.
    fn allow(&self, name: &[u8], data: &[u8]) -> bool {
        match self.by_name.get(name) {
            Some(wanted) => Image::parse(data).is_ok_and(|image| image.build_id() == Some(wanted)),
            None => !self.of_recording || name != VDSO,
        }
    }
}

/// A file that samples are in, and that was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub path: String,
    pub why: &'static str,
    /// Samples that are in it.
    pub samples: u64,
}

/// All ELF files and the vDSO among what was mapped, that can still be read.
pub(crate) fn modules(tally: &Tally) -> Vec<ModuleFile> {
    modules_with(tally, &BuildIds::default()).0
}

/// The same, of those with these build ids; and the others that samples are in.
pub(crate) fn modules_with(tally: &Tally, build_ids: &BuildIds) -> (Vec<ModuleFile>, Vec<Missing>) {
    let sampled: HashSet<u32> =
        tally.places.keys().chain(tally.accesses.places.keys()).map(|place| place.what.0).collect();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (what, mapped) in tally.mapped.iter().enumerate() {
        let Some(data) = build_ids.bytes_of(mapped) else {
            if sampled.contains(&(what as u32)) && mapped.area.is_none() {
                let why = if bytes_of(mapped).is_some() {
                    "the file has another build ID"
                } else {
                    "there is no such file"
                };
                missing.push(Missing { path: records::text_of(path_of(mapped)), why, samples: 0 });
            }
            continue;
        };
        let separate = debug_files::of(&data);
        let path = records::text_of(path_of(mapped));
        found.push(ModuleFile { what: what as u32, path, data, debug: separate, told: BTreeMap::new() });
    }
    (found, missing)
}

/// How to unwind through the code of what is mapped, if it is a file that has any.
pub(crate) fn unwind_tables(mapped: &Mapped) -> Option<UnwindTables> {
    let file = partly(mapped, &[".eh_frame", ".eh_frame_hdr"])?;
    Some(UnwindTables::of(&Image::parse(file.data()).ok()?))
}

/// The same, of a file with this build id.
pub(crate) fn unwind_tables_with(mapped: &Mapped, build_ids: &BuildIds) -> Option<UnwindTables> {
    let data = build_ids.bytes_of(mapped)?;
    Some(UnwindTables::of(&Image::parse(&data).ok()?))
}

pub(crate) fn path_of(mapped: &Mapped) -> &Path {
    Path::new(OsStr::from_bytes(&mapped.name))
}

/// A file that is mapped, or the vDSO: only its headers and these sections are read, if that can be
/// done.
pub(crate) fn partly(mapped: &Mapped, sections: &[&str]) -> Option<Partly> {
    let is_file = mapped.area.is_none() && mapped.name != VDSO && path_of(mapped).is_absolute();
    let read = if is_file { Partly::read_from(path_of(mapped), sections) } else { None };
    read.or_else(|| Some(Partly::whole(bytes_of(mapped)?)))
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

/// A variable that a file exports.
pub(crate) fn exported(image: &Image<'_>, name: &str) -> Option<Svma> {
    let is_table = |kind: u32| kind == abi::SHT_DYNSYM || kind == abi::SHT_SYMTAB;
    image.sections().iter().filter(|section| is_table(section.kind)).find_map(|section| {
        let names = image.section_bytes(image.sections().get(section.link as usize)?)?;
        image.section_bytes(section)?.chunks_exact(24).find_map(|entry| {
            let at = u32::from_le_bytes(entry[..4].try_into().ok()?) as usize;
            let found = names.get(at..)?.strip_prefix(name.as_bytes())?.first() == Some(&0);
            let defined = entry[6..8] != [0, 0];
            (found && defined).then(|| Some(Svma(u64::from_le_bytes(entry[8..16].try_into().ok()?))))?
        })
    })
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
