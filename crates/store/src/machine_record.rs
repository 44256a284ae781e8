//! The machine record in the user's cache directory: `gleaner measure` leaves it there, where it
//! replaces an older one unless that is better, and other verbs find it there. Where there is none,
//! a harvest measures shortly, once, what plans need, and leaves that beside it.

use crate::directory::{self, NO_DIRECTORY};
use model::prices::from_machine;
use records::Document;
use records::host::Host;
use records::machine::Machine;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What others on this machine have disturbed is measured again after this time, not at each
/// harvest.
const MEASURED_AGAIN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Where `gleaner measure` leaves its record, and where other verbs look for it:
/// `~/.cache/gleaner/machine.json`; `None` if neither `XDG_CACHE_HOME` nor HOME is set.
pub fn usual_place() -> Option<PathBuf> {
    Some(directory::of_user()?.join("machine.json"))
}

/// The record that `gleaner measure` left, and where it lies, if it is sound and of this host. One
/// that was brought from another machine tells nothing of this one.
pub fn of_host(host: &Host) -> Option<(PathBuf, Document<Machine>)> {
    of_host_at(usual_place()?, host)
}

fn of_host_at(path: PathBuf, host: &Host) -> Option<(PathBuf, Document<Machine>)> {
    let document = read(&path)?;
    let is_of_here = document.body.host.processor.name.get() == host.processor.name.get();
    is_of_here.then_some((path, document))
}

/// A sound record. The directory may be another user's (`sudo -E`): only figures are taken from it,
/// and only of a file, since a pipe may never begin.
fn read(path: &Path) -> Option<Document<Machine>> {
    std::fs::metadata(path).ok()?.is_file().then(|| records::read(path).ok())?
}

/// Where a harvest leaves what it measured itself since there was no machine record.
fn short_place() -> Option<PathBuf> {
    Some(directory::of_user()?.join("prices.json"))
}

/// Whether `gleaner measure` has left a record that says what plans need, or a damaged one, of
/// which a harvest tells. One without levels leaves the costs of misses open, as none does.
pub fn is_there() -> bool {
    usual_place().is_some_and(|path| path.exists() && !lacks_levels_at(&path))
}

fn lacks_levels_at(path: &Path) -> bool {
    records::read::<Machine>(path).is_ok_and(|document| lacks_levels(&document))
}

/// Whether this record does not say what misses cost.
pub fn lacks_levels(document: &Document<Machine>) -> bool {
    !from_machine(Path::new(""), document).knows_misses()
}

/// Whether what was measured shortly is missing, is of another processor, or lacks something that
/// was not measured lately either.
pub fn short_is_missing(host: &Host) -> bool {
    short().is_none_or(|(path, record)| {
        let is_old = || directory::age(&path).is_some_and(|age| age > MEASURED_AGAIN_AFTER);
        let lacks = || missing(&path, &record).is_some() && is_old();
        processor(&record.body.host) != processor(host) || lacks()
    })
}

/// What plans need and this record has not.
fn missing(path: &Path, document: &Document<Machine>) -> Option<String> {
    let assumed = from_machine(path, document).assumed.into_iter();
    let to_measure = assumed.filter(|line| line.contains("gleaner measure")).map(|line| figure(&line));
    to_measure.reduce(|all, next| format!("{all}, {next}"))
}

/// What was measured shortly, and where it lies, if it is there and sound.
pub fn short() -> Option<(PathBuf, Document<Machine>)> {
    let path = short_place()?;
    let record = read(&path)?;
    Some((path, record))
}

/// Leaves what was measured shortly where the next harvest finds it. An error says what will be
/// assumed: all, where it cannot be kept, or what others on this machine have disturbed.
pub fn keep_short(document: &Document<Machine>) -> Result<(), String> {
    let path = short_place().ok_or(NO_DIRECTORY)?;
    match write(&path, document) {
        Kept::Nowhere(why) | Kept::Useless(why) => Err(why),
        Kept::Written(_) | Kept::Older(..) => match missing(&path, document) {
            Some(missing) => Err(format!("not resolved: {missing}")),
            None => Ok(()),
        },
    }
}

/// What is assumed, of a line that says so.
fn figure(line: &str) -> String {
    line.split(" (").next().unwrap_or_default().to_owned()
}

fn processor(host: &Host) -> [Option<&String>; 2] {
    [host.processor.name.get(), host.processor.microarchitecture.get()]
}

/// What became of a new record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    Written(PathBuf),
    /// The older one stays, since …
    Older(PathBuf, String),
    /// No place for it, since …
    Nowhere(String),
    /// It would tell the other verbs nothing, since …
    Useless(String),
}

/// Leaves the record where other verbs look for it.
pub fn keep(document: &Document<Machine>) -> Kept {
    match usual_place() {
        Some(path) => keep_at(&path, document),
        None => Kept::Nowhere(NO_DIRECTORY.to_owned()),
    }
}

fn keep_at(path: &Path, document: &Document<Machine>) -> Kept {
    if lacks_levels(document) {
        let asked = document.body.experiments.latency.is_some();
        let why = if asked {
            "no level of caches and memory was resolved: try again when fewer programs are running"
        } else {
            "it has no levels of caches and memory, which 'gleaner measure latency' finds"
        };
        return Kept::Useless(why.to_owned());
    }
    let older = read(path);
    if let Some(why) = older.and_then(|older| better(&older, document)) {
        return Kept::Older(path.to_owned(), why);
    }
    write(path, document)
}

