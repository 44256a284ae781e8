//! Rewritten files, and analyses of their originals, kept from run to run: `gleaner/twins` in the
//! user's cache directory.
//!
//! ```text
//!  gleaner/twins
//!    KEY                an entry, a directory with two files:
//!      PROGRAM          the file itself; its name is the program's, which `ps` shows
//!      note.json        what else is known of it, and its checksum
//!    making             a lock for each entry that is being made, by its key
//!    unfinished-XXXXXX  an entry that is being written
//! ```
//!
//! An entry is a directory named after its key. It comes into being whole, by one rename, and is
//! never changed. A process that uses an entry holds a shared lock on its directory, so that
//! [`eviction`] leaves it. A process that makes an entry holds the lock of its key: others that
//! want the same entry wait for it, and nothing else does. An entry that is not as it was written
//! is removed and made again.
//!
//! Entries are executed, as root too. So no other user may be able to change the directory or
//! anything above it (`records::make_private_directory`), and an entry is used only if directory
//! and files are ours, and looked at by descriptors that follow no links. Then no other user can
//! exchange what was looked at, and it may be executed by its path, which `ps` and debuggers show.

mod eviction;
mod integrity;

use crate::directory::{self, NO_DIRECTORY};
use eviction::NOTE;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What an entry is found by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// A key that hangs on all of these parts, and on this program itself.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts.iter().copied().chain([maker().as_slice()]) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hex(&hash.finalize())[..40].to_owned())
    }
}

/// Two builds of this program may make different twins of one plan.
fn maker() -> Vec<u8> {
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    if let Ok(own) = fs::metadata("/proc/self/exe") {
        text += &format!(" {} {} {}", own.size(), own.mtime(), own.mtime_nsec());
    }
    text.into_bytes()
}

/// SHA-256, in hexadecimal digits.
pub fn checksum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A file to be kept, with what is known of it besides its bytes.
#[derive(Clone, Debug)]
pub struct Made<N> {
    pub bytes: Vec<u8>,
    pub note: N,
}

/// As it stands in an entry.
#[derive(Serialize, Deserialize)]
struct Written<N> {
    name: Vec<u8>,
    checksum: String,
    note: N,
}

/// A file in its place, kept there as long as this lives.
#[derive(Debug)]
pub struct Entry<N> {
    pub file: PathBuf,
    pub note: N,
    /// It was there already.
    pub cached: bool,
    _in_use: File,
}

/// The right to make one key's entry, until this is dropped.
struct MakingLock {
    path: PathBuf,
    _locked: File,
}

impl Drop for MakingLock {
    /// Removed while it is still locked: a process that waits for it will see that.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A place for rewritten files.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    limit: u64,
    /// For this run only.
    temporary: Option<tempfile::TempDir>,
}

/// Rewritten files take no more than this, unless they are in use.
pub const LIMIT: u64 = 2 << 30;

impl Cache {
    /// The user's. Not to be had where there is no home, where others could put files into it, or
    /// where nothing may be run from.
    pub fn of_user() -> io::Result<Self> {
        let directory = directory::of_user().ok_or_else(|| io::Error::other(NO_DIRECTORY))?;
        Self::at(&directory.join("twins"), LIMIT)
    }

    /// One in this directory, which is made if it is not there.
    pub fn at(directory: &Path, limit: u64) -> io::Result<Self> {
        let directory = records::make_private_directory(directory)?;
        may_run_from(&directory)?;
        Ok(Self { directory, limit, temporary: None })
    }

    /// One that is gone after this run.
    pub fn temporary() -> io::Result<Self> {
        let temporary = records::temporary_directory("gleaner-twins-")?;
        may_run_from(temporary.path())?;
        Ok(Self { directory: temporary.path().to_owned(), limit: u64::MAX, temporary: Some(temporary) })
    }

    /// A directory of this run's beside the entries.
    pub fn unfinished(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix(eviction::UNFINISHED).tempdir_in(&self.directory)
    }

