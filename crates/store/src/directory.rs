//! Gleaner's own directory, and whether a directory is this user's alone.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
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

/// Makes this directory, and makes sure that no other user can put files into it: it is ours alone,
/// and so is its parent, in which another user could put another directory in its place. The parent
/// may be root's or sticky.
pub(crate) fn make_private(directory: &Path) -> io::Result<()> {
    let named = |at: &Path, e: &io::Error| {
        io::Error::new(e.kind(), format!("{}: {}", at.display(), records::plain(e)))
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|e| named(directory, &e))?;
    let own = rustix::process::geteuid().as_raw();
    let check = |at: &Path, is_safe: &dyn Fn(&fs::Metadata) -> bool| {
        let metadata = fs::metadata(at).map_err(|e| named(at, &e))?;
        if is_safe(&metadata) { Ok(()) } else { Err(named(at, &io::Error::other("others may write to it"))) }
    };
    check(directory, &|it| it.uid() == own && it.mode() & OTHERS_WRITE == 0)?;
    let parent = directory.canonicalize().map_err(|e| named(directory, &e))?;
    check(parent.parent().unwrap_or(Path::new("/")), &|it| {
        [own, ROOT].contains(&it.uid()) && (it.mode() & OTHERS_WRITE == 0 || it.mode() & STICKY != 0)
    })
}

const ROOT: u32 = 0;
/// Bits of a directory's mode: group or others may write to it; they may not rename or remove what
/// is not theirs.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
