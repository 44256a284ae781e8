//! The files that processes had mapped, read for their code and their variables.

use image::Image;
use insight::ModuleFile;
use insight::tally::Tally;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Larger files are data, or more than a summary is worth.
const LARGEST_BYTES: u64 = 1 << 30;

/// All ELF files among what was mapped, that can still be read.
pub(crate) fn modules(tally: &Tally) -> Vec<ModuleFile> {
    let mut found = Vec::new();
    for (what, mapped) in tally.mapped.iter().enumerate() {
        let path = Path::new(OsStr::from_bytes(&mapped.name));
        if mapped.area.is_some() || !path.is_absolute() {
            continue;
        }
        let Some(data) = elf(path) else { continue };
        let separate = Image::parse(&data)
            .ok()
            .and_then(|image| image::names::separate_debug_file(image.build_id()?))
            .and_then(|path| elf(&path));
        found.push(ModuleFile { what: what as u32, path: records::text_of(path), data, debug: separate });
    }
    found
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
