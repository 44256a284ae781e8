//! Why nothing can be launched here.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot create a memory file for the runtime (memfd_create): {0}")]
    Memfd(io::Error),
    #[error("/proc is not mounted, or /proc/PID/fd cannot be read: the runtime is loaded from there")]
    NoProc,
    #[error("{0}: {1}; a harvest needs this system call: the container must allow it")]
    Forbidden(&'static str, io::Error),
    #[error(
        "cannot open a process descriptor (pidfd_open): {0}; it needs Linux 5.3 or later, and a container that allows it"
    )]
    NoPidfd(io::Error),
    #[error("no file descriptor is left for a process (pidfd_open): {0}")]
    NoDescriptor(io::Error),
    #[error("cannot create a process for the primary (is there a limit on processes?): {0}")]
    NoProcess(io::Error),
    #[error("{0}: {1}")]
    Start(PathBuf, io::Error),
    #[error("{0}: arguments, environment and paths must not contain a zero byte")]
    ZeroByte(PathBuf),
    #[error("--home-cpus: {0}: not among the CPUs that scavengers may use here (of the first 64)")]
    NoSuchCpus(String),
    #[error("at most {max} scavengers can share one primary", max = runtime_abi::control::SCAVENGERS)]
    TooMany,
    #[error(
        "{first} and {second} are both linked to fixed addresses that overlap; one of them must be position-independent (-pie)"
    )]
    Overlap { first: PathBuf, second: PathBuf },
    #[error("cannot wait for the harvest: {0}")]
    Wait(io::Error),
}
