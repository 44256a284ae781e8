//! What a run leaves: how it ended, what it printed, and the files that it wrote. With a change it
//! must be the same as without.

use crate::built;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories below the working directory that are looked into, and entries in all.
const DEEPEST: usize = 4;
const MOST_ENTRIES: usize = 20_000;
/// Of larger files the size alone is compared.
const MOST_BYTES: u64 = 256 << 20;

/// Bytes, by their number and a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    bytes: u64,
    hash: u64,
}

/// What one run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// As `wait` tells it.
    pub end: i32,
    pub output: Printed,
    /// Files that it made or changed. None where there are too many to look through.
    pub files: Option<BTreeMap<PathBuf, Printed>>,
}

impl Printed {
    /// Of what is not looked at.
    pub(crate) fn nothing() -> Self {
        Self { bytes: 0, hash: 0 }
    }

    /// Of a file, from its beginning.
    pub(crate) fn of(file: &mut File) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let (mut hash, mut bytes) = (built::hash(&[]), 0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            let mut filled = 0;
            while filled < buffer.len() {
                match file.read(&mut buffer[filled..])? {
                    0 => break,
                    read => filled += read,
                }
            }
            if filled == 0 {
                return Ok(Self { bytes, hash });
            }
            bytes += filled as u64;
            hash = built::with(hash, &buffer[..filled]);
        }
    }
}

/// The files that a run may write to, as they were before: those below the working directory, and
/// those that its arguments name.
#[derive(Debug)]
pub(crate) struct Before {
    roots: Vec<PathBuf>,
    known: Option<BTreeMap<PathBuf, (u64, i64, i64)>>,
}

impl Before {
    pub(crate) fn look(command: &[std::ffi::OsString]) -> Self {
        let mut roots = vec![PathBuf::from(".")];
        for argument in command.iter().skip(1) {
            let text = argument.to_string_lossy();
            let named = text.rsplit_once('=').map_or(&*text, |(_, behind)| behind);
            let path = Path::new(named);
            if path.is_absolute() && path.parent().is_some_and(|parent| parent.parent().is_some()) {
                roots.push(path.to_owned());
            }
        }
        let known = seen(&roots);
        Self { roots, known }
    }

    /// The files that are new or were changed since then.
    pub(crate) fn written(&self) -> Option<BTreeMap<PathBuf, Printed>> {
        let known = self.known.as_ref()?;
        let now = seen(&self.roots)?;
        let changed = now.into_iter().filter(|(path, about)| known.get(path) != Some(about));
        Some(
            changed
                .filter_map(|(path, (bytes, ..))| Some((contents(&path, bytes)?, path)))
                .map(swap)
                .collect(),
        )
    }
}

fn swap((printed, path): (Printed, PathBuf)) -> (PathBuf, Printed) {
    (path, printed)
}

fn contents(path: &Path, bytes: u64) -> Option<Printed> {
    if bytes > MOST_BYTES {
        return Some(Printed { bytes, hash: 0 });
    }
    Printed::of(&mut File::open(path).ok()?).ok()
}

/// Regular files with their size and the time of their last change; none if there are too many.
fn seen(roots: &[PathBuf]) -> Option<BTreeMap<PathBuf, (u64, i64, i64)>> {
    let mut files = BTreeMap::new();
    let mut entries = 0;
    let mut left: Vec<(PathBuf, usize)> = roots.iter().map(|root| (root.clone(), 0)).collect();
    while let Some((path, depth)) = left.pop() {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        entries += 1;
        if entries > MOST_ENTRIES {
            return None;
        }
        if about.is_file() {
            files.insert(path, (about.len(), about.mtime(), about.mtime_nsec()));
        } else if about.is_dir() && depth < DEEPEST {
            let Ok(inside) = fs::read_dir(&path) else { continue };
            left.extend(inside.flatten().map(|entry| (entry.path(), depth + 1)));
        }
    }
    Some(files)
}

/// What runs without a change left, and so what can be asked of runs with it.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    runs: Vec<Left>,
}

impl Plain {
    pub(crate) fn add(&mut self, left: Left) {
        self.runs.push(left);
    }

    /// Why the program cannot be run twice with the same outcome, if it cannot.
    pub(crate) fn ends_otherwise(&self) -> bool {
        self.runs.iter().any(|run| run.end != self.runs[0].end)
    }

