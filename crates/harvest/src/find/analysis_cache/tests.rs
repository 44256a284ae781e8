use super::seen as seen_by;
use super::*;
use crate::find::candidates::look_through;
use crate::find::checksums::Checksums;
use std::process::Command;

fn seen(cache: &Cache, path: &str, role: Role, data: &[u8]) -> Result<Subject, image::ImageError> {
    seen_by(cache, path, role, &Checksums::of(data, None), || look_through(path, role, data, None))
}

const TEXT: &str = r"
struct node { struct node *next; long value; };
long list(struct node *p) { long s = 0; for (; p; p = p->next) s += p->value; return s; }
void until(volatile int *f) { while (!*f) __builtin_ia32_pause(); }
";

fn library() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (source, object) = (directory.path().join("x.c"), directory.path().join("x.so"));
    std::fs::write(&source, TEXT).unwrap();
    let status =
        Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source).status();
    assert!(status.expect("a C compiler").success());
    std::fs::read(&object).unwrap()
}

/// The files of candidates in a cache.
fn kept(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path().join("seen"));
    entries.filter(|file| file.exists()).collect()
}

#[test]
fn what_was_seen_once_is_the_same_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path(), store::cache::LIMIT).unwrap();
    let data = library();
    for role in [Role::Primary, Role::Scavenger] {
        let looked = look_through("x.so", role, &data, None).unwrap();
        assert!(!looked.candidates.is_empty());
        assert_eq!(seen(&cache, "x.so", role, &data).unwrap(), looked);
        assert_eq!(seen(&cache, "x.so", role, &data).unwrap(), looked);
    }
    assert_eq!(kept(directory.path()).len(), 2);
    // It is read, wherever the file lies now.
    for file in kept(directory.path()) {
        let note = file.with_file_name("note.json");
        let text = std::fs::read_to_string(&note).unwrap().replace("\"list\"", "\"renamed\"");
        std::fs::write(&note, text).unwrap();
    }
    let other = seen(&cache, "y.so", Role::Primary, &data).unwrap();
    assert_eq!(other.path, "y.so");
    assert!(other.names.iter().any(|function| function.name.as_deref() == Some("renamed")));
}

#[test]
fn what_cannot_be_kept_can_still_be_seen() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(&directory.path().join("cache"), store::cache::LIMIT).unwrap();
    let data = library();
    let looked = look_through("x.so", Role::Primary, &data, None).unwrap();
    // Rows that are none, though their checksum is right.
    let key = key(Role::Primary, &Checksums::of(&data, None));
    let wrong = || Ok::<_, std::io::Error>(Made { bytes: b"[1]".to_vec(), ..to_keep(&looked)? });
    assert!(!cache.get(&key, OsStr::new(NAME), wrong).unwrap().cached);
    assert_eq!(seen(&cache, "x.so", Role::Primary, &data).unwrap(), looked);
    // No cache any more.
    std::fs::remove_dir_all(directory.path().join("cache")).unwrap();
    assert_eq!(seen(&cache, "x.so", Role::Primary, &data).unwrap(), looked);
    let why = seen(&cache, "x.so", Role::Primary, b"no file").unwrap_err().to_string();
    assert_eq!(why, look_through("x.so", Role::Primary, b"no file", None).unwrap_err().to_string());
}
