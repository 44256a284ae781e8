//! The repository's own text files: what is committed or about to be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file, its path counted from the repository's top.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Text {
    /// Whether its name ends in a dot and this.
    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|e| e == extension)
    }
}

/// All of them; binary files are left out.
pub(crate) fn texts() -> Vec<Text> {
    let root = crate::root();
    let texts: Vec<Text> = paths(&root)
        .into_iter()
        .filter_map(|path| Some(Text { text: fs::read_to_string(root.join(&path)).ok()?, path }))
        .collect();
    assert!(texts.iter().any(|t| t.path == "Cargo.toml"), "the repository was not found");
    texts
}

/// Only those with one of these endings.
pub(crate) fn texts_ending(endings: &[&str]) -> Vec<Text> {
    texts().into_iter().filter(|t| endings.iter().any(|e| t.path.ends_with(e))).collect()
}

fn paths(root: &Path) -> Vec<String> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut paths = match git {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            String::from_utf8_lossy(&output.stdout).split_terminator('\0').map(str::to_owned).collect()
        }
        // An unpacked archive: everything but what a build leaves behind.
        _ => walk(root),
    };
    paths.sort();
    paths
}

fn walk(root: &Path) -> Vec<String> {
    let (mut found, mut ahead) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(root.join(&directory)).into_iter().flatten().flatten() {
            let path = directory.join(entry.file_name());
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            if is_dir && !["target", ".git"].iter().any(|skip| entry.file_name() == *skip) {
                ahead.push(path);
            } else if !is_dir {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found
}

#[test]
fn an_unpacked_archive_is_walked() {
    let found = walk(&crate::root());
    assert!(found.iter().any(|p| p == "crates/testkit/tests/tidy/tree.rs"));
    assert!(!found.iter().any(|p| p.starts_with("target/") || p.starts_with(".git/")));
}
