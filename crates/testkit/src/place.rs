//! A folder of its own with a program in C, for tests of the front door.

use crate::TimeLimit;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A source, and the program `p` compiled from it; it goes when this is dropped. What works in the
/// folder is killed when the test's time limit is over.
#[derive(Debug)]
pub struct Place {
    /// Ends before the folder goes, which is dropped behind it.
    _limit: TimeLimit,
    directory: tempfile::TempDir,
    gleaner: PathBuf,
}

impl Place {
    /// `gleaner`: the binary that is tested.
    pub fn new(source: &str, gleaner: impl AsRef<Path>) -> Self {
        let place = Self::uncompiled(source, gleaner);
        assert!(place.compile("cc", "p", &[]), "a C compiler, and a program it takes");
        place
    }

    /// A source of which nothing is made yet.
    pub fn uncompiled(source: &str, gleaner: impl AsRef<Path>) -> Self {
        let directory = tempfile::tempdir().expect("a folder for what is left over");
        let limit = TimeLimit::new(directory.path());
        let place = Self { _limit: limit, directory, gleaner: gleaner.as_ref().to_owned() };
        std::fs::write(place.at("p.c"), source).expect("a file in a new folder");
        place
    }

    pub fn folder(&self) -> &Path {
        self.directory.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The program once more, as `name`; false if this compiler is not there or cannot do it so.
    #[must_use]
    pub fn compile(&self, compiler: &str, name: &str, options: &[&str]) -> bool {
        self.compiled(compiler, name, options, "p.c")
    }

    /// The same, of another source, which is left beside it.
    pub fn compile_other(&self, compiler: &str, name: &str, options: &[&str], source: &str) -> bool {
        let file = format!("{name}.c");
        std::fs::write(self.at(&file), source).is_ok() && self.compiled(compiler, name, options, &file)
    }

    fn compiled(&self, compiler: &str, name: &str, options: &[&str], file: &str) -> bool {
        let mut command = Command::new(compiler);
        command.args(["-O2", "-w"]).args(options).arg("-o").arg(self.at(name)).arg(self.at(file));
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// To be run in the folder, without input, with a cache of its own.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder()).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", self.at("cache"));
        command
    }

    /// `gleaner harvest` with these arguments. Libraries have twins only if they say so: it takes
    /// some seconds to make those of libc, which few tests are about. Nor is this machine measured.
    pub fn harvest(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.gleaner);
        command.arg("harvest");
        if !arguments.contains(&"--libraries") {
            command.args(["--libraries", "none"]);
        }
        command.arg("--assume-costs").args(arguments);
        command
    }
}
