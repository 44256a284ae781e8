//! Gleaner's own directory. That no other user can change it, `records` makes sure.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Why there is none of this user's.
pub const NO_DIRECTORY: &str = "neither XDG_CACHE_HOME nor HOME is set";

/// Gleaner's directory in the user's cache directory: `~/.cache/gleaner`; `None` where there is no
/// home.
pub fn of_user() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("gleaner"))
}

/// How long ago a file was written.
pub(crate) fn age(path: &Path) -> Option<Duration> {
    let written = fs::metadata(path).ok()?.modified().ok()?;
    // A clock that was set back makes it of the future.
    Some(SystemTime::now().duration_since(written).unwrap_or_default())
}
