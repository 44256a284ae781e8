//! The records that the command line names: files, directories, standard input. Those that are no
//! records are named on standard error and left out.

use crate::failure::{self, Exit, Refusal};
use export::fleet::Source;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Reads one record after the other.
pub(super) struct Inputs<'a> {
    paths: &'a [PathBuf],
    seen: HashSet<String>,
    pub(super) read: usize,
    pub(super) left_out: usize,
    /// Records that were named twice; the first counts.
    pub(super) twice: usize,
}

impl<'a> Inputs<'a> {
    pub(super) fn new(paths: &'a [PathBuf]) -> Self {
        Self { paths, seen: HashSet::new(), read: 0, left_out: 0, twice: 0 }
    }

    /// Hands over each sound record, with its file.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(&Path, Source) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for path in self.paths {
            let files = if path.is_dir() {
                let files = files_below(path)?;
                if files.is_empty() {
                    let why = "no records (files named *.json) in this directory";
                    self.leave_out(&format!("{}: {why}", path.display()));
                }
                files
            } else {
                vec![path.clone()]
            };
            for file in files {
                match source(&file) {
                    Ok(source) if self.seen.insert(source.name().to_owned()) => {
                        self.read += 1;
                        take(&file, source)?;
                    }
                    Ok(_) => self.twice += 1,
                    Err(why) => self.leave_out(&why),
                }
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, why: &str) {
        self.left_out += 1;
        failure::tell(why);
    }

    /// The exit code: 1 if anything was left out.
    pub(super) fn exit(&self) -> Exit {
        if self.left_out > 0 || self.read == 0 { Exit::Failed } else { Exit::Done }
    }
}

fn source(path: &Path) -> Result<Source, String> {
    let record = records::read_any(path).map_err(|error| error.to_string())?;
    Source::new(record).map_err(|error| format!("{}: {error}", path.display()))
}

/// Files named `*.json` in a directory and those below it, in the order of their names. Links to
/// directories are not followed: they may lead back.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let refuse =
        |error: std::io::Error| Refusal::wrong_use(directory.display().to_string(), records::plain(&error));
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(refuse)? {
        entries.push(entry.map_err(refuse)?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.extend(files_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}
