//! A recorded machine in one text file, small enough to send and to read.
//!
//! ```text
//! # gleaner tree 1
//! sys/devices/system/cpu/online<TAB>0-3
//! sys/devices/system/cpu/cpu{0-3}/topology/physical_package_id<TAB>0
//! proc/meminfo
//! <TAB>MemTotal:       24684096 kB
//! <TAB>MemFree:        23925776 kB
//! proc/self/auxv<TAB>!hex 1000000000000000fffb8b17
//! ```
//!
//! A line that does not start with a tab names a file; what follows the first tab is its only line.
//! Lines that start with a tab are its lines otherwise. One `{LIST}` in a path, numbers as the
//! kernel writes CPU lists, stands for as many files of the same content. `!hex` marks bytes that
//! are no text. `#` starts a comment, blank lines are skipped.

use records::host::CpuList;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const HEAD: &str = "# gleaner tree 1";
const HEX: &str = "!hex ";

/// A garbled list must not turn into millions of files.
const MOST_FILES: usize = 1 << 18;

/// Files by path, without a leading slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a text is not a recorded tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error("not a recorded machine: the first line is not '{HEAD}'")]
    Head,
    #[error("line {0}: a line of content before any file")]
    NoFile(usize),
    #[error("line {0}: '{1}' is not a list of numbers such as 0-3,8")]
    List(usize, String),
    #[error("line {0}: not hexadecimal")]
    Hex(usize),
    #[error("line {0}: more files than a machine has")]
    TooMany(usize),
}

impl Tree {
    pub fn parse(text: &str) -> Result<Self, TreeError> {
        if text.lines().next().map(str::trim_end) != Some(HEAD) {
            return Err(TreeError::Head);
        }
        let mut tree = Self::default();
        let mut current: Vec<String> = Vec::new();
        for (number, line) in text.lines().enumerate().skip(1) {
            let number = number + 1;
            if let Some(content) = line.strip_prefix('\t') {
                if current.is_empty() {
                    return Err(TreeError::NoFile(number));
                }
                tree.append(&current, content, number)?;
            } else if line.trim().is_empty() || line.starts_with('#') {
                current.clear();
            } else {
                let (path, content) = line.split_once('\t').map_or((line, None), |(p, c)| (p, Some(c)));
                current = expand(path.trim(), number)?;
                if tree.files.len() + current.len() > MOST_FILES {
                    return Err(TreeError::TooMany(number));
                }
                for path in &current {
                    tree.files.insert(path.clone(), Vec::new());
                }
                if let Some(content) = content {
                    tree.append(&current, content, number)?;
                }
            }
        }
        Ok(tree)
    }

    fn append(&mut self, paths: &[String], content: &str, line: usize) -> Result<(), TreeError> {
        let bytes = match content.strip_prefix(HEX) {
            Some(hex) => from_hex(hex.trim()).ok_or(TreeError::Hex(line))?,
            None => format!("{content}\n").into_bytes(),
        };
        for path in paths {
            self.files.entry(path.clone()).or_default().extend_from_slice(&bytes);
        }
        Ok(())
    }

    pub fn insert(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), content.into());
    }

    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Names directly under a directory, sorted.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        let below = self.files.range(prefix.clone()..).take_while(|(p, _)| p.starts_with(&prefix));
        let names: BTreeSet<&str> = below
            .filter_map(|(p, _)| p[prefix.len()..].split('/').next())
            .filter(|n| !n.is_empty())
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Writes the files under a directory, for readers that want one.
    pub fn unpack(&self, root: &std::path::Path) -> std::io::Result<()> {
        for (path, content) in &self.files {
            let safe = std::path::Path::new(path);
            if !safe.components().all(|c| matches!(c, std::path::Component::Normal(_))) {
                return Err(std::io::Error::new(
                    std::io::ErrorKind::InvalidInput,
                    format!("'{path}' leaves the tree"),
                ));
            }
            let target = root.join(safe);
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(target, content)?;
        }
        Ok(())
    }

    /// The text that [`Tree::parse`] reads; numbered files of equal content are written once.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        let mut groups: BTreeMap<(String, &[u8]), Vec<u32>> = BTreeMap::new();
        for (path, content) in &self.files {
            match number_in(path) {
                Some((before, number, after)) => {
                    groups.entry((format!("{before}{{}}{after}"), content)).or_default().push(number);
                }
                None => {
                    groups.entry((path.clone(), content)).or_default();
                }
            }
        }
        for ((path, content), numbers) in groups {
            let path = match numbers.as_slice() {
                [] => path,
                [one] => path.replacen("{}", &one.to_string(), 1),
                many => {
                    let list: CpuList = many.iter().copied().collect();
                    path.replacen("{}", &format!("{{{list}}}"), 1)
                }
            };
            text.push_str(&path);
            write_content(&mut text, content);
        }
        text
    }
}

