//! Writing: at any moment, whatever ends the program, the file is the old one or the new one,
//! whole.
//!
//! The new text goes to a file beside the old one, to disk, and takes the old one's name in one
//! step (`rename`). Mode, owner and group of the old file are kept, and a symbolic link stays one.
//! A second hard link keeps the old text. A killed run can leave a file `.NAME.….tmp` behind, never
//! a damaged one.
//!
//! What is no file (a pipe, a terminal, a device, `/dev/fd/N`, `-` for standard output) is written
//! as it comes. A pipe without a reader is an error, [told apart](WriteError::has_no_reader), and
//! not waited for.
//!
//! Symbolic links and files of other users are refused where `links.rs` says so.

use crate::envelope::{Document, Record};
use crate::links::{self, Followed, directory_of};
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that could not be written, and why. If it was there before, it is as it was.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {}", path.display(), crate::plain(why))]
pub struct WriteError {
    pub path: PathBuf,
    /// Told in this error's own text, and so no `source`.
    pub why: io::Error,
}

impl WriteError {
    /// It is a named pipe, and a reader may yet come.
    pub fn has_no_reader(&self) -> bool {
        self.why.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
    }
}

/// Writes the record to this file, all or nothing; `-` is standard output.
pub fn write_atomically<R: Record>(path: &Path, document: &Document<R>) -> Result<(), WriteError> {
    write_bytes_atomically(path, document.to_json().as_bytes())
}

/// The same for what is not a record.
pub fn write_bytes_atomically(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    written(path, None, bytes)
}

/// The same for a program: a file gets this mode, whatever its old one was. Devices and pipes keep
/// theirs.
pub fn write_program_atomically(path: &Path, bytes: &[u8], mode: u32) -> Result<(), WriteError> {
    written(path, Some(mode & 0o777), bytes)
}

fn written(path: &Path, mode: Option<u32>, bytes: &[u8]) -> Result<(), WriteError> {
    Destination::of(path)
        .and_then(|destination| match destination {
            Destination::Stdout => write_all(&mut io::stdout().lock(), bytes),
            Destination::Stream(mut stream) => write_all(&mut stream, bytes),
            Destination::File { path, old } => replace(&path, old.as_ref(), mode, bytes),
        })
        .map_err(|why| WriteError { path: path.to_owned(), why })
}

/// Finds out whether a later write can be expected to succeed, so that a long run need not end in
/// vain. Leaves everything as it was.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    // A pipe's reader would find its end as soon as it is closed again.
    if fs::metadata(path).is_ok_and(|what| what.file_type().is_fifo()) {
        return Ok(());
    }
    Destination::of(path)
        .and_then(|destination| match destination {
            Destination::File { path, .. } => beside(&path).map(|_removed_when_dropped| ()),
            Destination::Stdout | Destination::Stream(_) => Ok(()),
        })
        .map_err(|why| WriteError { path: path.to_owned(), why })
}

/// A file for output that comes as a run goes on, made anew, and its name, links followed. A stream
/// is only opened.
pub fn create_output(path: &Path) -> io::Result<(File, PathBuf)> {
    let (path, no_link) = match links::followed(path)? {
        Followed::Descriptor(path) => (path, OFlags::empty()),
        Followed::Name(path) => (path, OFlags::NOFOLLOW),
    };
    // A pipe of another user is not even waited for.
    if let (false, Ok(found)) = (no_link.is_empty(), fs::symlink_metadata(&path)) {
        links::refuse_planted(&path, &found)?;
    }
    let flags = (no_link | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(&path)?;
    let found = file.metadata()?;
    if !no_link.is_empty() {
        links::refuse_planted(&path, &found)?;
    }
    if found.is_file() {
        file.set_len(0)?;
    }
    Ok((file, path))
}

/// Makes this directory, and those above it, where they are not there. Returns its name, links
/// followed.
pub fn create_directory(path: &Path) -> io::Result<PathBuf> {
    // Without a slash at the end, behind which a link is followed.
    let path: PathBuf = path.components().collect();
    let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
    let followed = || match links::followed(&path)? {
        Followed::Descriptor(path) | Followed::Name(path) => Ok::<_, io::Error>(path),
    };
    let made = followed()?;
    fs::create_dir_all(&made)?;
    // What took its place meanwhile.
    let (directory, found) = (followed()?, fs::symlink_metadata(&made)?);
    if directory != made || !found.is_dir() {
        return Err(rustix::io::Errno::NOTDIR.into());
    }
    links::refuse_planted(&made, &found)?;
    Ok(made)
}

enum Destination {
    Stdout,
    /// A pipe, a terminal, a device.
    Stream(File),
    /// A file, there already or not; links followed.
    File {
        path: PathBuf,
        old: Option<fs::Metadata>,
    },
}

impl Destination {
    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" || path == Path::new("/dev/stdout") {
            return Ok(Self::Stdout);
        }
        let path = match links::followed(path)? {
            Followed::Descriptor(path) => {
                return Ok(Self::Stream(OpenOptions::new().write(true).open(path)?));
            }
            Followed::Name(path) => path,
        };
        // Of the name itself: a link that takes its place from now on is not followed.
        match fs::symlink_metadata(&path) {
            Ok(old) if old.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(old) => {
                links::refuse_planted(&path, &old)?;
                // A pipe opened as usual would make us wait for a reader, without a word and
                // perhaps for ever. A file is opened even though its name alone is replaced: one
                // that is write-protected stays as it is.
                let wait = if old.file_type().is_fifo() { OFlags::NONBLOCK } else { OFlags::empty() };
                let flags = (wait | OFlags::NOFOLLOW | OFlags::NOCTTY).bits().cast_signed();
                let file = OpenOptions::new().write(true).custom_flags(flags).open(&path)?;
                if old.is_file() {
                    return Ok(Self::File { path, old: Some(old) });
                }
                let flags = rustix::fs::fcntl_getfl(&file)?.difference(wait);
                rustix::fs::fcntl_setfl(&file, flags)?;
                Ok(Self::Stream(file))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::File { path, old: None }),
            Err(e) => Err(e),
        }
    }
}

