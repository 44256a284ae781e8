//! Functions written in assembly language, and where bytes of theirs are.

use std::process::Command;

/// A library of this source.
pub(crate) fn assembled(source: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("code.s"), folder.path().join("code.so"));
    std::fs::write(&from, source).expect("a file");
    let done = Command::new("gcc").args(["-shared", "-nostdlib"]).arg(&from).arg("-o").arg(&to).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was assembled")
}

pub(crate) fn at(file: &[u8], bytes: &[u8]) -> Vec<usize> {
    (0..file.len()).filter(|&at| file[at..].starts_with(bytes)).collect()
}
