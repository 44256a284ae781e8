//! Keeps the cache below its limit: removes entries that are not in use, the least recently used
//! first.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What is known of an entry's file, beside it.
pub(super) const NOTE: &str = "note.json";
/// How names of entries begin that are not finished.
pub(super) const UNFINISHED: &str = "unfinished-";
/// The directory of the locks of entries that are being made.
pub(super) const MAKING: &str = "making";
/// No process takes that long to finish one.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

struct Old {
    place: PathBuf,
    used: SystemTime,
    size: u64,
}

/// Brings what lies in this directory below the limit, as far as it is not in use. What cannot be
/// cleared away stays.
pub(super) fn shrink_to(directory: &Path, limit: u64) {
    let Ok(found) = fs::read_dir(directory) else { return };
    let mut entries = Vec::new();
    let is_entry = |path: &PathBuf| path.is_dir() && !path.ends_with(MAKING);
    for place in found.flatten().map(|entry| entry.path()).filter(is_entry) {
        let size = fs::read_dir(&place)
            .map_or(0, |files| files.flatten().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum());
        let note = fs::metadata(place.join(NOTE)).or_else(|_| fs::metadata(&place));
        let Ok(used) = note.and_then(|note| note.modified()) else { continue };
        let unfinished =
            place.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()));
        if !unfinished {
            entries.push(Old { place, used, size });
        } else if used.elapsed().is_ok_and(|age| age > ABANDONED_AFTER) {
            let _ = fs::remove_dir_all(place);
        }
    }
    entries.sort_by_key(|entry| entry.used);
    let mut total: u64 = entries.iter().map(|entry| entry.size).sum();
    for entry in entries {
        if total <= limit {
            break;
        }
        let Ok(lock) = File::open(&entry.place) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            && fs::remove_dir_all(&entry.place).is_ok()
        {
            total -= entry.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cache, Entry, Key, Made};
    use std::ffi::OsStr;

    fn get(cache: &Cache, key: &str) -> Entry<()> {
        let make = || Ok::<_, std::io::Error>(Made { bytes: vec![0; 4000], note: () });
        cache.get(&Key::of(&[key.as_bytes()]), OsStr::new("prog"), make).unwrap()
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_what_is_in_use_stays() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), 10_000).unwrap();
        let kept = get(&cache, "a");
        let gone = get(&cache, "b").file;
        let used = get(&cache, "c").file;
        assert!(!gone.exists() && kept.file.exists() && used.exists());
        assert!(get(&cache, "a").cached && get(&cache, "c").cached && !get(&cache, "b").cached);
    }
}
