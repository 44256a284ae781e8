//! Who executes another program leaves the harvest without a word: what runs from then on is not rewritten. A wrapper does so at once.
//! Seen by the file that a process runs, which for scavengers is the primary's copy, too: it is the address space's.

use rustix::process::Pid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) struct Executed {
    /// Device and inode of the copy; none where it is gone already.
    copy: Option<(u64, u64)>,
}

impl Executed {
    /// By the copy that the primary begins with.
    pub(super) fn new(copy: &Path) -> Self {
        Self { copy: identity(copy) }
    }

    /// What a process executed in place of its copy, if it lives and that can be seen.
    pub(super) fn by(&self, pid: Pid) -> Option<PathBuf> {
        let link = format!("/proc/{}/exe", pid.as_raw_nonzero());
        let now = identity(Path::new(&link))?;
        if self.copy? == now { None } else { std::fs::read_link(link).ok() }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
