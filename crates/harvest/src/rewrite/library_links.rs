//! Where loaders find rewritten libraries: for each program a directory of links, by the names that it asks for. What they lead to lies in
//! the cache under names of its own.

use crate::find::libraries::Libraries;
use crate::find::linked::{Chosen, Linked};
use crate::find::program::Program;
use crate::launch::Module;
use crate::rewrite::cache::{Cache, Entry};
use crate::session::{Cast, entry};
use records::plan::Role;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory for each program that has rewritten libraries; gone with this.
#[derive(Debug, Default)]
pub(crate) struct Shelves {
    directory: Option<TempDir>,
    each: Vec<(PathBuf, Role, PathBuf)>,
}

impl Shelves {
    pub(crate) fn of(cast: &Cast, entries: &[(PathBuf, Role, Entry)], cache: &Cache) -> io::Result<Self> {
        let mut shelves = Self::default();
        for (program, role) in cast.programs() {
            let modules = modules(program, role, entries);
            if modules.is_empty() || shelves.place(&program.file, role).is_some() {
                continue;
            }
            let directory = match &shelves.directory {
                Some(directory) => directory,
                None => shelves.directory.insert(cache.directory_for_this_run()?),
            };
            let place = directory.path().join(shelves.each.len().to_string());
            std::fs::create_dir(&place)?;
            for (library, file) in modules {
                match symlink(file, place.join(&library.name)) {
                    // Asked for twice by one name.
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
            }
            shelves.each.push((program.file.clone(), role, place));
        }
        Ok(shelves)
    }

    fn place(&self, file: &Path, role: Role) -> Option<&Path> {
        self.each.iter().find(|(of, its, _)| of == file && *its == role).map(|(.., place)| place.as_path())
    }

    /// What a program's loader has to be told, and what it will find there; `beside` is what it has to be told in any case.
    pub(crate) fn libraries(
        &self,
        program: &Program,
        role: Role,
        beside: Option<Libraries>,
        entries: &[(PathBuf, Role, Entry)],
    ) -> (Option<Libraries>, Vec<Module>) {
        let Some(place) = self.place(&program.file, role) else { return (beside, Vec::new()) };
        let modules = modules(program, role, entries).into_iter().map(|(library, file)| Module {
            name: place.join(&library.name),
            file: file.to_owned(),
            original: library.file.clone(),
        });
        (Some(Libraries::with_first(beside, place)), modules.collect())
    }
}

/// A program's libraries that are found there, and what is in their places: those that are rewritten first, in their order.
fn modules<'a>(
    program: &'a Program,
    role: Role,
    entries: &'a [(PathBuf, Role, Entry)],
) -> Vec<(&'a Linked, &'a Path)> {
    let Chosen { rewritten, beside } = &program.linked;
    let rewritten = rewritten
        .iter()
        .filter_map(|library| Some((library, entry(entries, &library.file, role)?.file.as_path())));
    let mut found: Vec<(&Linked, &Path)> = rewritten.collect();
    if !found.is_empty() {
        let as_they_are = beside.iter().filter(|library| found.iter().all(|(other, _)| other != library));
        let as_they_are: Vec<_> = as_they_are.map(|library| (library, library.file.as_path())).collect();
        found.extend(as_they_are);
    }
    found
}
