//! What a run needs for a change.

use crate::page::Page;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What a run needs.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// Which of the change's forms this is, in words.
    pub says: String,
    /// The file to execute in place of the program's.
    pub program: Option<PathBuf>,
    pub environment: Vec<(OsString, OsString)>,
    /// Where the preloaded library says what it has done, if there is one.
    pub page: Option<Page>,
    /// Behind the program's own.
    pub arguments: Vec<OsString>,
    /// Files that are there for as long as this is.
    pub files: Option<tempfile::TempDir>,
}

impl Prepared {
    /// Puts a word in front of what the user has in a variable.
    pub(crate) fn in_front(&mut self, name: &str, word: &OsStr) {
        let parts = [Some(word.to_owned()), before(name)];
        self.environment.push((name.into(), joined(parts)));
    }

    /// Puts a word behind what the user has in a variable.
    pub(crate) fn behind(&mut self, name: &str, word: &OsStr) {
        let parts = [before(name), Some(word.to_owned())];
        self.environment.push((name.into(), joined(parts)));
    }
}

fn before(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|before| !before.is_empty())
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
        let mut prepared = Prepared::default();
        prepared.behind("PATH", OsStr::new("/last"));
        let path = prepared.environment[0].1.to_str().unwrap();
        assert!(path.ends_with(":/last") && path.len() > ":/last".len(), "{path}");
    }
}
