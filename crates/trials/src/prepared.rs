//! What a run needs for a change.

use std::ffi::OsString;
use std::path::PathBuf;

/// What a run needs.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// Which of the change's forms this is, in words.
    pub says: String,
    /// The file to execute in place of the program's.
    pub program: Option<PathBuf>,
    pub environment: Vec<(OsString, OsString)>,
    /// Behind the program's own.
    pub arguments: Vec<OsString>,
    /// Files that are there for as long as this is.
    pub files: Option<tempfile::TempDir>,
}
