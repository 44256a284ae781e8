//! Where facts are read from: the live system, a directory laid out like one, or a recorded tree in one file.
//!
//! All readers take paths without a leading slash. Nothing here fails hard: what cannot be read is [`Fact::Unknown`]
//! with the reason, because half of these files are missing on any given machine.

use crate::tree::Tree;
use records::host::{CpuList, Fact};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// No file of interest is larger; a garbled tree, or a device posing as a file, must not eat memory.
const MOST: u64 = 4 << 20;

/// The files of one machine.
#[derive(Debug)]
pub struct Source {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Directory(PathBuf),
    Recorded(Tree),
}

impl Source {
    /// `/` for the live system, another directory laid out like it, or a file written by `gleaner doctor --record`.
    /// A file that is no tree reads as a machine of which nothing is known; use [`Tree::parse`] to find out why.
    pub fn open(root: &Path) -> Self {
        if root.is_file() {
            let text = std::fs::read_to_string(root).unwrap_or_default();
            return Self::recorded(Tree::parse(&text).unwrap_or_default());
        }
        Self { place: Place::Directory(root.to_owned()) }
    }

    pub fn recorded(tree: Tree) -> Self {
        Self { place: Place::Recorded(tree) }
    }

    /// The machine this process runs on, which alone can be asked for CPUID and probed.
    pub fn is_live(&self) -> bool {
        matches!(&self.place, Place::Directory(d) if d == Path::new("/"))
    }

    pub fn bytes(&self, path: &str) -> Fact<Vec<u8>> {
        match &self.place {
            Place::Directory(root) => {
                let mut content = Vec::new();
                match std::fs::File::open(root.join(path))
                    .and_then(|f| f.take(MOST).read_to_end(&mut content))
                {
                    Ok(_) => Fact::Known(content),
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => no_such(path),
                    Err(e) => Fact::unknown(format!("/{path}: {e}")),
                }
            }
            Place::Recorded(tree) => {
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
        if let Place::Directory(root) = &self.place {
            if let Ok(target) = std::fs::read_link(root.join(path)) {
                return Fact::Known(target.to_string_lossy().into_owned());
            }
        }
        self.text(path)
    }

    pub fn exists(&self, path: &str) -> bool {
        match &self.place {
            Place::Directory(root) => root.join(path).exists(),
            Place::Recorded(tree) => tree.file(path).is_some() || !tree.names(path).is_empty(),
        }
    }

    /// Names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        match &self.place {
            Place::Directory(root) => {
                let Ok(entries) = std::fs::read_dir(root.join(directory)) else { return Vec::new() };
                let mut names: Vec<String> =
                    entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
                names.sort_unstable();
                names
            }
            Place::Recorded(tree) => tree.names(directory),
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

/// The value of `key` in a file of `key: value` lines, such as `/proc/meminfo` or `/proc/self/status`.
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
