//! How the binary is linked, and the program of `gleaner tour`.
//!
//! Compiles the program of `gleaner tour`, which becomes a part of the binary: the tour works on a
//! host without a compiler. It is linked as programs of the host that builds are, whatever Gleaner
//! itself is built for.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    // Line tables are three quarters of the file otherwise. Debuggers, perf and the backtraces of
    // panics read them compressed.
    println!("cargo::rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // Asked when it runs: checkouts that share a target directory share the built script.
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let crates = own.parent().expect("crates/");
    let sources = crates.parent().expect("the workspace").join("programs/tour");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CC");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    // Line numbers, since the tour shows lines; no path of the machine that builds.
    command
        .current_dir(&sources)
        .args(["-O2", "-g1", "-fno-lto"])
        .arg(format!("-ffile-prefix-map={}=.", sources.display()))
        .args(["join.c", "-o"])
        .arg(out.join("join"));
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "a C compiler is needed ({command:?}: {status:?})"
    );
}