    /// In which the entries lie.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The entry of this key, made if it is not there. `name` is the program's.
    pub fn get<E: From<io::Error>, N: Serialize + DeserializeOwned>(
        &self,
        key: &Key,
        name: &OsStr,
        make: impl FnOnce() -> Result<Made<N>, E>,
    ) -> Result<Entry<N>, E> {
        if let Some(entry) = self.find(key, name) {
            return Ok(entry);
        }
        let _making = self.lock_making(key).map_err(|why| self.named(&why))?;
        // Another process may have made it while we waited.
        if let Some(entry) = self.find(key, name) {
            return Ok(entry);
        }
        self.throw_away(key).map_err(|why| self.named(&why))?;
        let made = make()?;
        let entry = self.put(key, name, made).map_err(|why| self.named(&why))?;
        if self.temporary.is_none() {
            eviction::shrink_to(&self.directory, self.limit);
        }
        Ok(entry)
    }

    /// With the directory, which may be full.
    fn named(&self, why: &io::Error) -> io::Error {
        io::Error::new(why.kind(), format!("{}: {}", self.directory.display(), records::plain(why)))
    }

    fn place(&self, key: &Key) -> PathBuf {
        self.directory.join(&key.0)
    }

    /// A sound entry, in use from now on.
    pub fn find<N: DeserializeOwned>(&self, key: &Key, name: &OsStr) -> Option<Entry<N>> {
        let place = self.place(key);
        let in_use = own(rustix::fs::CWD, &place, FileType::Directory)?;
        flock(&in_use, FlockOperation::LockShared).ok()?;
        let note_file = own(&in_use, NOTE.as_ref(), FileType::RegularFile)?;
        let written: Written<N> = serde_json::from_reader(io::BufReader::new(&note_file)).ok()?;
        if written.name != name.as_encoded_bytes() {
            return None;
        }
        if integrity::of_file(&mut own(&in_use, name.as_ref(), FileType::RegularFile)?).ok()?
            != written.checksum
        {
            return None;
        }
        let file = place.join(name);
        // The one used longest ago goes first. Where the time cannot be set, another goes.
        let _ = note_file.set_modified(std::time::SystemTime::now());
        Some(Entry { file, note: written.note, cached: true, _in_use: in_use })
    }

    fn lock_making(&self, key: &Key) -> io::Result<MakingLock> {
        let directory = self.directory.join(eviction::MAKING);
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if own(rustix::fs::CWD, &directory, FileType::Directory).is_none() {
            return Err(rustix::io::Errno::NOTDIR.into());
        }
        let path = directory.join(format!("{}.lock", key.0));
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600).custom_flags(no_link());
        loop {
            let file = options.open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // The process that held the lock before removed the file: others lock a new one by now.
            let (locked, named) = (file.metadata()?, fs::metadata(&path));
            if named.is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino())) {
                return Ok(MakingLock { path, _locked: file });
            }
        }
    }

    /// Clears away what is left under this key: it was damaged.
    fn throw_away(&self, key: &Key) -> io::Result<()> {
        match fs::remove_dir_all(self.place(key)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    fn put<N: Serialize>(&self, key: &Key, name: &OsStr, made: Made<N>) -> io::Result<Entry<N>> {
        let building = self.unfinished()?;
        let written = Written {
            name: name.as_encoded_bytes().to_vec(),
            checksum: integrity::of(&made.bytes),
            note: &made.note,
        };
        write(&building.path().join(name), &made.bytes, 0o700)?;
        write(&building.path().join(NOTE), &serde_json::to_vec(&written)?, 0o600)?;
        let in_use = File::open(building.path())?;
        flock(&in_use, FlockOperation::LockShared)?;
        let place = self.place(key);
        fs::rename(building.path(), &place)?;
        let _moved = building.keep();
        Ok(Entry { file: place.join(name), note: made.note, cached: false, _in_use: in_use })
    }
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(path)?;
    file.write_all(bytes)
}

/// What lies there, if it is of this kind, ours, and no one else may write to it.
fn own(directory: impl AsFd, name: &Path, kind: FileType) -> Option<File> {
    // A pipe is not waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let found = rustix::fs::fstat(&file).ok()?;
    let is_ours = found.st_uid == rustix::process::geteuid().as_raw() && found.st_mode & OTHERS_WRITE == 0;
    (is_ours && FileType::from_raw_mode(found.st_mode) == kind).then_some(file)
}

/// Bits of a mode: group or others may write.
const OTHERS_WRITE: u32 = 0o022;

fn no_link() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

fn may_run_from(directory: &Path) -> io::Result<()> {
    let flags = rustix::fs::statvfs(directory)?.f_flag;
    if flags.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        return Err(io::Error::other(format!(
            "programs cannot be executed from {} (is it mounted noexec?)",
            directory.display()
        )));
    }
    Ok(())
}

