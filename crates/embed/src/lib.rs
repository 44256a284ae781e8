//! For build scripts: compiles rooms once more, as libraries that are parts of a binary.
//!
//! By rustc itself, since cargo has no artifact dependencies on stable toolchains; and whatever the
//! profile, so that all builds have the same ones. The libraries have no libc, since the programs
//! that they are preloaded into may have any. What they use of other rooms is named first
//! ([`Embed::using`]).
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// For all of them.
const COMMON: [&str; 5] =
    ["--edition=2024", "-Cpanic=abort", "-Crelocation-model=pic", "-Cdebuginfo=0", "-Ccodegen-units=1"];
const OF_LIBRARIES: [&str; 2] = ["-Copt-level=2", "-Cforce-unwind-tables=no"];
/// They are never unloaded, and call nothing that the loader has yet to find.
const FREESTANDING: [&str; 6] = [
    "--crate-type=cdylib",
    "--cfg=freestanding",
    "-Cstrip=symbols",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-Wl,-z,now",
    "-Clink-arg=-Wl,-z,nodelete",
];

/// What one build script compiles; it lies where the script's `OUT_DIR` is.
#[derive(Debug)]
pub struct Embed {
    compiler: OsString,
    crates: PathBuf,
    out: PathBuf,
    used: Vec<OsString>,
}

impl Embed {
    /// In a build script of one of the rooms.
    #[expect(clippy::new_without_default, reason = "it reads what cargo tells a build script")]
    pub fn new() -> Self {
        let told = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
        let own = PathBuf::from(told("CARGO_MANIFEST_DIR"));
        Self {
            compiler: told("RUSTC"),
            crates: own.parent().expect("crates/").to_owned(),
            out: told("OUT_DIR").into(),
            used: Vec::new(),
        }
    }

    /// What follows may use this room.
    #[must_use]
    pub fn using(mut self, room: &str) -> Self {
        let name = room.replace('-', "_");
        let built = self.out.join(format!("lib{name}.rlib"));
        let mut command = self.rustc(&format!("{room}/src"), "lib.rs", &name, &built);
        run(command.args(OF_LIBRARIES).arg("--crate-type=rlib"));
        let mut named = OsString::from(format!("--extern={name}="));
        named.push(built);
        self.used.push(named);
        self
    }

    /// `lib{name}.so`: a room with `--cfg freestanding`, and with these further arguments.
    pub fn library(&self, room: &str, name: &str, arguments: &[&str]) {
        let built = self.out.join(format!("lib{name}.so"));
        let mut command = self.rustc(&format!("{room}/src"), "lib.rs", name, &built);
        command.args(OF_LIBRARIES).args(FREESTANDING).args(&self.used).args(arguments);
        run(command.arg(format!("-Clink-arg=-Wl,-soname,lib{}.so", name.replace('_', "-"))));
    }

    fn rustc(&self, folder: &str, source: &str, name: &str, built: &Path) -> Command {
        let folder = self.crates.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut command = Command::new(&self.compiler);
        command.arg(folder.join(source)).args(COMMON).args(["--crate-name", name]).arg("-o").arg(built);
        command
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
