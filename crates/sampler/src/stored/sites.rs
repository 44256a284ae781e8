//! All loads and stores of a file, with where samples of each land: for `gleaner sites`.

use super::StoredError;
use super::binaries::{Binaries, gnu_build_id};
use super::unpacked::unpacked;
use crate::partly::elf;
use image::Image;
use image::elf::bytes::hex;
use insight::Landing;
use std::path::{Path, PathBuf};

/// A file by what names it wherever it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitesOf {
    /// The linker's build ID in hexadecimal; Go's, where that is all there is; or else a hash of
    /// all bytes, as `xxh3-…`.
    pub build_id: String,
    /// Its name without its directory: the same file is the same wherever it lies.
    pub file: String,
}

/// Finds all loads and stores of a file; debug information is looked for as for stored samples.
pub fn sites(
    path: &Path,
    binaries: &[PathBuf],
    home: Option<&Path>,
    mut found: impl FnMut(&SitesOf, Landing),
) -> Result<SitesOf, StoredError> {
    let refused = |why: &str| StoredError::NotRead { why: why.to_owned() };
    std::fs::File::open(path).map_err(|e| StoredError::NotRead { why: records::plain(&e) })?;
    let data = elf(path).ok_or_else(|| refused("it is no ELF file, or larger than 1 GiB"))?;
    let image = Image::parse(&data).map_err(|e| StoredError::NotRead { why: e.to_string() })?;
    let go = || image.notes().find(|(owner, kind, _)| *owner == b"Go\0\0" && *kind == 4).map(|(.., id)| id);
    let build_id = match (gnu_build_id(&image), go()) {
        (Some(id), _) => hex(id),
        (None, Some(id)) if id.iter().all(u8::is_ascii_graphic) => String::from_utf8_lossy(id).into_owned(),
        _ => format!("xxh3-{:032x}", twox_hash::XxHash3_128::oneshot(&data)),
    };
    let file = path.file_name().map(|name| records::text_of(Path::new(name))).unwrap_or_default();
    let of = SitesOf { build_id, file };
    let separate = gnu_build_id(&image).and_then(|id| Binaries::of(binaries, home).debug(id));
    let debug = match separate {
        Some(separate) => unpacked(&separate).or(Some(separate)),
        None => unpacked(&data),
    };
    insight::landings(&data, debug.as_deref(), |landing| found(&of, landing))
        .map_err(|e| StoredError::NotRead { why: e.to_string() })?;
    Ok(of)
}
