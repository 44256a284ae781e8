//! Records kept by what they are of, until a newer one of the same takes their place: the last
//! profile of a program. What was found out once, later runs may go by.

use crate::directory;
use records::{Document, Record};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Programs, their input and machines change.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Of each kind; the oldest go first.
const MOST: usize = 256;

/// The record of this key, if it is there, sound, and not too old.
pub fn find<R: Record>(key: &str) -> Option<Document<R>> {
    find_at(&place::<R>(key)?)
}

/// Keeps the record by its key. Where that is not possible, later runs know less.
pub fn keep<R: Record>(key: &str, document: &Document<R>) {
    if let Some(path) = place::<R>(key) {
        let _ = keep_at(&path, document);
    }
}

fn place<R: Record>(key: &str) -> Option<PathBuf> {
    Some(directory::of_user()?.join("kept").join(R::KIND).join(format!("{key}.json")))
}

fn find_at<R: Record>(path: &Path) -> Option<Document<R>> {
    records::check_trusted_directory(path.parent()?).ok()?;
    if directory::age(path)? > KEPT_FOR { None } else { records::read(path).ok() }
}

fn keep_at<R: Record>(path: &Path, document: &Document<R>) -> std::io::Result<()> {
    let folder = &records::make_private_directory(path.parent().unwrap_or(Path::new(".")))?;
    let path = &folder.join(path.file_name().unwrap_or_default());
    let mut others: Vec<(SystemTime, PathBuf)> = fs::read_dir(folder)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    others.sort();
    let too_many = (others.len() + 1).saturating_sub(MOST);
    for (_, oldest) in &others[..too_many.min(others.len())] {
        let _ = fs::remove_file(oldest);
    }
    records::write_atomically(path, document).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::run::Run;

    #[test]
    fn the_newest_are_kept_for_a_week() {
        let directory = tempfile::tempdir().expect("a directory");
        let fixture = include_bytes!("../../records/fixtures/run.v1.one-scavenger.json");
        let document: Document<Run> = records::parse(fixture).expect("a fixture");
        let path = |number: usize| directory.path().join("kept/run").join(format!("{number}.json"));
        for number in 0..MOST + 2 {
            keep_at(&path(number), &document).expect("it is kept");
            let then = SystemTime::now() - Duration::from_secs((MOST + 2 - number) as u64);
            fs::File::open(path(number)).and_then(|file| file.set_modified(then)).expect("its time");
        }
        assert_eq!(find_at::<Run>(&path(0)), None, "the oldest made space");
        assert_eq!(find_at(&path(MOST + 1)), Some(document));
        let long_ago = SystemTime::now() - 2 * KEPT_FOR;
        fs::File::open(path(9)).and_then(|file| file.set_modified(long_ago)).expect("its time");
        assert_eq!(find_at::<Run>(&path(9)), None, "it is too old");
        fs::write(path(10), "damaged").expect("written");
        assert_eq!(find_at::<Run>(&path(10)), None);
    }
}
