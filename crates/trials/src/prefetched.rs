//! The file whose load is prefetched: rewritten, proven, and put where the program finds it.

use crate::command::Program;
use crate::prepared::Prepared;
use image::Image;
use image::elf::bytes::hex;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use twin::{Ahead, Mode, Prefetches};

/// A load, as a profile names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefetched {
    pub module: String,
    pub build_id: Option<String>,
    pub address: u64,
    pub function: Option<String>,
    pub walk: Walk,
}

/// How a load goes through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// By this step each time.
    Steps(i64),
    /// Perhaps by what another load reads, which goes by steps itself: the code tells.
    Indexed,
}

/// Steps ahead of the load: from what a few iterations take to what many short ones do.
const STEPS: [i32; 3] = [4, 16, 64];
/// Of a load that is indexed: what it is indexed by must lie in the same page.
const INDEXED_STEPS: [i32; 4] = [8, 16, 32, 64];

pub(crate) fn prepare(load: &Prefetched, program: &Program) -> Result<Vec<Prepared>, String> {
    let path = Path::new(&load.module);
    let data = fs::read(path).map_err(|e| format!("{}: {}", load.module, records::plain(&e)))?;
    let image = Image::parse(&data).map_err(|e| e.to_string())?;
    if image.build_id().map(hex) != load.build_id {
        return Err(format!("{} is another build than the one that was profiled", load.module));
    }
    let steps = if load.walk == Walk::Indexed { &INDEXED_STEPS[..] } else { &STEPS };
    let mut forms = Vec::new();
    let mut refused = None;
    for &steps in steps {
        match form(load, program, path, &data, steps) {
            Ok(form) => forms.push(form),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    refused.filter(|_| forms.is_empty()).map_or(Ok(forms), Err)
}

fn form(
    load: &Prefetched,
    program: &Program,
    path: &Path,
    data: &[u8],
    steps: i32,
) -> Result<Prepared, String> {
    let (ahead, says) = match load.walk {
        Walk::Steps(step) => {
            let bytes = i32::try_from(step.saturating_mul(i64::from(steps)))
                .map_err(|_| "the steps are too far apart".to_owned())?;
            (Ahead::Bytes(bytes), format!("{steps} steps of {step} bytes ahead"))
        }
        Walk::Indexed => (Ahead::Steps(steps), format!("{steps} steps of its index ahead")),
    };
    let wanted: Prefetches = [(load.address, ahead)].into();
    let rewritten = twin::rewrite(data, None, Mode::Prefetch(&wanted)).map_err(|e| e.to_string())?;
    if rewritten.coverage.functions_twinned == 0 {
        return Err("its function cannot be rewritten".to_owned());
    }
    if rewritten.coverage.inserted_bytes == 0 {
        return Err(match load.walk {
            Walk::Steps(_) => "registers alone do not give its address".to_owned(),
            Walk::Indexed => "no load near it reads its index in steps, where registers are free".to_owned(),
        });
    }
    proof::check(data, &rewritten.bytes).map_err(|why| format!("the rewritten file is not proven: {why}"))?;
    let files = records::temporary_directory("gleaner-").map_err(|e| records::plain(&e))?;
    // The program may run as another user.
    fs::set_permissions(files.path(), PermissionsExt::from_mode(0o711)).map_err(|e| records::plain(&e))?;
    let place = files.path().join(path.file_name().unwrap_or(OsStr::new("program")));
    let write = || {
        fs::write(&place, &rewritten.bytes)?;
        fs::set_permissions(&place, PermissionsExt::from_mode(0o755))
    };
    write().map_err(|e| format!("{}: {}", place.display(), records::plain(&e)))?;
    let mut prepared = Prepared { says, ..Prepared::default() };
    if program.file().is_some_and(|file| is_same(&file, path)) {
        prepared.program = Some(place);
    } else {
        prepared.in_front("LD_LIBRARY_PATH", files.path().as_os_str());
    }
    prepared.files = Some(files);
    Ok(prepared)
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).ok().is_some_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}
