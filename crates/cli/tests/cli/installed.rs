//! `make install` and `make uninstall`: what was built goes below a prefix, and away again, without
//! a toolchain.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// `make` in this repository, where no cargo is to be found, of what lies in `target`.
fn make(goal: &str, target: &Path, destination: &Path) -> Output {
    Command::new("make")
        .args(["-C", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), goal, "PREFIX=/usr"])
        .env("PATH", "/usr/bin:/bin")
        .env_remove("MAKEFLAGS")
        .arg(format!("CARGO_TARGET_DIR={}", target.display()))
        .arg(format!("DESTDIR={}", destination.display()))
        .output()
        .expect("make")
}

fn files(directory: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path.display().to_string());
        }
    }
    files
}

#[test]
fn what_was_built_is_installed_without_cargo_and_goes_away_again() {
    let directory = tempfile::tempdir().unwrap();
    let (target, destination) = (directory.path().join("target"), directory.path().join("destination"));
    let output = make("install", &target, &destination);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("run 'make build' first"), "{told}");
    assert!(files(&destination).is_empty());

    fs::create_dir_all(target.join("release")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_gleaner"), target.join("release/gleaner")).unwrap();
    let output = make("install", &target, &destination);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let installed = Command::new(destination.join("usr/bin/gleaner")).arg("--version").output().unwrap();
    assert!(installed.status.success());
    for file in
        ["man1/gleaner.1", "man1/gleaner-measure.1", "completions/gleaner", "_gleaner", "gleaner.fish"]
    {
        assert!(files(&destination).iter().any(|path| path.ends_with(file)), "{file}");
    }

    assert!(make("uninstall", &target, &destination).status.success());
    assert_eq!(files(&destination), [""; 0]);
}
