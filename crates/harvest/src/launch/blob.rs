//! The runtime as a file: it is part of this program, and is handed over in a memory file by its
//! path under `/proc`.

use super::error::LaunchError;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

static RUNTIME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libgleaner_runtime.so"));

pub(super) struct Blob {
    _file: File,
    path: PathBuf,
}

impl Blob {
    pub(super) fn new() -> Result<Self, LaunchError> {
        let (mut file, path) = memory_file("gleaner-runtime")?;
        file.write_all(RUNTIME).map_err(LaunchError::Memfd)?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(|error| LaunchError::Memfd(error.into()))?;
        Ok(Self { _file: file, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// An empty memory file and the path by which other processes of this user open it while we live.
pub(super) fn memory_file(name: &str) -> Result<(File, PathBuf), LaunchError> {
    // Newer kernels want to be told that the runtime in it is executed; older ones do not know the
    // flag.
    let exec = MemfdFlags::from_bits_retain(0x10);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd: OwnedFd = memfd_create(name, flags | exec)
        .or_else(|_| memfd_create(name, flags))
        .map_err(|error| LaunchError::Memfd(error.into()))?;
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd()));
    if !path.exists() {
        return Err(LaunchError::NoProc);
    }
    Ok((File::from(fd), path))
}

#[cfg(test)]
mod tests {
    use super::RUNTIME;

    /// `rdfsbase`, `rdgsbase`, `wrfsbase`, `wrgsbase`, with or without REX: kernels may keep them
    /// off (`nofsgsbase`), and then the runtime must do without. The kernel is asked in their
    /// place, once for each thread.
    #[test]
    fn fsgsbase_is_not_needed() {
        let register_form = |byte: u8| (0xc0..0xe0).contains(&byte);
        let found = RUNTIME.windows(5).position(|bytes| match *bytes {
            [0xf3, 0x0f, 0xae, byte, _] => register_form(byte),
            [0xf3, 0x40..=0x4f, 0x0f, 0xae, byte] => register_form(byte),
            _ => false,
        });
        assert_eq!(found, None);
    }
}
