//! The file whose load is prefetched: rewritten, proven, and put where the program finds it.

use crate::command::Program;
use crate::prepared::Prepared;
use image::Image;
use image::elf::bytes::hex;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use twin::{Mode, Prefetches};

/// A load, as a profile names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefetched {
    pub module: String,
    pub build_id: Option<String>,
    pub address: u64,
    pub function: Option<String>,
    pub stride: i64,
}

/// Steps ahead of the load: from what a few iterations take to what many short ones do.
const STEPS: [i64; 3] = [4, 16, 64];

pub(crate) fn prepare(load: &Prefetched, program: &Program) -> Result<Vec<Prepared>, String> {
    let path = Path::new(&load.module);
    let data = fs::read(path).map_err(|e| format!("{}: {}", load.module, records::plain(&e)))?;
    let image = Image::parse(&data).map_err(|e| e.to_string())?;
    if image.build_id().map(hex) != load.build_id {
        return Err(format!("{} is another build than the one that was profiled", load.module));
    }
    STEPS.iter().map(|&steps| form(load, program, path, &data, steps)).collect()
}

fn form(
    load: &Prefetched,
    program: &Program,
    path: &Path,
    data: &[u8],
    steps: i64,
) -> Result<Prepared, String> {
    let ahead = i32::try_from(load.stride.saturating_mul(steps))
        .map_err(|_| "the steps are too far apart".to_owned())?;
    let wanted: Prefetches = [(load.address, ahead)].into();
    let rewritten = twin::rewrite(data, None, Mode::Prefetch(&wanted)).map_err(|e| e.to_string())?;
    if rewritten.coverage.functions_twinned == 0 {
        return Err("its function cannot be rewritten".to_owned());
    }
    proof::check(data, &rewritten.bytes).map_err(|why| format!("the rewritten file is not proven: {why}"))?;
    let files = tempfile::tempdir().map_err(|e| records::plain(&e))?;
    let place = files.path().join(path.file_name().unwrap_or(OsStr::new("program")));
    let write = || {
        fs::write(&place, &rewritten.bytes)?;
        fs::set_permissions(&place, PermissionsExt::from_mode(0o755))
    };
    write().map_err(|e| format!("{}: {}", place.display(), records::plain(&e)))?;
    let mut prepared =
        Prepared { says: format!("{steps} steps of {} bytes ahead", load.stride), ..Prepared::default() };
    if program.file().is_some_and(|file| is_same(&file, path)) {
        prepared.program = Some(place);
    } else {
        let mut paths = files.path().as_os_str().to_owned();
        if let Some(before) = std::env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
            paths.push(":");
            paths.push(before);
        }
        prepared.environment = vec![(OsString::from("LD_LIBRARY_PATH"), paths)];
    }
    prepared.files = Some(files);
    Ok(prepared)
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).ok().is_some_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}
