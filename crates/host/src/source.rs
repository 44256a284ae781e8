//! Where facts are read from: the live system, a directory laid out like one, or a recorded tree in
//! one file.
//!
//! All readers take paths without a leading slash. Nothing here fails hard: what cannot be read is
//! [`Fact::Unknown`] with the reason, because half of these files are missing on any given machine.
//! Only regular files are read, as those of procfs and sysfs are: a pipe under a foreign root would
//! make us wait for ever, a device need not end.

use crate::tree::{Tree, TreeError};
use records::host::{CpuList, Fact};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// No file of interest is larger; a garbled tree, or a device posing as a file, must not eat
/// memory.
const LARGEST_FILE: u64 = 4 << 20;

/// Recorded machines take some 100 KiB; one of a thousand CPUs stays far below.
const LARGEST_TREE: u64 = 64 << 20;

/// The files of one machine.
#[derive(Debug)]
pub struct Source {
    files: Files,
}

#[derive(Debug)]
enum Files {
    Directory(PathBuf),
    Recorded(Tree),
}

/// Why a path is no machine.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{}", records::plain(.0))]
    Unreadable(io::Error),
    #[error("a pipe that no program writes to")]
    NoWriter,
    #[error("neither a directory nor a file written by --record")]
    Device,
    #[error("larger than any recorded machine")]
    TooLarge,
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl Source {
    /// `/` for the live system, another directory laid out like it, or a file written by `gleaner
    /// doctor --record`. A file that is no tree reads as a machine of which nothing is known; use
    /// [`Tree::parse`] to find out why.
    pub fn open(root: &Path) -> Self {
        if root.is_file() {
            let text = std::fs::read_to_string(root).unwrap_or_default();
            return Self::recorded(Tree::parse(&text).unwrap_or_default());
        }
        Self { files: Files::Directory(root.to_owned()) }
    }

    /// As [`Source::open`], but a path that is no machine is an error. A recorded machine may come
    /// by a pipe, if someone writes to it (`--root <(zcat machine.gz)`).
    pub fn open_checked(root: &Path) -> Result<Self, SourceError> {
        let kind = std::fs::metadata(root).map_err(SourceError::Unreadable)?.file_type();
        if kind.is_dir() {
            return Ok(Self { files: Files::Directory(root.to_owned()) });
        }
        if !kind.is_file() && !kind.is_fifo() {
            return Err(SourceError::Device);
        }
        let bytes = tree_bytes(root, kind.is_fifo())?;
        Ok(Self::recorded(Tree::parse(&String::from_utf8_lossy(&bytes))?))
    }

    pub fn recorded(tree: Tree) -> Self {
        Self { files: Files::Recorded(tree) }
    }

    /// The machine this process runs on, which alone can be asked for CPUID and probed.
    pub fn is_live(&self) -> bool {
        matches!(&self.files, Files::Directory(d) if d == Path::new("/"))
    }

    pub fn bytes(&self, path: &str) -> Fact<Vec<u8>> {
        match &self.files {
            Files::Directory(root) => {
                let mut content = Vec::new();
                match open_regular(&root.join(path))
                    .and_then(|f| f.take(LARGEST_FILE).read_to_end(&mut content))
                {
                    Ok(_) => Fact::Known(content),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => no_such(path),
                    Err(e) => Fact::unknown(format!("/{path}: {e}")),
                }
            }
            Files::Recorded(tree) => {
                tree.file(path).map_or_else(|| no_such(path), |c| Fact::Known(c.to_vec()))
            }
        }
    }

    /// A file's text without the white space around it. Bytes that are no UTF-8 are replaced.
    pub fn text(&self, path: &str) -> Fact<String> {
        self.bytes(path).map(|b| String::from_utf8_lossy(&b).trim().to_owned())
    }

    /// A file that holds one value.
    pub fn value<T: FromStr>(&self, path: &str) -> Fact<T> {
        parsed(self.text(path), path)
    }

    /// A file that holds one hexadecimal number.
    pub fn hex(&self, path: &str) -> Fact<u64> {
        match self.text(path) {
            Fact::Known(text) => u64::from_str_radix(text.trim_start_matches("0x"), 16)
                .map_or_else(|_| garbled(path, &text), Fact::Known),
            Fact::Unknown { unknown } => Fact::Unknown { unknown },
        }
    }

    pub fn cpus(&self, path: &str) -> Fact<CpuList> {
        self.value(path)
    }

    /// The words of a switch file like `always [madvise] never`; the chosen one is in brackets.
    pub fn chosen(&self, path: &str) -> Fact<String> {
        match self.text(path) {
            Fact::Known(text) => text
                .split_whitespace()
                .find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))
                .map_or_else(|| garbled(path, &text), |w| Fact::Known(w.to_owned())),
            unknown @ Fact::Unknown { .. } => unknown,
        }
    }

    /// What a symbolic link names. Recorded trees keep it as the text of a file.
    pub fn link(&self, path: &str) -> Fact<String> {
        if let Files::Directory(root) = &self.files {
            if let Ok(target) = std::fs::read_link(root.join(path)) {
                return Fact::Known(target.to_string_lossy().into_owned());
            }
        }
        self.text(path)
    }

    pub fn exists(&self, path: &str) -> bool {
        match &self.files {
            Files::Directory(root) => root.join(path).exists(),
            Files::Recorded(tree) => tree.file(path).is_some() || !tree.names(path).is_empty(),
        }
    }

    /// Names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        match &self.files {
            Files::Directory(root) => {
                let Ok(entries) = std::fs::read_dir(root.join(directory)) else { return Vec::new() };
                let mut names: Vec<String> =
                    entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
                names.sort_unstable();
                names
            }
            Files::Recorded(tree) => tree.names(directory),
        }
    }

    /// Names in a directory that are a prefix and a number (`cpu0`, `node1`), by ascending number.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let names = self.names(directory);
        let mut numbers: Vec<u32> =
            names.iter().filter_map(|n| n.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// Opens a file to read it, and nothing else: opening some devices has effects, so it is looked at
/// first, and again once it is open.
fn open_regular(path: &Path) -> io::Result<File> {
    let other = || io::Error::other("not a regular file");
    if !std::fs::metadata(path)?.is_file() {
        return Err(other());
    }
    let file = open_at_once(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// Opens without waiting: a pipe as if it had a writer.
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn tree_bytes(path: &Path, pipe: bool) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let mut file = open_at_once(path).map_err(SourceError::Unreadable)?;
    if pipe {
        // The first byte tells a pipe without a writer (its end) from one whose writer is slow
        // (nothing yet).
        let mut first = [0];
        match file.read(&mut first) {
            Ok(0) => return Err(SourceError::NoWriter),
            Ok(_) => bytes.push(first[0]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(SourceError::Unreadable(e)),
        }
        let wait = |file: &File| {
            rustix::fs::fcntl_setfl(file, rustix::fs::fcntl_getfl(file)?.difference(OFlags::NONBLOCK))
        };
        wait(&file).map_err(|e| SourceError::Unreadable(e.into()))?;
    }
    file.take(LARGEST_TREE + 1).read_to_end(&mut bytes).map_err(SourceError::Unreadable)?;
    if bytes.len() as u64 > LARGEST_TREE { Err(SourceError::TooLarge) } else { Ok(bytes) }
}

/// The value of `key` in a file of `key: value` lines, such as `/proc/meminfo` or
/// `/proc/self/status`.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (k, v) = line.split_once(':')?;
        (k.trim() == key).then(|| v.trim())
    })
}

