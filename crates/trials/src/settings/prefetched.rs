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
use twin::{Mode, Prefetches, Switch};

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
    /// How many bytes ahead of it the program prefetches by itself, and waits all the same.
    pub own_ahead: Option<i64>,
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
    let asked: Vec<(Ahead, String)> =
        likely(steps, load.hides_it).into_iter().filter_map(|steps| ahead(load.walk, steps)).collect();
    let wanted: Prefetches =
        [(load.address, asked.iter().map(|(ahead, _)| of_twin(*ahead)).collect())].into();
    let all = twin::rewrite(&data, None, Mode::Prefetch(&wanted)).map_err(|e| e.to_string())?;
    if all.coverage.functions_twinned == 0 {
        return Err("its function cannot be rewritten".to_owned());
    }
    let possible = twin::switches(&data, &all.bytes, &wanted).map_err(|e| e.to_string())?;
    let form = |(ahead, says): (Ahead, String)| {
        let is_possible = possible.iter().any(|one| one.ahead == of_twin(ahead));
        let function = load.function.clone();
        let load = PrefetchedLoad { file: file.clone(), address: load.address, function, ahead };
        is_possible.then(|| Form::new(&says, vec![Setting::Prefetch(load)]))
    };
    let forms: Vec<Form> = asked.into_iter().filter_map(form).collect();
    let why = match load.walk {
        Walk::Steps(_) => "registers alone do not give its address",
        Walk::Indexed => "no load near it reads its index in steps, where registers are free",
    };
    if forms.is_empty() { Err(why.to_owned()) } else { Ok(forms) }
}

/// So far ahead; none where that is out of reach.
fn ahead(walk: Walk, steps: i32) -> Option<(Ahead, String)> {
    Some(match walk {
        Walk::Steps(step) => {
            let bytes = i32::try_from(step.saturating_mul(i64::from(steps))).ok()?;
            (Ahead::Bytes(bytes), format!("{steps} steps of {step} bytes ahead"))
        }
        Walk::Indexed => (Ahead::Steps(steps), format!("{steps} steps of its index ahead")),
    })
}

/// Where it is known how long the load and a turn of its loop take, only the steps ahead that are
/// nearest to that are worth a run. Further ahead is better than too near, for the latency is that
/// of an idle memory.
fn likely(steps: &[i32], hides_it: Option<f64>) -> Vec<i32> {
    const TRIED: usize = 2;
    let mut steps = steps.to_vec();
    if let Some(known) = hides_it {
        let off = |steps: i32| {
            let ratio = (f64::from(steps) / known.max(1.0)).log2();
            if ratio < 0.0 { -2.0 * ratio } else { ratio }
        };
        steps.sort_by(|&one, &other| off(one).total_cmp(&off(other)));
        steps.truncate(TRIED);
    }
    steps
}

fn of_twin(ahead: Ahead) -> twin::Ahead {
    match ahead {
        Ahead::Bytes(bytes) => twin::Ahead::Bytes(bytes),
        Ahead::Steps(steps) => twin::Ahead::Steps(steps),
    }
}

/// What is prefetched, by file; each file has a number, which is its place in the order.
fn by_file<'s>(settings: &'s [Setting]) -> BTreeMap<&'s str, (&'s BuiltFile, Prefetches)> {
    let mut files: BTreeMap<&str, (&BuiltFile, Prefetches)> = BTreeMap::new();
    for setting in settings {
        let mut want = |file: &'s BuiltFile, address: u64, ahead: twin::Ahead| {
            let (_, wanted) = files.entry(&file.path).or_insert_with(|| (file, Prefetches::new()));
            wanted.entry(address).or_default().push(ahead);
        };
        match setting {
            Setting::Prefetch(load) => want(&load.file, load.address, of_twin(load.ahead)),
            Setting::WithoutPrefetches { file, addresses, .. } => {
                for &address in addresses {
                    want(file, address, twin::Ahead::Never);
                }
            }
            _ => {}
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

/// A rewritten file, and the switches of its prefetches.
pub(crate) struct SwitchedFile {
    /// Where the rewritten file lies.
    pub place: PathBuf,
    /// Of the file that it was made of.
    pub path: String,
    pub switches: Vec<Switch>,
}

/// The switches of all of these in the files that were written into this directory.
pub(crate) fn switches(settings: &[Setting], directory: &Path) -> Result<Vec<SwitchedFile>, String> {
    let of = |(number, (file, wanted)): (usize, &(&BuiltFile, Prefetches))| {
        let path = records::path_of(&file.path);
        let place = place(directory, number, &path);
        let read =
            |path: &Path| fs::read(path).map_err(|e| format!("{}: {}", path.display(), records::plain(&e)));
        let switches = twin::switches(&read(&path)?, &read(&place)?, wanted).map_err(|e| e.to_string())?;
        // The kernel tells paths without links.
        let place = place.canonicalize().unwrap_or(place);
        Ok(SwitchedFile { place, path: file.path.clone(), switches })
    };
    by_file(settings).values().enumerate().map(of).collect()
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
    fn the_steps_that_hide_the_latency_are_tried() {
        assert_eq!(likely(&INDEXED_STEPS, Some(24.0)), [32, 16]);
        assert_eq!(likely(&STEPS, Some(0.3)), [4, 16]);
        assert_eq!(likely(&STEPS, Some(900.0)), [64, 16]);
        assert_eq!(likely(&STEPS, None), STEPS);
    }
}
