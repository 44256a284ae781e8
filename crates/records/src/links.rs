//! Which symbolic links are followed to the file that is written, and which files of other users
//! are left alone.
//!
//! In a directory that everybody may write to (mode `1777`, as `/tmp` has it), another user can
//! plant a link under the name that we are about to write: `/tmp/machine.json -> /etc/shadow`. The
//! kernel refuses to follow it (`fs.protected_symlinks`), but only where the kernel follows it; a
//! file that is replaced by `rename` needs its last name, so links are followed here, and the rule
//! is applied here, whatever that setting is:
//!
//! | in a directory that everybody may write to, sticky or not | |
//! |---|---|
//! | a link of ours, or of the directory's owner | followed |
//! | any other link | refused |
//! | a file, directory or pipe of ours, or of the directory's owner | written |
//! | any other (`fs.protected_regular`, `fs.protected_fifos`) | refused |
//!
//! The owner of a directory can plant a link in it, too: if that is neither we nor root, the last
//! name must be no link of another user. All other links are followed, as any program follows them.

use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// As many links as the kernel follows (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Everybody may write.
const SHARED: u32 = 0o002;
const ROOT: u32 = 0;

pub(crate) enum Followed {
    /// A name of one of our own descriptors (`/dev/fd/3`): what is opened stands behind it.
    Descriptor(PathBuf),
    /// The last name of a chain of links, whether or not there is a file.
    Name(PathBuf),
}

/// Follows the links that this path names, as far as they may be followed.
pub(crate) fn followed(path: &Path) -> io::Result<Followed> {
    let mut path = path.to_owned();
    for _ in 0..=MOST_LINKS {
        if is_descriptor(&path) {
            return Ok(Followed::Descriptor(path));
        }
        for directory in path.ancestors().skip(1).filter(|d| !d.as_os_str().is_empty()) {
            link_at(directory, false)?;
        }
        match link_at(&path, true)? {
            Some(target) => path = directory_of(&path).join(target),
            None => return Ok(Followed::Name(path)),
        }
    }
    Err(io::Error::from(rustix::io::Errno::LOOP))
}

/// What the link of this name says, if it is one; an error if it may not be followed.
///
/// Owner and target are asked of one descriptor, so that no other link can take its place in
/// between.
fn link_at(path: &Path, is_last: bool) -> io::Result<Option<PathBuf>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(link) = rustix::fs::openat(CWD, path, flags, Mode::empty()) else { return Ok(None) };
    let found = rustix::fs::fstat(&link)?;
    if !rustix::fs::FileType::from_raw_mode(found.st_mode).is_symlink() {
        return Ok(None);
    }
    if is_planted(path, found.st_uid)? {
        return Err(io::Error::other(
            "a symbolic link of another user, in a directory that everybody may write to",
        ));
    }
    if is_last && is_of_another_user(found.st_uid) && is_of_another_user(directory_of(path).metadata()?.uid())
    {
        return Err(io::Error::other("a symbolic link of another user, in a directory of another user"));
    }
    let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
    Ok(Some(Path::new(OsStr::from_bytes(target.as_bytes())).to_owned()))
}

/// Refuses a file, directory or pipe that another user has put where everybody may.
pub(crate) fn refuse_planted(path: &Path, found: &Metadata) -> io::Result<()> {
    if is_planted(path, found.uid())? {
        let what = if found.is_dir() { "directory" } else { "file" };
        let why = format!("a {what} of another user, in a directory that everybody may write to");
        return Err(io::Error::other(why));
    }
    Ok(())
}

fn is_planted(path: &Path, owner: u32) -> io::Result<bool> {
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    let directory = fs::metadata(directory_of(path))?;
    Ok(directory.mode() & SHARED != 0 && owner != directory.uid())
}

fn is_of_another_user(owner: u32) -> bool {
    ![ROOT, rustix::process::geteuid().as_raw()].contains(&owner)
}

