//! What runtimes that the profiler starts are asked for, so that they tell of the code that they
//! make: by arguments in front of the program's own, of which its output shows nothing.
//!
//! ```text
//! java   -XX:+PreserveFramePointer -agentpath:…   stacks; methods, what is inlined, and lines
//! node   --perf-prof --perf-prof-delete-file      functions and lines
//! node   --perf-basic-prof                        functions, where its folder cannot be written to
//! ```
//!
//! V8 writes into the folder that it is started in and ends if it cannot. With the second option
//! the file is gone before the program begins, and read through the descriptor that V8 has of it.
//! Either option makes it write a log of its own, too, which goes into a file that has no name.
//!
//! To add a runtime: how its file is known, and what it is asked for.

use crate::allocations::preload;
use crate::request::{Request, Subject};
use rustix::fs::{Access, access};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The arguments that a command gets.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Behind the command's name.
    pub arguments: Vec<OsString>,
    /// Where the runtime writes.
    directory: Option<tempfile::TempDir>,
    /// It writes `/tmp/perf-PID.map`, which nobody else wants.
    writes_map: bool,
}

const LOG: [&str; 2] = ["--logfile=+", "--no-logfile-per-isolate"];
const AGENT: &str = "libgleaner-java.so";
const DUMP: &str = "code.dump";

impl Asked {
    /// What the command of a request is asked for; nothing if that is not wanted.
    pub(crate) fn of(request: &Request) -> Self {
        let Subject::Command(words) = &request.subject else { return Self::default() };
        if !request.finds_out.made_code {
            return Self::default();
        }
        let Some(path) = words.first().and_then(|word| runtime(word)) else { return Self::default() };
        match path.file_name().and_then(OsStr::to_str) {
            Some("java") if is_hotspot(&path) => Self::java().unwrap_or_default(),
            Some("node" | "nodejs") => Self::node(words),
            _ => Self::default(),
        }
    }

    fn java() -> Option<Self> {
        let directory = preload::directory()?;
        let agent = directory.path().join(AGENT);
        std::fs::write(&agent, heap::library::JAVA_AGENT).ok()?;
        std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).ok()?;
        let mut load = OsString::from("-agentpath:");
        load.extend([agent.as_os_str(), OsStr::new("="), directory.path().join(DUMP).as_os_str()]);
        let arguments = vec!["-XX:+PreserveFramePointer".into(), load];
        Some(Self { arguments, directory: Some(directory), writes_map: false })
    }

    fn node(words: &[OsString]) -> Self {
        // Who asks for one of them himself wants its file.
        if words.iter().any(|word| word.to_string_lossy().starts_with("--perf-")) {
            return Self::default();
        }
        let may_write = |folder: &str| access(folder, Access::WRITE_OK).is_ok();
        let arguments: &[&str] = if may_write(".") {
            &["--perf-prof", "--perf-prof-delete-file", LOG[0], LOG[1]]
        } else if may_write("/tmp") {
            &["--perf-basic-prof", LOG[0], LOG[1]]
        } else {
            &[]
        };
        let writes_map = arguments.first() == Some(&"--perf-basic-prof");
        Self { arguments: arguments.iter().map(OsString::from).collect(), directory: None, writes_map }
    }

    /// The command with these arguments.
    pub(crate) fn command(&self, words: &[OsString]) -> Vec<OsString> {
        let (first, rest) = words.split_at(words.len().min(1));
        [first, &self.arguments, rest].concat()
    }

    /// Where the runtime dumps its code.
    pub(crate) fn dump(&self) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.path().join(DUMP))
    }

    /// All is read.
    pub(crate) fn end(self, process: u32) {
        if self.writes_map {
            let _ = std::fs::remove_file(format!("/tmp/perf-{process}.map"));
        }
    }
}

/// The program that a command runs, if it is no script: what is in front of a runtime would get its
/// arguments.
fn runtime(word: &OsStr) -> Option<PathBuf> {
    let path = preload::found(word)?;
    let mut head = [0; 4];
    std::fs::File::open(&path).ok()?.read_exact(&mut head).ok()?;
    let name = path.file_name()?.to_owned();
    // Debian's `java` is a link to a link to one that lies beside its libraries.
    let real = path.canonicalize().ok()?;
    (head == *b"\x7fELF" && real.file_name() == Some(&name)).then_some(real)
}

/// Whether the machine beside this launcher is one that has these options.
fn is_hotspot(launcher: &Path) -> bool {
    let home = launcher.parent().and_then(Path::parent);
    home.is_some_and(|home| home.join("lib/server/libjvm.so").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_in_front_of_the_programs_own() {
        let words: Vec<OsString> = ["node", "a.js", "b"].map(OsString::from).to_vec();
        let asked = Asked { arguments: vec!["--x".into()], ..Asked::default() };
        assert_eq!(asked.command(&words), ["node", "--x", "a.js", "b"]);
        assert_eq!(Asked::default().command(&words), words);
        assert!(Asked::node(&["node", "--perf-prof", "a.js"].map(OsString::from)).arguments.is_empty());
    }

    #[test]
    fn scripts_are_asked_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("java");
        std::fs::write(&script, "#!/bin/sh\nexec true\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(runtime(script.as_os_str()), None);
        assert_eq!(runtime(OsStr::new("no such program")), None);
        assert!(!is_hotspot(&script));
    }
}
