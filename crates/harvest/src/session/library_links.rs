//! Where loaders find rewritten libraries: for each program a directory of links, named as the
//! program asks for them.
//!
//! ```text
//!  gleaner/twins/unfinished-XXXXXX/0/libz.so.1 ─► gleaner/twins/KEY/libz.so.1.3.1
//! ```

use super::participants::Participants;
use super::rewritten_file::{RewrittenFile, entry};
use crate::find::library::LinkedLibrary;
use crate::find::linked::Chosen;
use crate::find::program::Program;
use crate::launch::Module;
use image::libraries::{self, Libraries};
use store::cache::Cache;

use records::plan::Role;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory for each program that has rewritten libraries; gone with this.
#[derive(Debug, Default)]
pub(super) struct LibraryLinks {
    directory: Option<TempDir>,
    each: Vec<ProgramLinks>,
}

#[derive(Debug)]
struct ProgramLinks {
    program: PathBuf,
    role: Role,
    directory: PathBuf,
}

impl LibraryLinks {
    pub(super) fn of(
        participants: &Participants,
        files: &[RewrittenFile],
        cache: &Cache,
    ) -> io::Result<Self> {
        let mut links = Self::default();
        for (program, role) in participants.programs() {
            let modules = modules(program, role, files);
            if modules.is_empty() || links.directory(&program.file, role).is_some() {
                continue;
            }
            let directory = match &links.directory {
                Some(directory) => directory,
                None => links.directory.insert(directory_for_this_run(cache)?),
            };
            let place = directory.path().join(links.each.len().to_string());
            let named = |why: io::Error| {
                io::Error::new(why.kind(), format!("{}: {}", place.display(), records::plain(&why)))
            };
            std::fs::create_dir(&place).map_err(named)?;
            for (library, file) in modules {
                match symlink(file, place.join(&library.name)) {
                    // Asked for twice by one name.
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(named(error)),
                    _ => {}
                }
            }
            let program = program.file.clone();
            links.each.push(ProgramLinks { program, role, directory: place });
        }
        Ok(links)
    }

    fn directory(&self, file: &Path, role: Role) -> Option<&Path> {
        let links = self.each.iter().find(|links| links.program == file && links.role == role);
        links.map(|links| links.directory.as_path())
    }

    /// What a program's loader has to be told, and what it will find there; `beside` is what it has
    /// to be told in any case.
    pub(super) fn libraries(
        &self,
        program: &Program,
        role: Role,
        beside: Option<Libraries>,
        files: &[RewrittenFile],
    ) -> (Option<Libraries>, Vec<Module>) {
        let Some(place) = self.directory(&program.file, role) else { return (beside, Vec::new()) };
        let modules = modules(program, role, files).into_iter().map(|(library, file)| Module {
            name: place.join(&library.name),
            file: file.to_owned(),
            original: library.file.clone(),
        });
        (Some(Libraries::with_first(beside, place)), modules.collect())
    }
}

/// A new directory beside the cache's entries; elsewhere where the loader's variable cannot name
/// that. It is in use for no longer than programs take to begin.
fn directory_for_this_run(cache: &Cache) -> io::Result<TempDir> {
    if libraries::can_be_named(cache.directory()) {
        cache.unfinished()
    } else {
        records::temporary_directory("gleaner-libraries-")
    }
}

/// A program's libraries that are found there, and what is in their places: those that are
/// rewritten first, in their order.
fn modules<'a>(
    program: &'a Program,
    role: Role,
    files: &'a [RewrittenFile],
) -> Vec<(&'a LinkedLibrary, &'a Path)> {
    let Chosen { rewritten, beside } = &program.linked;
    let rewritten = rewritten
        .iter()
        .filter_map(|library| Some((library, entry(files, &library.file, role)?.file.as_path())));
    let mut found: Vec<(&LinkedLibrary, &Path)> = rewritten.collect();
    if !found.is_empty() {
        let as_they_are = beside.iter().filter(|library| found.iter().all(|(other, _)| other != library));
        let as_they_are: Vec<_> = as_they_are.map(|library| (library, library.file.as_path())).collect();
        found.extend(as_they_are);
    }
    found
}
