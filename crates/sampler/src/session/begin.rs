//! The beginning of a run: the program started or attached to.

use crate::allocations::preload::Preload;
use crate::made_code::Asked;
use crate::method::{Method, Opened};
use crate::request::{Request, SampleError, Subject};
use crate::target::{Child, Running, family, threads_of};
use std::ffi::{OsStr, OsString};
use std::io;

/// What is being watched.
pub(crate) enum Watched {
    Started(Running),
    /// A process and those below it.
    Attached(Vec<u32>),
}

impl Watched {
    pub(super) fn pid(&self) -> u32 {
        match self {
            Self::Started(running) => running.pid,
            Self::Attached(family) => family[0],
        }
    }
}

/// Starts the program or attaches to it: all events are opened before it goes on.
pub(crate) fn begin(
    request: &Request,
    preload: Option<&Preload>,
    asked: &Asked,
    method: &dyn Method,
) -> Result<(Watched, Opened), SampleError> {
    match &request.subject {
        Subject::Command(words) => {
            let what =
                || records::text_of(words.first().map_or(OsStr::new(""), OsString::as_os_str).as_ref());
            let not_started = |e: io::Error| SampleError::NotStarted {
                what: what(),
                why: records::plain(&e),
                missing: e.kind() == io::ErrorKind::NotFound,
            };
            let environment = preload.map(Preload::environment);
            let environment = environment.as_deref();
            let child = Child::start(&asked.command(words), environment, request.output, &request.inherited)
                .map_err(not_started)?;
            let opened = method.open(request, &[child.pid])?;
            let running = child.go().map_err(not_started)?;
            Ok((Watched::Started(running), opened))
        }
        Subject::Process(pid) => {
            let not_attached = |e: io::Error| SampleError::NotAttached { pid: *pid, why: records::plain(&e) };
            let mut threads = threads_of(*pid).map_err(not_attached)?;
            let family = family(*pid);
            // A child may have ended meanwhile.
            threads.extend(family[1..].iter().flat_map(|child| threads_of(*child).unwrap_or_default()));
            allow_all_files();
            // This process may sample itself, so what is refused is that process.
            let opened = method.open(request, &threads).map_err(|e| match e {
                SampleError::NotAllowed { why } => SampleError::NotAttached { pid: *pid, why },
                other => other,
            })?;
            Ok((Watched::Attached(family), opened))
        }
    }
}

/// Each thread takes a descriptor for each CPU: as many as may be had are allowed.
pub(crate) fn allow_all_files() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // Where that is refused, opening tells.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
}
