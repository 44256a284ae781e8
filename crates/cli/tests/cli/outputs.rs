//! Which files are written, and which are not: links and files of other users, descriptors, pipes
//! and devices.
//!
//! To add a case: a way to name an output, and what becomes of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Another user, without anything here.
const STRANGER: u32 = 4321;

fn gleaner(args: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gleaner")).args(args).stdin(Stdio::null()).output().expect("it runs")
}

fn words(text: &str) -> Vec<&Path> {
    text.split(' ').map(Path::new).collect()
}

/// A directory like `/tmp`, below another one; nothing where files cannot be given away.
fn shared() -> Option<(tempfile::TempDir, PathBuf)> {
    let outer = tempfile::tempdir().unwrap();
    let shared = outer.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let probe = shared.join("probe");
    fs::write(&probe, "").unwrap();
    if chown(&probe, Some(STRANGER), None).is_err() {
        eprintln!("skipped: files cannot be given to another user here");
        return None;
    }
    fs::remove_file(probe).unwrap();
    Some((outer, shared))
}

#[test]
fn links_that_another_user_planted_are_not_written_through() {
    let Some((outer, shared)) = shared() else { return };
    let victim = outer.path().join("victim");
    let link = shared.join("link");
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(STRANGER), None).unwrap();
    for command in ["doctor --record", "measure clock --quick -o", "twin --identity /bin/true -o"] {
        let output = gleaner(&[&words(command)[..], &[link.as_path()]].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command}: {told}");
        let wanted = "a symbolic link of another user, in a directory that everybody may write to";
        assert_eq!(told, format!("gleaner: cannot write {}: {wanted}\n", link.display()));
        assert!(!victim.exists(), "{command}");
    }
    fs::create_dir(&victim).unwrap();
    let output = gleaner(&[&words("measure clock --quick --csv")[..], &[link.as_path()]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn links_of_ones_own_are_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    symlink("file", &link).unwrap();
    assert!(gleaner(&[Path::new("doctor"), Path::new("--record"), &link]).status.success());
    assert!(fs::read_to_string(file).unwrap().starts_with("# gleaner tree"));
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
}

#[test]
fn descriptors_are_written_by_their_names() {
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("G", env!("CARGO_BIN_EXE_gleaner")).stdin(Stdio::null());
        shell.output().unwrap()
    };
    for line in [
        "$G doctor -q --record /dev/stdout",
        "$G doctor -q --record /dev/stderr 2>&1 >/dev/null",
        "$G doctor -q --record /dev/fd/3 3>&1 >/dev/null",
        "$G doctor -q --record /dev/stdout | cat",
    ] {
        let output = shell(line);
        assert!(output.stdout.starts_with(b"# gleaner tree"), "{line}: {}", testkit::said(&output).2);
    }
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = |args: &[&Path]| {
        let output = gleaner(args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
    };
    let told = format!("gleaner: --root {}: a pipe that no program writes to", pipe.display());
    assert_eq!(refused(&[Path::new("doctor"), Path::new("--root"), &pipe]), (Some(2), told));
    let told = "gleaner: --root /dev/zero: neither a directory nor a file written by --record".to_owned();
    assert_eq!(refused(&words("doctor --root /dev/zero")), (Some(2), told));
    let told = "gleaner: /dev/zero: not a regular file".to_owned();
    assert_eq!(refused(&words("proof /dev/zero /dev/zero")), (Some(2), told));
    let told = format!("gleaner: {}: not a regular file", pipe.display());
    assert_eq!(refused(&[Path::new("proof"), &pipe, &pipe]), (Some(2), told));
    // A machine of which one file is a pipe.
    let proc = directory.path().join("proc");
    fs::create_dir(&proc).unwrap();
    assert!(Command::new("mkfifo").arg(proc.join("cpuinfo")).status().unwrap().success());
    let output = gleaner(&[Path::new("doctor"), Path::new("--root"), directory.path()]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("Verdict"));
}