    pub(crate) fn prints_otherwise(&self) -> bool {
        self.runs.iter().any(|run| run.output != self.runs[0].output)
    }

    /// In what a run with a change differs from all of these, where they are all the same.
    pub(crate) fn differs(&self, with: &Left) -> Option<&'static str> {
        let first = self.runs.first()?;
        if with.end != first.end && !self.ends_otherwise() {
            return Some("it ends otherwise");
        }
        if with.output != first.output && !self.prints_otherwise() {
            return Some("it prints something else");
        }
        let (Some(with), Some(stable)) = (&with.files, self.stable_files()) else { return None };
        let differs = |(path, printed): (&PathBuf, &Printed)| with.get(path) != Some(printed);
        stable.into_iter().any(differs).then_some("a file that it writes is another one")
    }

    /// Files that each run writes alike.
    fn stable_files(&self) -> Option<BTreeMap<&PathBuf, &Printed>> {
        let mut stable: BTreeMap<&PathBuf, &Printed> = self.runs.first()?.files.as_ref()?.iter().collect();
        for run in &self.runs[1..] {
            let files = run.files.as_ref()?;
            stable.retain(|path, printed| files.get(*path) == Some(*printed));
        }
        Some(stable)
    }

    /// What was compared, and what could not be, as sentences.
    pub(crate) fn says(&self) -> Vec<String> {
        let mut all = vec![if self.prints_otherwise() {
            "standard output: not compared, since it differs from run to run without a change".to_owned()
        } else {
            "standard output and the way it ends".to_owned()
        }];
        match self.stable_files() {
            None => {
                all.push("files: not compared, there are too many below the working directory".to_owned());
            }
            Some(stable) => {
                let written = self.runs.first().and_then(|run| run.files.as_ref()).map_or(0, BTreeMap::len);
                match (stable.len(), written) {
                    (_, 0) => {}
                    (same, all_of_them) if same == all_of_them => {
                        all.push(format!("{same} files that it writes"));
                    }
                    (same, all_of_them) => all.push(format!(
                        "{same} of {all_of_them} files that it writes; the others differ from run to run"
                    )),
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn printed(text: &str) -> Printed {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Printed::of(&mut file).unwrap()
    }

    fn left(end: i32, output: &str, files: &[(&str, &str)]) -> Left {
        let files = files.iter().map(|(path, text)| (PathBuf::from(path), printed(text))).collect();
        Left { end, output: printed(output), files: Some(files) }
    }

    #[test]
    fn what_is_always_the_same_must_stay_so() {
        let mut plain = Plain::default();
        plain.add(left(0, "one", &[("a", "same"), ("log", "12:00")]));
        plain.add(left(0, "one", &[("a", "same"), ("log", "12:01")]));
        assert!(!plain.ends_otherwise() && !plain.prints_otherwise());
        assert_eq!(plain.differs(&left(0, "one", &[("a", "same"), ("log", "12:02")])), None);
        assert_eq!(plain.differs(&left(1, "one", &[])), Some("it ends otherwise"));
        assert_eq!(plain.differs(&left(0, "two", &[])), Some("it prints something else"));
        let other = left(0, "one", &[("a", "other")]);
        assert_eq!(plain.differs(&other), Some("a file that it writes is another one"));
        let missing = left(0, "one", &[]);
        assert_eq!(plain.differs(&missing), Some("a file that it writes is another one"));
        assert!(plain.says()[1].contains("1 of 2 files"), "{:?}", plain.says());
        plain.add(left(0, "three", &[]));
        assert!(plain.prints_otherwise() && plain.says()[0].contains("not compared"));
        assert_eq!(plain.differs(&left(0, "four", &[])), None);
    }

    #[test]
    fn files_that_arguments_name_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "before").unwrap();
        let named = |path: &Path| std::ffi::OsString::from(format!("--out={}", path.display()));
        let before = Before::look(&["p".into(), named(&old), new.clone().into()]);
        fs::write(&new, "after").unwrap();
        let written = before.written().unwrap();
        assert_eq!(written.get(&new), Some(&printed("after")));
        assert!(!written.contains_key(&old));
    }
}
