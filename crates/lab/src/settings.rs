//! Host settings that are changed for a measurement, and put back whatever happens.
//!
//! A [`Change`] remembers the original of a setting and puts it back when it is dropped: at the
//! end, after Ctrl-C (which stops cleanly), on a panic. Before a setting is changed, the
//! [watchdog](crate::watchdog), a process of its own, has acknowledged the original; it puts back
//! what is left if this process dies of whatever cause. Only one process on a machine may change
//! settings at a time, so that no process takes another's changed value for the original.
//!
//! To add a setting: a [`SettingPlace`] if it is a file or a register; a function like
//! [`reserve_huge_pages`] if more is needed than writing.

pub use crate::setting_place::SettingPlace;
use crate::watchdog::{self, Watchdog};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use units::Bytes;

/// Why a setting stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error("{0} cannot be read: {1}")]
    Unreadable(SettingPlace, io::Error),
    #[error("{0} cannot be changed: {1}")]
    Unchangeable(SettingPlace, io::Error),
    #[error("another process is changing settings of this machine{}", .0.map_or(String::new(), |p| format!(" (process {p})")))]
    InUse(Option<u32>),
    #[error("{0} would not be put back if this process died: {1}")]
    NoWatchdog(SettingPlace, io::Error),
    #[error("{0}")]
    NotGranted(String),
}

/// Where the machine-wide lock and journal of changed settings is.
pub fn default_journal() -> PathBuf {
    PathBuf::from("/run/gleaner/settings")
}

/// A setting that is changed as long as this lives.
#[derive(Debug)]
pub struct Change {
    place: SettingPlace,
    original: Vec<u8>,
    watchdog: Arc<Watchdog>,
    number: u64,
    restored: bool,
}

impl Change {
    /// Makes a setting changeable; it has its value until [`Change::set`].
    pub fn of(place: SettingPlace) -> Result<Self, SettingError> {
        Self::with_journal(place, &default_journal())
    }

    /// The same with the lock and the journal elsewhere.
    pub fn with_journal(place: SettingPlace, journal: &Path) -> Result<Self, SettingError> {
        let watchdog = watchdog(journal).map_err(|busy| match busy {
            watchdog::NoWatchdog::Taken(pid) => SettingError::InUse(pid),
            watchdog::NoWatchdog::Broken(error) => SettingError::NoWatchdog(place.clone(), error),
        })?;
        // Read under the lock: before, it may have been the changed value of another process.
        let original = place.read().map_err(|e| SettingError::Unreadable(place.clone(), e))?;
        let number =
            watchdog.remember(&place, &original).map_err(|e| SettingError::NoWatchdog(place.clone(), e))?;
        Ok(Self { place, original, watchdog, number, restored: false })
    }

    pub fn place(&self) -> &SettingPlace {
        &self.place
    }

    pub fn original(&self) -> &[u8] {
        &self.original
    }

    /// Sets it and returns what is there afterwards, which need not be what was asked for.
    pub fn set(&self, value: &[u8]) -> Result<Vec<u8>, SettingError> {
        self.place.write(value).map_err(|e| SettingError::Unchangeable(self.place.clone(), e))?;
        self.place.read().map_err(|e| SettingError::Unreadable(self.place.clone(), e))
    }

    /// Puts the original back now, and says if that failed.
    pub fn restore(mut self) -> Result<(), SettingError> {
        self.put_back().map_err(|e| SettingError::Unchangeable(self.place.clone(), e))
    }

    fn put_back(&mut self) -> io::Result<()> {
        if !self.restored {
            self.restored = true;
            // If this fails, the watchdog still has it on its list and tries again when this
            // process ends.
            self.place.write_verified(&self.original)?;
            self.watchdog.forget(self.number);
        }
        Ok(())
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Err(error) = self.put_back() {
            let (place, original) = (&self.place, self.place.show(&self.original));
            let _ = writeln!(
                io::stderr(),
                "gleaner: WARNING: {place} could not be set back to {original}: {error}\n\
                 gleaner: it will be tried again at the end; if a warning follows, set it back by hand"
            );
        }
    }
}

/// The process's one watchdog of each journal, as long as anything is changed.
fn watchdog(journal: &Path) -> Result<Arc<Watchdog>, watchdog::NoWatchdog> {
    static RUNNING: Mutex<Vec<Weak<Watchdog>>> = Mutex::new(Vec::new());
    let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    running.retain(|w| w.strong_count() > 0);
    if let Some(found) = running.iter().filter_map(Weak::upgrade).find(|w| w.journal() == journal) {
        return Ok(found);
    }
    let started = Arc::new(Watchdog::start(journal)?);
    running.push(Arc::downgrade(&started));
    Ok(started)
}

/// Reserved huge pages; given back when this is dropped. Memory made of them must be dropped
/// before.
#[derive(Debug)]
pub struct HugePages {
    /// Free ones that may be used now.
    pub free: u64,
    _change: Option<Change>,
}

/// Makes sure that `count` free huge pages of `size` are there, or changes nothing and says why
/// not.
pub fn reserve_huge_pages(size: Bytes, count: u64) -> Result<HugePages, SettingError> {
    reserve_huge_pages_under(Path::new("/"), size, count, &default_journal())
}

/// The same below a root, so that it can be tried on any tree.
pub fn reserve_huge_pages_under(
    root: &Path,
    size: Bytes,
    count: u64,
    journal: &Path,
) -> Result<HugePages, SettingError> {
    let pool = root.join(format!("sys/kernel/mm/hugepages/hugepages-{}kB", size.0 >> 10));
    let number = |name: &str| -> Result<u64, SettingError> {
        let place = SettingPlace::text(pool.join(name));
        let text = fs::read_to_string(&place.file).map_err(|e| SettingError::Unreadable(place.clone(), e))?;
        text.trim().parse().map_err(|e| SettingError::Unreadable(place, io::Error::other(e)))
    };
    if !pool.exists() {
        return Err(SettingError::NotGranted(format!("the kernel has no pool of {size} pages")));
    }
    // Pages that others have reserved but not yet touched are free by name only.
    let free =
        || Ok::<u64, SettingError>(number("free_hugepages")?.saturating_sub(number("resv_hugepages")?));
    if free()? >= count {
        return Ok(HugePages { free: free()?, _change: None });
    }
    // If asked for more than is free, the kernel takes memory from all other processes.
    let available = available_memory(root).ok_or_else(|| {
        SettingError::NotGranted("the kernel does not say how much memory is free".to_owned())
    })?;
    let more = count.saturating_sub(free()?);
    if more.saturating_mul(size.0) > available.0 / 2 {
        return Err(SettingError::NotGranted(format!(
            "{more} pages of {size} are more than half of the memory that is free ({available})"
        )));
    }
    let change = Change::with_journal(SettingPlace::text(pool.join("nr_hugepages")), journal)?;
    let (before, had) = (number("nr_hugepages")?, free()?);
    let wanted = before + count.saturating_sub(had);
    change.set(format!("{wanted}\n").as_bytes())?;
    let granted = number("nr_hugepages")?;
    if granted < wanted {
        // Dropping the change gives the part back.
        let got = had + granted.saturating_sub(before);
        return Err(SettingError::NotGranted(format!(
            "the kernel could make only {got} of {count} pages of {size}: free memory is too little or in too small \
             pieces"
        )));
    }
    Ok(HugePages { free: count.max(free()?), _change: Some(change) })
}

fn available_memory(root: &Path) -> Option<Bytes> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    Some(Bytes(line.split_whitespace().next()?.parse::<u64>().ok()? << 10))
}
