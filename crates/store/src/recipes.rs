//! Recipes, each of one build of a program, with the files that it needs: a directory that is made
//! whole and takes the place of an older one.
//!
//! ```text
//! recipes/BUILD/              recipe.json; beside it rewritten files and the library
//! recipes/BUILD-CHECKSUM/     the same for a recipe of a file elsewhere
//! recipes/paths/PATH          the build of the program that was last tried at this path
//! ```

use crate::cache::checksum;
use crate::directory;
use records::Document;
use records::recipe::Recipe;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const RECORD: &str = "recipe.json";

/// A recipe that is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Where its files are.
    pub directory: PathBuf,
    pub document: Document<Recipe>,
}

fn base() -> Option<PathBuf> {
    Some(directory::of_user()?.join("recipes"))
}

/// The recipe of this build, if it is there, sound, and nobody else can have written it.
pub fn find(build: &str) -> Option<Kept> {
    find_in(&base()?, build)
}

/// The build of the program that was tried last at this path.
pub fn build_at(path: &str) -> Option<String> {
    build_in(&base()?, path)
}

/// Keeps a recipe; `write` makes its files in the directory that it is told.
pub fn keep(
    document: &Document<Recipe>,
    write: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let base = base().ok_or(directory::NO_DIRECTORY)?;
    keep_in(&base, document, write)
}

/// The files of a recipe that lies elsewhere, beside those that are kept: made at its first use.
pub fn beside(
    document: &Document<Recipe>,
    write: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let base = base().ok_or(directory::NO_DIRECTORY)?;
    let name = format!("{}-{}", document.body.program.file.build, checksum(document.to_json().as_bytes()));
    let made = records::check_trusted_directory(&base.join(&name));
    made.or_else(|_| made_in(&base, &name, document, write))
}

/// Takes away what is kept of this build; whether there was anything.
pub fn forget(build: &str) -> io::Result<bool> {
    let Some(base) = base() else { return Ok(false) };
    forget_in(&base, build)
}

/// All that are kept.
pub fn all() -> Vec<Kept> {
    let Some(base) = base() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(&base) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names.iter().filter_map(|name| find_in(&base, name.to_str()?)).collect()
}

/// The recipe that this file was written for.
pub fn of_file(file: &Path) -> Option<Kept> {
    let base = records::check_trusted_directory(&base()?).ok()?;
    let name = file.strip_prefix(&base).ok()?.iter().next()?;
    let directory = records::check_trusted_directory(&base.join(name)).ok()?;
    let document: Document<Recipe> = records::read(&directory.join(RECORD)).ok()?;
    Some(Kept { directory, document })
}

fn find_in(base: &Path, build: &str) -> Option<Kept> {
    if !is_name(build) {
        return None;
    }
    let directory = records::check_trusted_directory(&base.join(build)).ok()?;
    let document: Document<Recipe> = records::read(&directory.join(RECORD)).ok()?;
    (document.body.program.file.build == build).then_some(Kept { directory, document })
}

fn build_in(base: &Path, path: &str) -> Option<String> {
    let paths = records::check_trusted_directory(&base.join("paths")).ok()?;
    fs::read_to_string(paths.join(checksum(path.as_bytes()))).ok()
}

fn keep_in(
    base: &Path,
    document: &Document<Recipe>,
    write: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let file = &document.body.program.file;
    let place = made_in(base, &file.build, document, write)?;
    let paths = base.join("paths");
    let paths = records::make_private_directory(&paths)
        .map_err(|e| format!("{}: {}", paths.display(), records::plain(&e)))?;
    records::write_bytes_atomically(&paths.join(checksum(file.path.as_bytes())), file.build.as_bytes())
        .map_err(|e| e.to_string())?;
    Ok(place)
}

/// A directory of this name, whole; an older one of that name is gone then.
fn made_in(
    base: &Path,
    name: &str,
    document: &Document<Recipe>,
    write: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    if !is_name(name) {
        return Err(format!("'{name}' is no build"));
    }
    let failed = |e: &io::Error| format!("{}: {}", base.display(), records::plain(e));
    let base = &records::make_private_directory(base).map_err(|e| failed(&e))?;
    let made = records::temporary_directory_in(base, "new-").map_err(|e| failed(&e))?;
    write(made.path())?;
    records::write_atomically(&made.path().join(RECORD), document).map_err(|e| e.to_string())?;
    let place = base.join(name);
    removed(&place).map_err(|e| failed(&e))?;
    fs::rename(made.path(), &place).map_err(|e| failed(&e))?;
    // It has another name now.
    let _ = made.keep();
    Ok(place)
}

fn removed(directory: &Path) -> io::Result<bool> {
    match fs::remove_dir_all(directory) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn forget_in(base: &Path, build: &str) -> io::Result<bool> {
    if !is_name(build) {
        return Ok(false);
    }
    if let Some(kept) = find_in(base, build) {
        let path = &kept.document.body.program.file.path;
        if build_in(base, path).as_deref() == Some(build) {
            let _ = fs::remove_file(base.join("paths").join(checksum(path.as_bytes())));
        }
    }
    let mut was_there = removed(&base.join(build))?;
    let Ok(entries) = fs::read_dir(base) else { return Ok(was_there) };
    let of_files = format!("{build}-");
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&of_files))
    {
        was_there |= removed(&entry.path())?;
    }
    Ok(was_there)
}

/// Whether it can be the name of a directory: builds are hexadecimal digits.
fn is_name(build: &str) -> bool {
    !build.is_empty()
        && build.len() <= 200
        && build.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(build: &str) -> Document<Recipe> {
        let fixture = include_bytes!("../../records/fixtures/recipe.v1.two-changes.json");
        let mut document: Document<Recipe> = records::parse(fixture).expect("a fixture");
        document.body.program.file.build = build.to_owned();
        document
    }

    #[test]
    fn a_recipe_is_there_until_it_is_forgotten() {
        let directory = tempfile::tempdir().expect("a directory");
        let base = directory.path().join("recipes");
        let write = |place: &Path| fs::write(place.join("file"), "1").map_err(|e| e.to_string());
        let one = recipe("0a");
        let place = keep_in(&base, &one, &write).expect("it is kept");
        assert_eq!(place, base.canonicalize().unwrap().join("0a"));
        let found = find_in(&base, "0a").expect("it is there");
        assert_eq!(
            (found.document, fs::read_to_string(place.join("file")).unwrap()),
            (one.clone(), "1".into())
        );
        let path = &one.body.program.file.path;
        assert_eq!(build_in(&base, path).as_deref(), Some("0a"));
        // Built anew: both are kept, and the path is that of the newer one.
        keep_in(&base, &recipe("0b"), &write).expect("it is kept");
        assert_eq!(build_in(&base, path).as_deref(), Some("0b"));
        assert!(forget_in(&base, "0b").unwrap() && !forget_in(&base, "0b").unwrap());
        assert_eq!((find_in(&base, "0b").is_none(), build_in(&base, path)), (true, None));
        let left: Vec<_> = fs::read_dir(&base).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}: one recipe, and the paths");
    }

    #[test]
    fn what_fails_leaves_the_old_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let base = directory.path().join("recipes");
        keep_in(&base, &recipe("0a"), &|_| Ok(())).expect("it is kept");
        let failed = keep_in(&base, &recipe("0a"), &|_| Err("no space".to_owned()));
        assert_eq!(failed, Err("no space".to_owned()));
        assert!(find_in(&base, "0a").is_some());
        assert!(keep_in(&base, &recipe("../x"), &|_| Ok(())).is_err() && find_in(&base, "..").is_none());
    }
}
