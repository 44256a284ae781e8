//! Which directories no other user can change, nor put another directory in the place of.
//!
//! What is executed, or believed without a second look, must lie in one. A user who may rename
//! *any* directory on the way can exchange all that is below it: `~user/.cache/gleaner`, though
//! root made it (`sudo -E` keeps `HOME`), is that user's to replace. So the way is walked from `/`,
//! one name at a time, by descriptors (`openat` with `O_NOFOLLOW`):
//!
//! | on the way | trusted if |
//! |---|---|
//! | a directory | it is root's or ours, and sticky or not writable by group and others |
//! | a symbolic link | it is root's or ours; its target is walked in its place |
//! | the last directory | the same; if it has to be ours alone: ours, and not writable by others |
//!
//! What is returned is the way that was walked, without links. Other users can exchange nothing on
//! it, then or later, so that it may be used as a path. The owner of `/` counts as root: in a user
//! namespace without root that is another number, and to replace `/` is to replace Gleaner.

use crate::plain;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use tempfile::TempDir;

/// As many links as the kernel follows (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

const ROOT: u32 = 0;
/// Bits of a directory's mode: group or others may write to it; they may not rename or remove what
/// is not theirs.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Makes this directory where it is not there, ours alone. Returns the way to it, without links; an
/// error where another user may change it. Nothing is made below a directory of another user.
pub fn make_private_directory(directory: &Path) -> io::Result<PathBuf> {
    let way = walk(directory, true).map_err(|why| why.named(directory))?;
    let Some(last) = way.last() else { return Err(io::ErrorKind::InvalidInput.into()) };
    if last.owner != own_user() {
        return Err(NotTrusted::Owner.of(&last.path).named(directory));
    }
    if last.mode & OTHERS_WRITE != 0 {
        return Err(NotTrusted::Written.of(&last.path).named(directory));
    }
    Ok(last.path.clone())
}

/// An error where another user may change this directory, or what is above it. Others may put files
/// into it, if they may not remove ours (as in `/tmp`).
pub fn check_trusted_directory(directory: &Path) -> io::Result<PathBuf> {
    let way = walk(directory, false).map_err(|why| why.named(directory))?;
    Ok(way.last().map_or_else(|| directory.to_owned(), |last| last.path.clone()))
}

/// A new directory for this run, ours alone, gone when dropped: in the directory for temporary
/// files, or in `/tmp` where that is another user's (`sudo -E` keeps `TMPDIR`).
pub fn temporary_directory(prefix: &str) -> io::Result<TempDir> {
    let base = std::env::temp_dir();
    match temporary_directory_in(&base, prefix) {
        Err(why) if is_untrusted(&why) => temporary_directory_in(Path::new("/tmp"), prefix).map_err(|_| why),
        made => made,
    }
}

/// The same in this directory.
pub fn temporary_directory_in(base: &Path, prefix: &str) -> io::Result<TempDir> {
    let trusted = check_trusted_directory(base)?;
    tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(0o700)) // whatever the umask
        .tempdir_in(trusted)
        .map_err(|why| io::Error::new(why.kind(), format!("{}: {}", base.display(), plain(&why))))
}

/// A directory on the way.
struct Step {
    path: PathBuf,
    owner: u32,
    mode: u32,
}

#[derive(Clone, Copy, Debug)]
enum NotTrusted {
    Owner,
    Link,
    Written,
}

impl NotTrusted {
    fn of(self, path: &Path) -> Why {
        Why::Untrusted(Untrusted { path: path.to_owned(), why: self })
    }
}

/// Which directory or link another user may change.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", path.display(), match why {
    NotTrusted::Owner => "another user owns it",
    NotTrusted::Link => "a symbolic link of another user",
    NotTrusted::Written => "others may write to it",
})]
struct Untrusted {
    path: PathBuf,
    why: NotTrusted,
}

fn is_untrusted(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Untrusted>)
}

enum Why {
    Untrusted(Untrusted),
    System(io::Error),
}

impl Why {
    fn named(self, directory: &Path) -> io::Error {
        match self {
            Self::Untrusted(why) => io::Error::other(why),
            Self::System(why) => {
                io::Error::new(why.kind(), format!("{}: {}", directory.display(), plain(&why)))
            }
        }
    }
}

impl From<rustix::io::Errno> for Why {
    fn from(why: rustix::io::Errno) -> Self {
        Self::System(why.into())
    }
}

