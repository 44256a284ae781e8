//! Notices a process that executes another program (`exec`): it leaves the harvest, since what runs
//! from then on is not rewritten. A wrapper script does so at once.
//!
//! It shows by the file that `/proc/PID/exe` names: the primary's rewritten file for all processes
//! of a harvest, scavengers too, since that belongs to the address space; and for programs that run
//! as they are, the file of each, after that of the process that becomes it.

use rustix::process::Pid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) struct Executed {
    /// Device and inode of each; none where it is gone already.
    own: Option<Vec<(u64, u64)>>,
}

impl Executed {
    /// By the files that the process begins with.
    pub(super) fn new(own: &[&Path]) -> Self {
        Self { own: own.iter().map(|file| identity(file)).collect() }
    }

    /// What a process executed in place of them, if it lives and that can be seen.
    pub(super) fn by(&self, pid: Pid) -> Option<PathBuf> {
        let link = format!("/proc/{}/exe", pid.as_raw_nonzero());
        let now = identity(Path::new(&link))?;
        if self.own.as_ref()?.contains(&now) { None } else { std::fs::read_link(link).ok() }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