fn replace(path: &Path, old: Option<&fs::Metadata>, mode: Option<u32>, bytes: &[u8]) -> io::Result<()> {
    let mut new = beside(path)?;
    new.write_all(bytes)?;
    if let Some(old) = old {
        keep_owner(new.as_file(), old);
    }
    if let Some(mode) = mode.or(old.map(|old| old.mode() & 0o7777)) {
        new.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    new.as_file().sync_all()?;
    new.persist(path).map_err(|e| e.error)?;
    // The name too should outlive a power cut. Where the file system cannot promise that, the file
    // is there all the same.
    let _ = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
    Ok(())
}

/// A new file in the same directory, with the mode that the umask gives; gone when dropped.
fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory_of(path))
        .map_err(|e| e.raw_os_error().map_or(e, io::Error::from_raw_os_error)) // without the temporary name
}

fn keep_owner(new: &File, old: &fs::Metadata) {
    if let Ok(now) = new.metadata() {
        if (now.uid(), now.gid()) != (old.uid(), old.gid()) {
            let (uid, gid) = (rustix::fs::Uid::from_raw(old.uid()), rustix::fs::Gid::from_raw(old.gid()));
            // Only root may give files away; anyone else becomes the owner of what he wrote.
            let _ = rustix::fs::fchown(new, Some(uid), Some(gid));
        }
    }
}

fn write_all(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names_in(dir: &Path) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_new_file_gets_the_mode_that_any_program_would_give_it() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
        write_bytes_atomically(&ours, b"x").unwrap();
        fs::write(&plain, b"x").unwrap();
        assert_eq!(mode(&ours), mode(&plain));
        assert_eq!(names_in(dir.path()), ["ours", "plain"]);
    }

    #[test]
    fn a_pipes_reader_waits_for_what_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        // Were it opened here, the reader would find its end, or this would wait for one.
        check_writable(&pipe).unwrap();
        let long = vec![b'x'; 1 << 20]; // more than a pipe holds
        while let Err(error) = write_bytes_atomically(&pipe, &long) {
            assert!(error.has_no_reader(), "{error}");
        }
        assert_eq!(reader.join().unwrap(), long);
        assert!(write_bytes_atomically(&pipe, b"text").unwrap_err().has_no_reader(), "not waited for");
    }

    #[test]
    fn an_old_file_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write_bytes_atomically(&path, b"new").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap().as_slice()), (0o640, &b"new"[..]));
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("far")).unwrap();
        symlink("far/middle", dir.path().join("near")).unwrap();
        symlink("end", dir.path().join("far/middle")).unwrap();
        for text in ["first", "second"] {
            // The first write goes through a dangling link, the second through a whole one.
            write_bytes_atomically(&dir.path().join("near"), text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join("far/end")).unwrap(), text);
            assert!(fs::symlink_metadata(dir.path().join("near")).unwrap().is_symlink());
        }
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        let error = write_bytes_atomically(&dir.path().join("a"), b"x").unwrap_err().to_string();
        assert!(error.ends_with("Too many levels of symbolic links"), "{error}");
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let name = "n".repeat(300);
        let error = write_bytes_atomically(&dir.path().join(&name), b"x").unwrap_err().to_string();
        assert!(error.ends_with("File name too long"), "{error}");
        assert!(write_bytes_atomically(&dir.path().join("no/such/place"), b"x").is_err());
        assert!(
            write_bytes_atomically(dir.path(), b"x").unwrap_err().to_string().ends_with("is a directory")
        );
        assert!(names_in(dir.path()).is_empty());
    }

    #[test]
    fn checking_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        check_writable(&path).unwrap();
        assert!(names_in(dir.path()).is_empty());
        fs::write(&path, b"old").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(check_writable(&dir.path().join("no/such")).is_err());
        assert!(check_writable(dir.path()).is_err());
    }

    #[test]
    fn streams_are_written_as_they_come() {
        check_writable(Path::new("/dev/full")).unwrap();
        let error = write_bytes_atomically(Path::new("/dev/full"), b"x").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /dev/full: No space left on device");
        write_bytes_atomically(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