fn write(path: &Path, document: &Document<Machine>) -> Kept {
    let parent = path.parent().unwrap_or(Path::new("."));
    if let Err(why) = records::make_private_directory(parent) {
        return Kept::Nowhere(records::plain(&why));
    }
    match records::write_atomically(path, document) {
        Ok(()) => Kept::Written(path.to_owned()),
        Err(why) => Kept::Nowhere(why.to_string()),
    }
}

/// Why the older record is the better one, if it is: it has figures for plans that the newer one
/// lacks, or as many of a run that was not stopped. A record of another processor is never better.
fn better(older: &Document<Machine>, newer: &Document<Machine>) -> Option<String> {
    if processor(&older.body.host) != processor(&newer.body.host) {
        return None;
    }
    let assumed = |record: &Document<Machine>| from_machine(Path::new(""), record).assumed;
    let (with_older, with_newer) = (assumed(older), assumed(newer));
    if with_newer.len() > with_older.len() {
        let had: Vec<String> = with_older.iter().map(|line| figure(line)).collect();
        let lacks: Vec<String> =
            with_newer.iter().map(|line| figure(line)).filter(|name| !had.contains(name)).collect();
        return Some(format!("this run did not measure {}", lacks.join(", ")));
    }
    let stopped = newer.body.run.interrupted && !older.body.run.interrupted;
    (stopped && with_newer.len() == with_older.len()).then(|| "this run was stopped".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::host::Fact;
    use records::machine::Level;
    use units::{Latency, Quantity, Unit};

    fn level(name: &str, cycles: f64) -> Level {
        Level {
            name: name.to_owned(),
            size: Quantity::unresolved("not measured"),
            size_claimed: Quantity::unresolved("not measured"),
            latency: Latency {
                cycles: Quantity::claimed(cycles, Unit::Cycles),
                ns: Quantity::unresolved("not measured"),
                ticks: Quantity::unresolved("not measured"),
            },
            note: None,
        }
    }

    fn without_levels() -> Document<Machine> {
        let fixture = include_bytes!("../../records/fixtures/machine.v1.interrupted.json");
        let mut record: Document<Machine> = records::parse(fixture).unwrap();
        record.body.levels.clear();
        record
    }

    fn record() -> Document<Machine> {
        let mut record = without_levels();
        record.body.levels = vec![level("L1", 4.0), level("DRAM", 300.0)];
        record
    }

    fn whole() -> Document<Machine> {
        let mut whole = record();
        whole.body.run.interrupted = false;
        whole
    }

    #[test]
    fn a_worse_record_does_not_replace_a_better_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gleaner/machine.json");
        assert_eq!(keep_at(&path, &record()), Kept::Written(path.clone()));
        assert_eq!(keep_at(&path, &whole()), Kept::Written(path.clone()));
        assert_eq!(keep_at(&path, &record()), Kept::Older(path.clone(), "this run was stopped".to_owned()));
        assert_eq!(records::read::<Machine>(&path).unwrap(), whole());
        assert_eq!(keep_at(&path, &whole()), Kept::Written(path.clone()));
        // Another processor's says nothing of this one.
        let mut elsewhere = record();
        elsewhere.body.host.processor.name = Fact::Known("another".to_owned());
        assert_eq!(keep_at(&path, &elsewhere), Kept::Written(path.clone()));
        std::fs::write(&path, "damaged").unwrap();
        assert_eq!(keep_at(&path, &record()), Kept::Written(path));
    }

    #[test]
    fn a_record_without_levels_is_not_kept_and_is_as_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine.json");
        assert!(matches!(keep_at(&path, &without_levels()), Kept::Useless(_)));
        assert!(!path.exists());
        // An earlier gleaner kept them.
        records::write_atomically(&path, &without_levels()).unwrap();
        assert!(lacks_levels_at(&path));
        records::write_atomically(&path, &record()).unwrap();
        assert!(!lacks_levels_at(&path));
        std::fs::write(&path, "damaged").unwrap();
        assert!(!lacks_levels_at(&path));
    }

    #[test]
    fn a_record_of_another_processor_is_not_of_this_host() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine.json");
        let mut host = whole().body.host;
        assert_eq!(of_host_at(path.clone(), &host), None);
        std::fs::write(&path, "damaged").unwrap();
        assert_eq!(of_host_at(path.clone(), &host), None);
        records::write_atomically(&path, &whole()).unwrap();
        assert_eq!(of_host_at(path.clone(), &host), Some((path.clone(), whole())));
        host.processor.name = Fact::Known("another".to_owned());
        assert_eq!(of_host_at(path, &host), None);
    }

    #[test]
    fn a_record_with_more_figures_is_better() {
        let (mut without, with) = (whole(), whole());
        without.body.levels.clear();
        without.body.experiments = records::machine::Experiments::default();
        let mut latencies = with.clone();
        latencies.body.run.interrupted = true;
        latencies.body.levels = vec![level("L1", 4.0), level("DRAM", 300.0)];
        assert_eq!(better(&latencies, &without).as_deref(), Some("this run did not measure latencies"));
        assert_eq!(better(&without, &latencies), None, "it was stopped, but knows more");
    }
}
