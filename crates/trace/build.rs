//! Builds the library that hands over traced accesses as a freestanding shared object, so that it
//! can be a part of the profiler: the heap room's source once more, as the sampler room's build
//! script does it.

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
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=gleaner_trace"])
        .args(["--cfg=freestanding", "--cfg=traces"])
        .args(["-Cpanic=abort", "-Copt-level=2", "-Crelocation-model=pic", "-Cdebuginfo=0"])
        .args(["-Ccodegen-units=1", "-Cstrip=symbols", "-Cforce-unwind-tables=no"])
        .args(["-Clink-arg=-nostdlib", "-Clink-arg=-Wl,-z,now", "-Clink-arg=-Wl,-z,nodelete"])
        .arg("-Clink-arg=-Wl,-soname,libgleaner-trace.so")
        .arg("-o")
        .arg(out.join("libgleaner_trace.so"));
    let status = command.status().expect("rustc");
    assert!(status.success(), "the library did not compile: {command:?}");
}
