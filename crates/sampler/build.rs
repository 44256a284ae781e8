//! Builds the library that tells of allocations as a freestanding shared object, so that it can be
//! a part of the profiler.
//!
//! It is the heap room's own source, compiled once more: by rustc itself, since cargo has no
//! artifact dependencies on stable toolchains, and without a libc, since the program may have any.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/").join("heap/src");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let mut command = Command::new(compiler);
    command
        .arg(source.join("lib.rs"))
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=gleaner_heap", "--cfg=freestanding"])
        .args(["-Cpanic=abort", "-Copt-level=2", "-Crelocation-model=pic", "-Cdebuginfo=0"])
        .args(["-Ccodegen-units=1", "-Cstrip=symbols", "-Cforce-unwind-tables=no"])
        .args(["-Clink-arg=-nostdlib", "-Clink-arg=-Wl,-z,now", "-Clink-arg=-Wl,-z,nodelete"])
        .arg("-Clink-arg=-Wl,-soname,libgleaner-heap.so")
        .arg("-o")
        .arg(out.join("libgleaner_heap.so"));
    let status = command.status().expect("rustc");
    assert!(status.success(), "the library did not compile: {command:?}");
}
