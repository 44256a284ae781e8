//! Files whose loads are prefetched: rewritten, proven, and put where the program finds them.

use super::prepared::Start;
use crate::built::{built, is_as_built};
use crate::program::Program;
use crate::settings::form::Form;
use image::{Image, libraries};
use records::recipe::{Ahead, BuiltFile, PrefetchedLoad, Setting};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use twin::{Mode, Prefetches};

/// A load, as a profile names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefetched {
    pub module: String,
    pub build_id: Option<String>,
    pub address: u64,
    pub function: Option<String>,
    pub walk: Walk,
    /// The number of steps that take as long as the load does, if that is known.
    pub hides_it: Option<f64>,
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

/// The forms in which it is possible.
pub(crate) fn forms(load: &Prefetched) -> Result<Vec<Form>, String> {
    let path = Path::new(&load.module);
    let file = built(path).map_err(|e| format!("{}: {}", load.module, records::plain(&e)))?;
    if load.build_id.as_ref().is_some_and(|id| *id != file.build) {
        return Err(format!("{} is another build than the one that was profiled", load.module));
    }
    let data = fs::read(path).map_err(|e| format!("{}: {}", load.module, records::plain(&e)))?;
    let steps = if load.walk == Walk::Indexed { &INDEXED_STEPS[..] } else { &STEPS };
    let mut forms = Vec::new();
    let mut refused = None;
    for steps in likely_first(steps, load.hides_it) {
        match form(load, &file, &data, steps) {
            Ok(form) => forms.push(form),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    refused.filter(|_| forms.is_empty()).map_or(Ok(forms), Err)
}

/// The steps ahead that are nearest to what is known first: where runs are long, the last ones are
/// not tried. Further ahead is better than too near, as the latency is that of an idle memory.
fn likely_first(steps: &[i32], hides_it: Option<f64>) -> Vec<i32> {
    let mut steps = steps.to_vec();
    if let Some(known) = hides_it {
        let off = |steps: i32| {
            let ratio = (f64::from(steps) / known.max(1.0)).log2();
            if ratio < 0.0 { -2.0 * ratio } else { ratio }
        };
        steps.sort_by(|&one, &other| off(one).total_cmp(&off(other)));
    }
    steps
}

fn form(load: &Prefetched, file: &BuiltFile, data: &[u8], steps: i32) -> Result<Form, String> {
    let (ahead, says) = match load.walk {
        Walk::Steps(step) => {
            let bytes = i32::try_from(step.saturating_mul(i64::from(steps)))
                .map_err(|_| "the steps are too far apart".to_owned())?;
            (Ahead::Bytes(bytes), format!("{steps} steps of {step} bytes ahead"))
        }
        Walk::Indexed => (Ahead::Steps(steps), format!("{steps} steps of its index ahead")),
    };
    let wanted: Prefetches = [(load.address, of_twin(ahead))].into();
    let is_possible = twin::rewrite(data, None, Mode::Prefetch(&wanted)).map_err(|e| e.to_string())?;
    if is_possible.coverage.functions_twinned == 0 {
        return Err("its function cannot be rewritten".to_owned());
    }
    if is_possible.coverage.inserted_bytes == 0 {
        return Err(match load.walk {
            Walk::Steps(_) => "registers alone do not give its address".to_owned(),
            Walk::Indexed => "no load near it reads its index in steps, where registers are free".to_owned(),
        });
    }
    let setting = Setting::Prefetch(PrefetchedLoad {
        file: file.clone(),
        address: load.address,
        function: load.function.clone(),
        ahead,
    });
    Ok(Form::new(&says, vec![setting]))
}

fn of_twin(ahead: Ahead) -> twin::Ahead {
    match ahead {
        Ahead::Bytes(bytes) => twin::Ahead::Bytes(bytes),
        Ahead::Steps(steps) => twin::Ahead::Steps(steps),
    }
}

/// What is prefetched, by file; each file has a number, which is its place in the order.
fn by_file(settings: &[Setting]) -> BTreeMap<&str, (&BuiltFile, Prefetches)> {
    let mut files: BTreeMap<&str, (&BuiltFile, Prefetches)> = BTreeMap::new();
    for setting in settings {
        if let Setting::Prefetch(load) = setting {
            let (_, wanted) = files.entry(&load.file.path).or_insert_with(|| (&load.file, Prefetches::new()));
            wanted.insert(load.address, of_twin(load.ahead));
        }
    }
    files
}

/// The directory of a rewritten file: libraries are found by it.
fn folder(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("rewritten-{number}"))
}

fn place(directory: &Path, number: usize, path: &Path) -> PathBuf {
    folder(directory, number).join(path.file_name().unwrap_or(OsStr::new("program")))
}

/// The places of libraries that a program names by its own place, which is another one now.
fn beside(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("libraries-{number}"))
}

/// Rewrites each file, with all of its prefetches, and proves it.
pub(crate) fn write(settings: &[Setting], directory: &Path) -> Result<(), String> {
    for (number, (file, wanted)) in by_file(settings).values().enumerate() {
        let path = records::path_of(&file.path);
        let failed = |what: &Path, e: &std::io::Error| format!("{}: {}", what.display(), records::plain(e));
        if !is_as_built(file) {
            return Err(format!("{} was built anew meanwhile", file.path));
        }
        let data = fs::read(&path).map_err(|e| failed(&path, &e))?;
        let rewritten = twin::rewrite(&data, None, Mode::Prefetch(wanted)).map_err(|e| e.to_string())?;
        proof::check(&data, &rewritten.bytes)
            .map_err(|why| format!("the rewritten file is not proven: {why}"))?;
        let image = Image::parse(&data).map_err(|e| e.to_string())?;
        let places = libraries::beside(&image, &path)
            .map_err(|()| "the places of its libraries cannot be told to the loader".to_owned())?;
        let place = place(directory, number, &path);
        let written = || {
            fs::create_dir_all(folder(directory, number))?;
            fs::set_permissions(folder(directory, number), PermissionsExt::from_mode(0o755))?;
            if let Some(places) = &places {
                fs::write(beside(directory, number), places.with(None).as_bytes())?;
            }
            fs::write(&place, &rewritten.bytes)?;
            fs::set_permissions(&place, PermissionsExt::from_mode(0o755))
        };
        written().map_err(|e| failed(&place, &e))?;
    }
    Ok(())
}

pub(crate) fn start(settings: &[Setting], directory: &Path, program: &Program, start: &mut Start) {
    for (number, path) in by_file(settings).keys().enumerate() {
        let path = records::path_of(path);
        if program.file().is_some_and(|file| is_same(&file, &path)) {
            start.program = Some(place(directory, number, &path));
            if let Ok(places) = fs::read(beside(directory, number)) {
                start.behind(libraries::VARIABLE, OsStr::from_bytes(&places));
            }
        } else {
            start.in_front(libraries::VARIABLE, folder(directory, number).as_os_str());
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).ok().is_some_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_that_hide_the_latency_are_tried_first() {
        assert_eq!(likely_first(&INDEXED_STEPS, Some(24.0)), [32, 16, 64, 8]);
        assert_eq!(likely_first(&STEPS, Some(0.3)), [4, 16, 64]);
        assert_eq!(likely_first(&STEPS, Some(900.0)), [64, 16, 4]);
        assert_eq!(likely_first(&STEPS, None), STEPS);
    }
}
