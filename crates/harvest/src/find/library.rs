//! A library that a program is linked to: its name and its file.

use image::Image;
use image::elf::symbols::Symbols;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use units::Svma;

/// A library, by the name that it is asked for, and the file that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedLibrary {
    pub name: OsString,
    pub file: PathBuf,
}

/// Parts of libc, which start and end every program: much of them runs before a thread of a primary
/// has an area.
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

    /// Whether it is of libc, or what programs in C++ cannot do without.
    pub(crate) fn is_languages(&self) -> bool {
        self.is_libcs()
            || [&b"libstdc++.so"[..], b"libc++.so", b"libc++abi.so"]
                .into_iter()
                .any(|name| self.name.as_bytes().starts_with(name))
    }

    /// Whether it is the loader itself.
    pub(crate) fn is_loader(&self) -> bool {
        self.name.as_bytes().starts_with(b"ld-linux")
    }

    /// Whether it is the libc of a scavenger whose threads the runtime can know from their first
    /// instruction: it replaces the system calls that make them, one without a name among them.
    pub(crate) fn is_libc_with_known_threads(&self) -> bool {
        const CLONE3: [u8; 7] = [0xb8, 0xb3, 1, 0, 0, 0x0f, 5];
        let known = |image: &Image<'_>| {
            let executable = image.segments().iter().filter(|segment| segment.is_executable());
            let code = executable.filter_map(|segment| image.bytes_from(Svma(segment.address)));
            let calls = code.map(|code| code.windows(CLONE3.len()).filter(|bytes| *bytes == CLONE3).count());
            calls.sum::<usize>() == 1 && defines(image, b"clone")
        };
        self.name.as_bytes().starts_with(b"libc.so") && self.read(known).unwrap_or(false)
    }

    pub(crate) fn read<T>(&self, of: impl FnOnce(&Image<'_>) -> T) -> Option<T> {
        read(&self.file, of)
    }
}

pub(crate) fn read<T>(file: &Path, of: impl FnOnce(&Image<'_>) -> T) -> Option<T> {
    let data = std::fs::read(file).ok()?;
    Image::parse(&data).ok().map(|image| of(&image))
}

/// Whether others may call a function of this name in it.
pub(crate) fn defines(image: &Image<'_>, name: &[u8]) -> bool {
    Symbols::of(image, None).all().iter().any(|symbol| symbol.is_exported && symbol.name == name)
}
