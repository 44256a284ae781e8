//! A library that a program is linked to: its name and its file.

use image::Image;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A library, by the name that it is asked for, and the file that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedLibrary {
    pub name: OsString,
    pub file: PathBuf,
}

/// Parts of libc, which start and end every program: they hardly wait for memory, and much of them
/// runs before a thread has an area.
const LIBCS: [&[u8]; 10] = [
    b"libc.so",
    b"libm.so",
    b"libmvec.so",
    b"libpthread.so",
    b"libdl.so",
    b"librt.so",
    b"libresolv.so",
    b"libgcc_s.so",
    b"libthread_db.so",
    b"ld-linux",
];

impl LinkedLibrary {
    pub(crate) fn is(&self, name: &str) -> bool {
        let rest = self.name.as_bytes().strip_prefix(name.as_bytes());
        let version_follows = |rest: &[u8]| name.as_bytes().ends_with(b".so") && rest.starts_with(b".");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b".so") || version_follows(rest))
    }

    pub(crate) fn is_libcs(&self) -> bool {
        LIBCS.iter().any(|libcs| self.name.as_bytes().starts_with(libcs))
    }

    pub(crate) fn read<T>(&self, of: impl FnOnce(&Image<'_>) -> T) -> Option<T> {
        read(&self.file, of)
    }
}

pub(crate) fn read<T>(file: &Path, of: impl FnOnce(&Image<'_>) -> T) -> Option<T> {
    let data = std::fs::read(file).ok()?;
    Image::parse(&data).ok().map(|image| of(&image))
}