/// The name under which a rewritten file is kept: its program's.
pub fn name_of(file: &Path) -> OsString {
    match file.file_name() {
        Some(name) if name != NOTE => name.to_owned(),
        _ => OsString::from("twin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    type Note = BTreeMap<u64, String>;

    fn made(text: &str) -> Made<Note> {
        Made { bytes: text.as_bytes().to_vec(), note: Note::from([(7, text.to_owned())]) }
    }

    fn get(cache: &Cache, part: &str, text: &str) -> Entry<Note> {
        let key = Key::of(&[part.as_bytes()]);
        cache.get::<io::Error, Note>(&key, OsStr::new("prog"), || Ok(made(text))).unwrap()
    }

    #[test]
    fn what_was_made_once_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(&directory.path().join("twins"), LIMIT).unwrap();
        let first = get(&cache, "a", "one");
        let second = get(&cache, "a", "never made");
        assert_eq!((first.cached, second.cached, &first.file), (false, true, &second.file));
        assert_eq!(fs::read(&second.file).unwrap(), b"one");
        assert_eq!((first.note, second.note), (made("one").note, made("one").note));
        assert_eq!(second.file.file_name().unwrap(), "prog");
        assert_eq!(fs::metadata(&second.file).unwrap().mode() & 0o777, 0o700);
        assert!(!get(&cache, "b", "two").cached);
    }

    #[test]
    fn parts_of_keys_do_not_run_together() {
        assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]));
        assert_eq!(Key::of(&[b"ab", b"c"]), Key::of(&[b"ab", b"c"]));
    }

    #[test]
    fn damage_of_any_kind_is_mended() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT).unwrap();
        let place = get(&cache, "a", "one").file.parent().unwrap().to_owned();
        let damages: [&dyn Fn(); 5] = [
            &|| fs::write(place.join("prog"), "two").unwrap(),
            &|| fs::write(place.join(NOTE), "{").unwrap(),
            &|| fs::remove_file(place.join("prog")).unwrap(),
            &|| fs::remove_file(place.join(NOTE)).unwrap(),
            &|| fs::remove_dir_all(&place).unwrap(),
        ];
        for damage in damages {
            damage();
            let entry = get(&cache, "a", "one");
            assert!(!entry.cached);
            assert_eq!(fs::read(&entry.file).unwrap(), b"one");
            assert!(get(&cache, "a", "one").cached);
        }
    }

    #[test]
    fn many_at_once_make_it_once() {
        let directory = tempfile::tempdir().unwrap();
        let times = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let cache = Cache::at(directory.path(), LIMIT).unwrap();
                    let entry = cache
                        .get::<io::Error, Note>(&Key::of(&[b"a"]), OsStr::new("prog"), || {
                            times.fetch_add(1, Ordering::SeqCst);
                            Ok(made("one"))
                        })
                        .unwrap();
                    assert_eq!(fs::read(entry.file).unwrap(), b"one");
                });
            }
        });
        assert_eq!(times.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn one_entry_does_not_wait_until_another_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT).unwrap();
        let (made_all, all_made) = std::sync::mpsc::channel();
        let others = directory.path().to_owned();
        cache
            .get::<io::Error, Note>(&Key::of(&[b"slow"]), OsStr::new("prog"), || {
                std::thread::spawn(move || {
                    let cache = Cache::at(&others, LIMIT).unwrap();
                    (0..64).for_each(|number| drop(get(&cache, &number.to_string(), "other")));
                    made_all.send(()).unwrap();
                });
                let waited = all_made.recv_timeout(std::time::Duration::from_secs(60));
                assert!(waited.is_ok(), "an unrelated entry waits");
                Ok(made("slow"))
            })
            .unwrap();
        let left = fs::read_dir(directory.path().join(eviction::MAKING)).unwrap();
        assert_eq!(left.count(), 0, "locks go with their holders");
    }

    #[test]
    fn a_failure_leaves_nothing_and_the_next_one_succeeds() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT).unwrap();
        let key = Key::of(&[b"a"]);
        let failed = cache.get::<_, Note>(&key, OsStr::new("prog"), || Err(io::Error::other("no")));
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert!(!get(&cache, "a", "one").cached);
    }

    #[test]
    fn a_place_that_others_may_write_to_is_none() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let why = format!("{}: others may write to it", directory.path().display());
        assert_eq!(Cache::at(directory.path(), LIMIT).unwrap_err().to_string(), why);
    }

    #[test]
    fn nor_is_one_whose_parent_others_may_write_to() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("twins");
        let set = |mode| fs::set_permissions(parent.path(), fs::Permissions::from_mode(mode)).unwrap();
        let shown = parent.path().canonicalize().unwrap();
        let why = format!("{}: others may write to it", shown.display());
        let refused = || Cache::at(&directory, LIMIT).err().map(|e| e.to_string());
        for mode in [0o777, 0o770] {
            set(mode);
            assert_eq!(refused().as_ref(), Some(&why));
        }
        set(0o1777);
        assert_eq!(refused(), None);
        set(0o700);
        assert_eq!(refused(), None);
        // Only root may give it away.
        if chown(parent.path(), Some(4321), None).is_ok() {
            assert_eq!(refused(), Some(format!("{}: another user owns it", shown.display())));
        }
    }

    #[test]
    fn what_others_left_there_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT).unwrap();
        let file = get(&cache, "a", "one").file;
        let place = file.parent().unwrap().to_owned();
        let elsewhere = directory.path().join("elsewhere");
        let moved = |from: &Path| {
            fs::rename(from, &elsewhere).unwrap();
            symlink(&elsewhere, from).unwrap();
        };
        let damages: [&dyn Fn(); 4] = [
            &|| fs::set_permissions(&file, fs::Permissions::from_mode(0o777)).unwrap(),
            &|| fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap(),
            &|| moved(&file),
            &|| moved(&place),
        ];
        for damage in damages {
            damage();
            let entry = get(&cache, "a", "one");
            assert!(!entry.cached && !fs::symlink_metadata(&entry.file).unwrap().is_symlink());
            let _ = fs::remove_dir_all(&elsewhere).or_else(|_| fs::remove_file(&elsewhere));
        }
        // Only root may give it away.
        for what in [&file, &place.join(NOTE), &place] {
            if chown(what, Some(4321), None).is_ok() {
                assert!(!get(&cache, "a", "one").cached, "{}", what.display());
            }
        }
        let making = directory.path().join(eviction::MAKING);
        fs::remove_dir_all(&making).unwrap();
        symlink(directory.path(), &making).unwrap();
        let _ = lchown(&making, Some(4321), None);
        let made = cache.get::<io::Error, Note>(&Key::of(&[b"b"]), OsStr::new("prog"), || Ok(made("two")));
        assert_eq!(made.unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_temporary_one_goes_away() {
        let cache = Cache::temporary().unwrap();
        let file = get(&cache, "a", "one").file;
        assert!(file.exists() && cache.is_temporary());
        drop(cache);
        assert!(!file.exists());
    }
}
