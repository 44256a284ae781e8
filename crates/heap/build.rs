//! Builds the libraries that are preloaded as freestanding shared objects, so that they can be a
//! part of the profiler.
//!
//! They are this crate's own source, compiled once more: by rustc itself, since cargo has no
//! artifact dependencies on stable toolchains, and without a libc, since the program may have any.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=build.rs");
    library("gleaner_heap", &[]);
    library("gleaner_changes", &["--cfg=changes"]);
}

fn library(name: &str, settings: &[&str]) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let compiler = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let mut command = Command::new(compiler);
    command
        .arg(source)
        .args(["--edition=2024", "--crate-type=cdylib", "--cfg=freestanding"])
        .args(["--crate-name", name])
        .args(settings)
        .args(["-Cpanic=abort", "-Copt-level=2", "-Crelocation-model=pic", "-Cdebuginfo=0"])
        .args(["-Ccodegen-units=1", "-Cstrip=symbols", "-Cforce-unwind-tables=no"])
        .args(["-Clink-arg=-nostdlib", "-Clink-arg=-Wl,-z,now", "-Clink-arg=-Wl,-z,nodelete"])
        .arg(format!("-Clink-arg=-Wl,-soname,lib{}.so", name.replace('_', "-")))
        .arg("-o")
        .arg(out.join(format!("lib{name}.so")));
    let status = command.status().expect("rustc");
    assert!(status.success(), "the library did not compile: {command:?}");
}