fn write_content(text: &mut String, content: &[u8]) {
    let plain = std::str::from_utf8(content)
        .ok()
        .and_then(|t| if t.is_empty() { Some("") } else { t.strip_suffix('\n') })
        .filter(|t| !t.contains('\r') && !t.lines().any(|l| l.starts_with(HEX)));
    match plain {
        None => {
            let _ = write!(text, "\t{HEX}");
            for byte in content {
                let _ = write!(text, "{byte:02x}");
            }
        }
        Some(_) if content.is_empty() => {}
        Some(one) if !one.contains('\n') => {
            text.push('\t');
            text.push_str(one);
        }
        Some(lines) => {
            for line in lines.split('\n') {
                text.push_str("\n\t");
                text.push_str(line);
            }
        }
    }
    text.push('\n');
}

/// The first run of digits that follows a letter and ends a path component (`cpu12`, `node0`), the
/// parts around it. Written so that reading expands it back to the same path.
fn number_in(path: &str) -> Option<(&str, u32, &str)> {
    if path.contains(['{', '}']) {
        return None;
    }
    let mut start = 0;
    for component in path.split('/') {
        let letters = component.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &component[letters.len()..];
        let plain = digits == "0" || !digits.starts_with('0');
        if !letters.is_empty() && !digits.is_empty() && plain {
            if let Some(number) = digits.parse().ok().filter(|n| *n < 1 << 16) {
                let at = start + letters.len();
                return Some((&path[..at], number, &path[at + digits.len()..]));
            }
        }
        start += component.len() + 1;
    }
    None
}

fn expand(path: &str, line: usize) -> Result<Vec<String>, TreeError> {
    let parts = path.split_once('{').and_then(|(b, rest)| rest.split_once('}').map(|(list, a)| (b, list, a)));
    let Some((before, list, after)) = parts else { return Ok(vec![path.to_owned()]) };
    let numbers: CpuList = list.parse().map_err(|_| TreeError::List(line, list.to_owned()))?;
    Ok(numbers.iter().map(|n| format!("{before}{n}{after}")).collect())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    if digits.len() % 2 != 0 {
        return None;
    }
    Some(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_form() {
        let tree = Tree::parse(
            "# gleaner tree 1\n# a comment\nsys/cpu{0-1,3}/id\t7\nproc/x\n\tone\n\n\ttwo\n"
                .replace("\n\n", "\n\t\n")
                .as_str(),
        )
        .unwrap();
        assert_eq!(tree.file("sys/cpu3/id"), Some(&b"7\n"[..]));
        assert_eq!(tree.file("sys/cpu2/id"), None);
        assert_eq!(tree.file("proc/x"), Some(&b"one\n\ntwo\n"[..]));
        assert_eq!(tree.names("sys"), ["cpu0", "cpu1", "cpu3"]);
    }

    #[test]
    fn refuses_with_the_line() {
        assert_eq!(Tree::parse("cpu"), Err(TreeError::Head));
        assert_eq!(Tree::parse("# gleaner tree 1\n\tx"), Err(TreeError::NoFile(2)));
        assert_eq!(Tree::parse("# gleaner tree 1\na{x}\t1"), Err(TreeError::List(2, "x".into())));
        assert_eq!(Tree::parse("# gleaner tree 1\na\t!hex 0g"), Err(TreeError::Hex(2)));
    }

    #[test]
    fn does_not_unpack_outside() {
        let mut tree = Tree::default();
        tree.insert("../escaped", "x");
        assert!(tree.unpack(tempfile::tempdir().unwrap().path()).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in "(# gleaner tree 1\n)?(\\PC|\t|\n|\\{|\\})*") {
            let _ = Tree::parse(&text);
        }

        #[test]
        fn round_trips(
            files in proptest::collection::btree_map(
                "(cpu|node)[0-9]{1,3}/[a-c]{1,2}[0-9]?",
                proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\t'), Just(b'!'), any::<u8>()], 0..12),
                0..12,
            )
        ) {
            let mut tree = Tree::default();
            for (path, content) in files {
                tree.insert(path, content);
            }
            prop_assert_eq!(Tree::parse(&tree.to_text()).unwrap(), tree);
        }
    }
}