impl From<io::Error> for Why {
    fn from(why: io::Error) -> Self {
        Self::System(why)
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The trusted directories from `/` to this one; what is missing is made, ours alone.
fn walk(directory: &Path, make: bool) -> Result<Vec<Step>, Why> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open_in = |at: &OwnedFd, name: &OsStr| rustix::fs::openat(at, name, flags, Mode::empty());
    let mut here = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
    let found = rustix::fs::fstat(&here)?;
    let trusted_owners = [ROOT, own_user(), found.st_uid];
    let mut way = vec![Step::new(PathBuf::from("/"), &found, &trusted_owners)?];
    let mut names = names_of(&std::path::absolute(directory)?);
    let mut links = 0;
    while let Some(name) = names.pop() {
        if name == ".." {
            way.truncate((way.len() - 1).max(1));
            here = open_in(&here, &name)?;
            continue;
        }
        let next = match open_in(&here, &name) {
            Err(rustix::io::Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&here, &name, Mode::RWXU) {
                    // Another process of ours was faster; whether it was ours is seen below.
                    Ok(()) | Err(rustix::io::Errno::EXIST) => open_in(&here, &name),
                    Err(why) => Err(why),
                }
            }
            opened => opened,
        }?;
        let above = way.last().map_or(Path::new("/"), |step| &step.path);
        let (path, found) = (above.join(&name), rustix::fs::fstat(&next)?);
        if !FileType::from_raw_mode(found.st_mode).is_symlink() {
            way.push(Step::new(path, &found, &trusted_owners)?);
            here = next;
            continue;
        }
        if !trusted_owners.contains(&found.st_uid) {
            return Err(NotTrusted::Link.of(&path));
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes()));
        if target.is_absolute() {
            way.truncate(1);
            here = open_in(&here, OsStr::new("/"))?;
        }
        names.extend(names_of(target));
    }
    Ok(way)
}

/// The names of a path, the first one last.
fn names_of(path: &Path) -> Vec<OsString> {
    let names = path.components().rev();
    names
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

impl Step {
    fn new(path: PathBuf, found: &Stat, trusted_owners: &[u32]) -> Result<Self, Why> {
        let (owner, mode) = (found.st_uid, found.st_mode);
        if !FileType::from_raw_mode(mode).is_dir() {
            return Err(rustix::io::Errno::NOTDIR.into());
        }
        if !trusted_owners.contains(&owner) {
            return Err(NotTrusted::Owner.of(&path));
        }
        if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
            return Err(NotTrusted::Written.of(&path));
        }
        Ok(Self { path, owner, mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};

    /// Another user, without anything here.
    const STRANGER: u32 = 4321;

    fn why(directory: &Path) -> Option<String> {
        make_private_directory(directory).err().map(|why| plain(&why))
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn each_directory_on_the_way_counts() {
        let outer = tempfile::tempdir().unwrap();
        let home = outer.path().join("home");
        let cache = home.join("a/b/c");
        assert_eq!(make_private_directory(&cache).unwrap(), cache.canonicalize().unwrap());
        assert_eq!(fs::metadata(home.join("a")).unwrap().mode() & 0o777, 0o700);
        for mode in [0o777, 0o770] {
            set(&home, mode);
            assert_eq!(why(&cache), Some(format!("{}: others may write to it", home.display())));
        }
        set(&home, 0o1777);
        assert_eq!(why(&cache), None);
        assert_eq!(why(&home), Some(format!("{}: others may write to it", home.display())));
        assert!(check_trusted_directory(&home).is_ok());
        set(&home, 0o700);
        assert_eq!(why(&home.join("a/../a/b")), None);
        fs::write(home.join("file"), "").unwrap();
        assert_eq!(
            why(&home.join("file")),
            Some(format!("{}: Not a directory", home.join("file").display()))
        );
    }

    #[test]
    fn nothing_is_made_below_another_users_directory() {
        let outer = tempfile::tempdir().unwrap();
        let home = outer.path().join("home");
        fs::create_dir(&home).unwrap();
        // Only root may give it away.
        if chown(&home, Some(STRANGER), None).is_err() {
            return;
        }
        assert_eq!(why(&home.join("a/b")), Some(format!("{}: another user owns it", home.display())));
        assert!(!home.join("a").exists());
        // A directory of ours in it is the other user's to replace.
        fs::create_dir_all(home.join("ours/b")).unwrap();
        assert_eq!(why(&home.join("ours/b")), Some(format!("{}: another user owns it", home.display())));
        set(&home, 0o1777);
        assert_eq!(why(&home.join("ours/b")), Some(format!("{}: another user owns it", home.display())));
        let error = temporary_directory_in(&home, "x").unwrap_err();
        assert!(is_untrusted(&error), "{error}");
    }

    #[test]
    fn links_of_ours_are_walked_and_those_of_others_are_not() {
        let outer = tempfile::tempdir().unwrap();
        let (real, link) = (outer.path().join("real"), outer.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        symlink("link/../real", outer.path().join("second")).unwrap();
        for name in ["link", "second"] {
            let made = make_private_directory(&outer.path().join(name).join("a")).unwrap();
            assert_eq!(made, real.canonicalize().unwrap().join("a"), "{name}");
        }
        if lchown(&link, Some(STRANGER), None).is_ok() {
            let planted = Some(format!("{}: a symbolic link of another user", link.display()));
            assert_eq!(why(&link.join("a")), planted);
            assert_eq!(why(&outer.path().join("second/a")), planted);
        }
        symlink("loop", outer.path().join("loop")).unwrap();
        assert!(why(&outer.path().join("loop")).is_some_and(|why| why.ends_with("symbolic links")));
    }
}
