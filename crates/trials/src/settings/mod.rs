//! What the settings of a recipe are made of: files that are written once, and what a program is
//! started with.
//!
//! ```text
//! form         a way of making a change: its settings
//! prepared     what a run needs
//! prefetched   files whose loads are prefetched, rewritten and proven
//! own_prefetches   prefetches that the program has by itself
//! library      the library that changes memory and CPUs inside the program, and what it is asked
//! page         what it says that it did
//! allocators   other allocators, where they are installed
//! huge         huge pages: for malloc, for what is mapped, for code
//! own_lines    cache lines of their own for what a site allocates
//! placed       threads on other CPUs, memory on other nodes
//! tunables     what glibc's malloc lets one choose
//! ```
//!
//! To add a setting: a variant of `records::recipe::Setting`; its words in [`says`]; what it needs
//! in [`write`] and [`start`]; the change that proposes it, in `change.rs`.

pub(crate) mod allocators;
pub(crate) mod form;
pub(crate) mod huge;
pub(crate) mod library;
pub(crate) mod own_lines;
pub(crate) mod own_prefetches;
pub(crate) mod page;
pub(crate) mod placed;
pub(crate) mod prefetched;
pub(crate) mod prepared;
pub(crate) mod tunables;

use crate::program::Program;
use prepared::{Prepared, Start};
use records::recipe::{Ahead, BuiltFile, Setting};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The files that settings need, written into this directory.
pub fn write(settings: &[Setting], directory: &Path) -> Result<(), String> {
    prefetched::write(settings, directory)?;
    library::write(settings, directory)
}

/// How the program is started with them, once the files are in this directory.
pub fn start(settings: &[Setting], directory: &Path, program: &Program) -> Start {
    let mut start = Start::default();
    prefetched::start(settings, directory, program, &mut start);
    // The first of preloaded libraries is ours, which passes on to an allocator behind it.
    allocators::start(settings, &mut start);
    library::start(settings, directory, &mut start);
    tunables::start(settings, &mut start);
    start
}

/// The files of other packages that settings are made for.
pub fn files(settings: &[Setting]) -> Vec<BuiltFile> {
    let mut files = Vec::new();
    for setting in settings {
        let file = match setting {
            Setting::Prefetch(load) => &load.file,
            Setting::WithoutPrefetches { file, .. } => file,
            Setting::Allocator { library, .. } => library,
            _ => continue,
        };
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    files
}

/// Both at once, in a directory that goes when the runs are over.
pub(crate) fn prepare(settings: &[Setting], program: &Program) -> Result<Prepared, String> {
    let files = records::temporary_directory("gleaner-").map_err(|e| records::plain(&e))?;
    // The program may run as another user.
    fs::set_permissions(files.path(), PermissionsExt::from_mode(0o711)).map_err(|e| records::plain(&e))?;
    write(settings, files.path())?;
    let start = start(settings, files.path(), program);
    let page = library::page(settings, files.path());
    Ok(Prepared { start, page, files: Some(files) })
}

/// A setting in words that do not hang on this machine's paths.
pub fn says(setting: &Setting) -> String {
    match setting {
        Setting::Prefetch(load) => {
            let ahead = match load.ahead {
                Ahead::Bytes(bytes) => format!("{bytes} bytes ahead"),
                Ahead::Steps(steps) => format!("{steps} steps of its index ahead"),
            };
            let function = load.function.as_deref().unwrap_or("?");
            let name = Path::new(&load.file.path).file_name().unwrap_or(OsStr::new("?"));
            format!(
                "a prefetch ahead of the load at {:#x} in {function} ({}), {ahead}",
                load.address,
                name.display()
            )
        }
        Setting::WithoutPrefetches { file, function, addresses } => {
            let name = Path::new(&file.path).file_name().unwrap_or(OsStr::new("?"));
            let function = function.as_deref().unwrap_or("?");
            let number = if addresses.len() == 1 {
                "its own prefetch".to_owned()
            } else {
                format!("its own {} prefetches", addresses.len())
            };
            format!("without {number} in {function} ({})", name.display())
        }
        Setting::MallocOnHugePages => "huge pages for malloc's memory".to_owned(),
        Setting::MappedOnHugePages { .. } => "huge pages for what the program maps itself".to_owned(),
        Setting::CodeOnHugePages => "huge pages for code".to_owned(),
        Setting::Tunable { name, value } => format!("{name}={value}"),
        Setting::Allocator { name, .. } => format!("{name} for malloc"),
        Setting::OwnLines { object, alignment, .. } => {
            format!("cache lines of their own for {object}: {alignment} bytes")
        }
        Setting::OnCpus { says, .. } => says.clone(),
        Setting::OverNodes { nodes } => {
            format!("memory spread over {} nodes, a page on each in turn", nodes.count_ones())
        }
    }
}
