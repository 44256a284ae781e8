//! Sides as the command line names them: files, directories, lists with commas.

use crate::failure::Refusal;
use ::compare::{Member, Side};
use std::path::{Path, PathBuf};

pub(crate) fn read<'a>(arguments: impl Iterator<Item = &'a String>) -> anyhow::Result<Vec<Side>> {
    arguments.map(side).collect()
}

fn side(argument: &String) -> anyhow::Result<Side> {
    let whole = Path::new(argument);
    // A name with a comma in it is that file's, if there is such a file.
    let parts: Vec<&Path> =
        if whole.exists() { vec![whole] } else { argument.split(',').map(Path::new).collect() };
    let mut runs = Vec::new();
    for part in parts {
        if part.as_os_str().is_empty() {
            return Err(Refusal::wrong_use(argument, "one side of a comma is empty").into());
        }
        for path in files(part)? {
            let record = records::read_any(&path)?;
            runs.push(Member { name: path.display().to_string(), record });
        }
    }
    Ok(Side { name: argument.clone(), runs })
}

/// The file itself, or the records that a directory holds.
fn files(path: &Path) -> Result<Vec<PathBuf>, Refusal> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let refuse = |why: &str| Refusal::wrong_use(path.display().to_string(), why);
    let entries = std::fs::read_dir(path).map_err(|error| refuse(&records::plain(&error)))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json") && file.is_file());
    files.sort();
    if files.is_empty() {
        Err(refuse("no records (files named *.json) in this directory"))
    } else {
        Ok(files)
    }
}