/// The value of `key` as a fact, `path` naming the file for the reason.
pub(crate) fn field_fact(text: &Fact<String>, key: &str, path: &str) -> Fact<String> {
    match text {
        Fact::Known(t) => field(t, key).map_or_else(
            || Fact::unknown(format!("/{path} has no line '{key}'")),
            |v| Fact::Known(v.to_owned()),
        ),
        Fact::Unknown { unknown } => Fact::unknown(unknown.clone()),
    }
}

pub(crate) fn parsed<T: FromStr>(text: Fact<String>, path: &str) -> Fact<T> {
    match text {
        Fact::Known(text) => text.parse().map_or_else(|_| garbled(path, &text), Fact::Known),
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    }
}

pub(crate) fn garbled<T>(path: &str, text: &str) -> Fact<T> {
    let start: String = text.chars().take(40).collect();
    Fact::unknown(format!("/{path} says {start:?}, which makes no sense there"))
}

fn no_such<T>(path: &str) -> Fact<T> {
    Fact::unknown(format!("no /{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn pipe(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        pipe(&root.path().join("pipe"));
        std::os::unix::fs::symlink("/dev/zero", root.path().join("zero")).unwrap();
        std::fs::create_dir(root.path().join("directory")).unwrap();
        let source = Source::open_checked(root.path()).unwrap();
        for path in ["pipe", "zero", "directory"] {
            let told = source.bytes(path).why_unknown().map(str::to_owned);
            assert_eq!(told, Some(format!("/{path}: not a regular file")));
        }
    }

    #[test]
    fn a_root_that_is_no_machine_is_told_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let told = |path: &Path| Source::open_checked(path).unwrap_err().to_string();
        let path = directory.path().join("pipe");
        pipe(&path);
        assert_eq!(told(&path), "a pipe that no program writes to");
        assert_eq!(told(Path::new("/dev/zero")), "neither a directory nor a file written by --record");
        assert_eq!(told(&directory.path().join("absent")), "No such file or directory");
    }

    #[test]
    fn a_recorded_machine_may_come_by_a_pipe() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        pipe(&path);
        // Open for reading too, so that opening it does not wait.
        let mut writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let written = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            io::Write::write_all(&mut writer, b"# gleaner tree 1\nproc/version\tLinux\n").unwrap();
        });
        let source = Source::open_checked(&path).unwrap();
        written.join().unwrap();
        assert_eq!(source.text("proc/version"), Fact::Known("Linux".to_owned()));
    }
}
