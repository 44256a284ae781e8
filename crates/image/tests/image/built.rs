//! Sources of tests, compiled or assembled.

use std::process::Command;

/// A library of hand-written functions.
pub(crate) fn assembled(source: &str) -> Vec<u8> {
    built(source, "code.s", &["-shared", "-nostdlib"])
}

/// What gcc makes of a file with this text and name.
pub(crate) fn built(text: &str, name: &str, options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, to) = (folder.path().join(name), folder.path().join("p.so"));
    std::fs::write(&source, text).expect("a source");
    let done = Command::new("gcc").args(options).arg(&source).arg("-o").arg(&to).status();
    assert!(done.is_ok_and(|status| status.success()), "a compiler");
    std::fs::read(to).expect("what was compiled")
}