/// The directory that holds the last name of a path.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `/dev/fd/N`, `/dev/stderr`, `/proc/self/fd/N`: their links name no file that could be replaced.
fn is_descriptor(path: &Path) -> bool {
    let mut names = path.iter().skip(1).map(OsStr::as_bytes);
    path.is_absolute()
        && matches!(
            (names.next(), names.next(), names.next()),
            (Some(b"dev"), Some(b"stdin" | b"stdout" | b"stderr"), None)
                | (Some(b"dev"), Some(b"fd"), Some(_))
                | (Some(b"proc"), Some(_), Some(b"fd"))
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::write_bytes_atomically;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    /// Another user, without anything here.
    const STRANGER: u32 = 4321;

    /// A directory like `/tmp`, and what stands beside it; nothing where this process may give no
    /// files away.
    fn shared() -> Option<(tempfile::TempDir, PathBuf)> {
        let outer = tempfile::tempdir().unwrap();
        let shared = outer.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        let probe = shared.join("probe");
        fs::write(&probe, "").unwrap();
        chown(&probe, Some(STRANGER), None).ok()?;
        fs::remove_file(probe).unwrap();
        Some((outer, shared))
    }

    fn refused(path: &Path) -> bool {
        write_bytes_atomically(path, b"new").is_err_and(|e| e.to_string().contains("of another user"))
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let Some((outer, shared)) = shared() else { return };
        let victim = outer.path().join("victim");
        let link = shared.join("link");
        for there in [false, true] {
            if there {
                fs::write(&victim, "old").unwrap();
            }
            symlink(&victim, &link).unwrap();
            lchown(&link, Some(STRANGER), None).unwrap();
            assert!(refused(&link));
            assert!(crate::check_writable(&link).is_err());
            assert_eq!(fs::read_to_string(&victim).ok().as_deref(), there.then_some("old"));
            // The same link, of ours.
            lchown(&link, Some(rustix::process::geteuid().as_raw()), None).unwrap();
            write_bytes_atomically(&link, b"new").unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "new");
            fs::remove_file(&link).unwrap();
        }
    }

    #[test]
    fn nor_a_planted_link_to_a_directory_or_behind_another_link() {
        let Some((outer, shared)) = shared() else { return };
        let (link, own) = (shared.join("link"), outer.path().join("own"));
        symlink(outer.path(), &link).unwrap();
        lchown(&link, Some(STRANGER), None).unwrap();
        assert!(refused(&link.join("file")));
        symlink("shared/link", &own).unwrap();
        assert!(refused(&own));
    }

    #[test]
    fn a_planted_file_stays_as_it_is() {
        let Some((_outer, shared)) = shared() else { return };
        let file = shared.join("file");
        fs::write(&file, "old").unwrap();
        chown(&file, Some(STRANGER), None).unwrap();
        assert!(refused(&file));
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        // Where not everybody may write, the file was put there by right.
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        write_bytes_atomically(&file, b"new").unwrap();
    }

    #[test]
    fn nor_does_a_missing_sticky_bit_or_the_owner_of_the_directory_help() {
        let Some((outer, shared)) = shared() else { return };
        let (victim, link) = (outer.path().join("victim"), shared.join("link"));
        fs::write(&victim, "old").unwrap();
        symlink(&victim, &link).unwrap();
        lchown(&link, Some(STRANGER), None).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
        assert!(refused(&link));
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        chown(&shared, Some(STRANGER), None).unwrap();
        assert!(refused(&link));
        assert!(crate::create_output(&link).is_err_and(|e| e.to_string().contains("of another user")));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
        // What is not planted is written there as anywhere.
        write_bytes_atomically(&shared.join("file"), b"new").unwrap();
        crate::create_output(&shared.join("file")).unwrap();
        assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "");
    }

    #[test]
    fn a_planted_directory_is_not_used() {
        let Some((outer, shared)) = shared() else { return };
        let (real, link, own) = (outer.path().join("real"), shared.join("link"), shared.join("own/a"));
        symlink(&real, &link).unwrap();
        lchown(&link, Some(STRANGER), None).unwrap();
        for there in [false, true] {
            if there {
                fs::create_dir(&real).unwrap();
            }
            for name in ["link", "link/", "link/.", "link/below"] {
                let why = crate::create_directory(&shared.join(name)).unwrap_err().to_string();
                assert!(why.starts_with("a symbolic link of another user"), "{name}: {why}");
            }
        }
        assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
        assert_eq!(crate::create_directory(&own).unwrap(), own);
        chown(shared.join("own"), Some(STRANGER), None).unwrap();
        let why = crate::create_directory(&shared.join("own/")).unwrap_err().to_string();
        assert!(why.starts_with("a directory of another user"), "{why}");
        lchown(&link, Some(rustix::process::geteuid().as_raw()), None).unwrap();
        assert_eq!(crate::create_directory(&link).unwrap(), real);
    }

    #[test]
    fn descriptors_are_told_by_their_names() {
        for path in ["/dev/fd/3", "/dev/stderr", "/proc/self/fd/1", "/proc/12/fd/1"] {
            assert!(matches!(followed(Path::new(path)).unwrap(), Followed::Descriptor(_)), "{path}");
        }
        for path in ["/dev/null", "dev/fd/3", "/proc/self/comm"] {
            assert!(!is_descriptor(Path::new(path)), "{path}");
        }
    }
}
