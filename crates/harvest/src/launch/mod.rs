//! Starts a primary with its scavengers in its address space, watches them, and gathers how they
//! ended.
//!
//! ```no_run
//! use gleaner_harvest::launch::{Harvest, Program, Scavenger, launch};
//! let harvest = Harvest {
//!     scavengers: vec![Scavenger::new(Program::new("/cache/scan", ["scan", "64"]))],
//!     ..Harvest::new(Program::new("/cache/chase", ["chase", "256"]))
//! };
//! let outcome = launch(&harvest)?.wait(|snapshot| eprintln!("{} aboard", snapshot.aboard()))?;
//! # Ok::<(), gleaner_harvest::launch::LaunchError>(())
//! ```
//!
//! The thread that calls [`launch`] must live until all programs ended: scavengers die with it
//! (unless told otherwise). `page` is the control page as the launcher sees it, `running` the
//! watching. `beside` starts all programs as they are, each in a process of its own.

pub(crate) mod beside;
pub(crate) mod signals;

mod blob;
mod counts;
mod environment;
mod error;
mod executed;
mod fixed;
mod forked;
mod host;
mod leaves;
mod lives;
mod page;
mod ready;
mod recent;
mod request;
mod running;
mod snapshot;

pub use counts::{Paces, SiteOutcomes, ThreadPace};
pub use error::LaunchError;
pub use host::{check as check_host, check_home};
pub use leaves::Leaves;
pub use lives::{Life, Processor};
pub use ready::Starved;
pub use recent::{Recent, RecentFigures};
pub use request::{After, Contract, Harvest, Homes, Module, Program, Scavenger, Stream};
pub use running::{Outcome, Running, ScavengerOutcome};
pub use snapshot::{ScavengerNow, Snapshot};

use image::libraries;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Starts the primary, and with it its scavengers.
pub fn launch(harvest: &Harvest) -> Result<Running, LaunchError> {
    if harvest.scavengers.len() > runtime_abi::control::SCAVENGERS {
        return Err(LaunchError::TooMany);
    }
    fixed::check(harvest)?;
    host::check()?;
    let blob = blob::Blob::new()?;
    let page = page::Page::new(harvest, &blob)?;
    let mut command = Command::new(&harvest.primary.file);
    if let Some(name) = harvest.primary.argv.first() {
        command.arg0(name).args(&harvest.primary.argv[1..]);
    }
    let before = std::env::var_os("LD_PRELOAD").filter(|list| !list.is_empty());
    let mut replaced = vec!["LD_PRELOAD"];
    replaced.extend(harvest.primary.libraries.as_ref().map(|_| libraries::VARIABLE));
    command.envs(environment::aside(&replaced));
    command.env("LD_PRELOAD", with_preload(blob.path(), before));
    command.env(runtime_abi::control::VARIABLE, page.path());
    if let Some(libraries) = &harvest.primary.libraries {
        command.env(libraries::VARIABLE, libraries.with(std::env::var_os(libraries::VARIABLE).as_deref()));
    }
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => LaunchError::NoProcess(error),
        _ => LaunchError::Start(harvest.primary.file.clone(), error),
    })?;
    Ok(Running::new(harvest, page, blob, child))
}

/// The runtime's path in front of what the user preloads.
fn with_preload(runtime: &Path, before: Option<OsString>) -> OsString {
    let mut list = OsString::from(runtime);
    if let Some(before) = before {
        list.push(":");
        list.push(before);
    }
    list
}
