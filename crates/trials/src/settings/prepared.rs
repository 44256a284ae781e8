//! What a run needs for its settings.

use super::page::Page;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How a program is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The file to execute in place of the program's.
    pub program: Option<PathBuf>,
    pub environment: Vec<(OsString, OsString)>,
    /// Behind the program's own.
    pub arguments: Vec<OsString>,
}

/// A way of running the program that can be tried.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub start: Start,
    /// Where the preloaded library says what it has done, if there is one.
    pub page: Option<Page>,
    /// Files that are there for as long as this is.
    pub files: Option<tempfile::TempDir>,
}

impl Prepared {
    /// Where they are.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.files.as_ref().map(tempfile::TempDir::path)
    }
}

impl Start {
    /// Puts a word in front of what the user has in a variable.
    pub(crate) fn in_front(&mut self, name: &str, word: &OsStr) {
        let parts = [Some(word.to_owned()), self.before(name)];
        self.set(name, joined(parts));
    }

    /// Puts a word behind what the user has in a variable.
    pub(crate) fn behind(&mut self, name: &str, word: &OsStr) {
        let parts = [self.before(name), Some(word.to_owned())];
        self.set(name, joined(parts));
    }

    pub(crate) fn set(&mut self, name: &str, value: OsString) {
        self.environment.retain(|(other, _)| other != name);
        self.environment.push((name.into(), value));
    }

    fn before(&self, name: &str) -> Option<OsString> {
        let own = self.environment.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        own.or_else(|| std::env::var_os(name)).filter(|before| !before.is_empty())
    }
}

/// As lists in variables are.
fn joined(parts: [Option<OsString>; 2]) -> OsString {
    let parts: Vec<OsString> = parts.into_iter().flatten().collect();
    parts.join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_stays() {
        assert_eq!(joined([Some("a".into()), Some("b".into())]), "a:b");
        assert_eq!(joined([None, Some("b".into())]), "b");
        let mut start = Start::default();
        start.behind("PATH", OsStr::new("/last"));
        start.behind("PATH", OsStr::new("/more"));
        let [(_, path)] = &start.environment[..] else { panic!("{start:?}") };
        let path = path.to_str().unwrap();
        assert!(path.ends_with(":/last:/more") && path.len() > ":/last:/more".len(), "{path}");
    }
}
