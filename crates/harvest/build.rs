//! Builds the runtime as a freestanding shared object, so that it can be a part of the launcher,
//! and the carrier of programs that run together, as a program for the same reason.
//!
//! It is the runtime room's own source, compiled once more: by rustc itself, since cargo has no
//! artifact dependencies on stable toolchains, and without a libc, since two different ones may
//! live in a harvested address space.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/").to_owned();
    for room in ["runtime-abi", "runtime"] {
        println!("cargo::rerun-if-changed={}", crates.join(room).join("src").display());
    }
    println!("cargo::rerun-if-changed={}", crates.join("runtime/carrier").display());
    println!("cargo::rerun-if-changed=build.rs");

    let abi = out.join("libruntime_abi.rlib");
    rustc(
        &crates.join("runtime-abi/src/lib.rs"),
        &["--crate-type=rlib", "--crate-name=runtime_abi", "-Copt-level=2", "-Cforce-unwind-tables=no"],
        &abi,
    );
    let with_abi = format!("--extern=runtime_abi={}", abi.display());
    rustc(
        &crates.join("runtime/src/lib.rs"),
        &[
            "--crate-type=cdylib",
            "--crate-name=gleaner_runtime",
            "--cfg=freestanding",
            &with_abi,
            "-Clink-arg=-nostdlib",
            // Its constructor runs before all others: theirs may be twins, which need an area.
            "-Clink-arg=-Wl,-z,initfirst",
            "-Clink-arg=-Wl,-z,now",
            "-Clink-arg=-Wl,-z,nodelete",
            "-Clink-arg=-Wl,-soname,libgleaner-runtime.so",
            "-Copt-level=2",
            "-Cstrip=symbols",
            "-Cforce-unwind-tables=no",
        ],
        &out.join("libgleaner_runtime.so"),
    );
    // An ordinary program, which is rewritten like any other: its functions must be found, and its
    // loop have one load.
    rustc(
        &crates.join("runtime/carrier/main.rs"),
        &[
            "--crate-type=bin",
            "--crate-name=gleaner_carrier",
            "-Copt-level=s",
            "-Cstrip=debuginfo",
            "-Cforce-unwind-tables=yes",
        ],
        &out.join("gleaner-carrier"),
    );
}

fn rustc(source: &Path, arguments: &[&str], to: &Path) {
    let compiler = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let mut command = Command::new(compiler);
    command
        .arg(source)
        .args(["--edition=2024", "-Cpanic=abort", "-Crelocation-model=pic"])
        .args(["-Cdebuginfo=0", "-Ccodegen-units=1"])
        .args(arguments)
        .arg("-o")
        .arg(to);
    let status = command.status().expect("rustc");
    assert!(status.success(), "the runtime did not compile: {command:?}");
}
