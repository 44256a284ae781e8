//! `gleaner profile --system --every TIME`: a record each time that this is over, for months.
//!
//! Each record is written whole or not at all. A full disk costs records, never the run: it is
//! said, and tried again with the next one. What was sampled until SIGTERM or Ctrl-C is the last
//! record.

use super::system::{request, watch};
use super::{ProfileArgs, refused};
use crate::console::Console;
use crate::failure::{self, Exit, Refusal};
use crate::save;
use insight::Weights;
use lab::stop::Stop;
use records::Document;
use sampler::system::{Machine, Sampled, SystemRequest};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use units::Bytes;

const PREFIX: &str = "profile-";
const SUFFIX: &str = ".json";

pub(super) fn run(
    args: &ProfileArgs,
    every: Duration,
    weights: Weights,
    console: &Console,
) -> anyhow::Result<Exit> {
    let request = &request(args, weights);
    let stop = Stop::on_signals();
    if args.output.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Refusal::wrong_use("--every", "records go to a directory, not to standard output").into());
    }
    let directory = save::directory(args.output.as_deref().unwrap_or(Path::new(".")))?;
    save::check(&directory.join(format!("{PREFIX}check{SUFFIX}")))?;
    remove_unfinished(&directory);
    let mut machine = Machine::watch(request).map_err(|e| refused(&e))?;
    console.remark(&format!(
        "a record each {} s in {}, {} samples a second of each CPU; SIGTERM or Ctrl-C ends it",
        every.as_secs_f64(),
        directory.display(),
        machine.frequency_hz()
    ));
    let end = args.duration.and_then(|duration| Instant::now().checked_add(duration));
    let keeper = Keeper { directory, keep: args.system.keep, request };
    let mut failed = 0_u64;
    std::thread::scope(|scope| {
        let mut before: Option<std::thread::ScopedJoinHandle<'_, bool>> = None;
        let mut next = Instant::now();
        loop {
            next += every;
            let until = end.map_or(next, |end| end.min(next));
            watch(&mut machine, Some(until), stop);
            let sampled = machine.take();
            // One after the other: where a record takes longer than its period, the next one waits.
            while before.as_ref().is_some_and(|before| !before.is_finished()) {
                machine.round(Duration::from_millis(100));
            }
            failed += u64::from(before.take().is_some_and(|before| !before.join().unwrap_or(false)));
            let is_over = stop.asked() || end.is_some_and(|end| Instant::now() >= end);
            let keeper = &keeper;
            before = Some(scope.spawn(move || keeper.write(sampled)));
            if is_over {
                break;
            }
            next = next.max(Instant::now());
        }
        failed += u64::from(before.is_some_and(|before| !before.join().unwrap_or(false)));
    });
    if failed > 0 {
        failure::tell(&format!("{failed} records could not be written"));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

/// Where records go, and how many are kept.
struct Keeper<'a> {
    directory: PathBuf,
    keep: Bytes,
    request: &'a SystemRequest,
}

impl Keeper<'_> {
    /// Whether the record was written. If it was not, that is said.
    fn write(&self, sampled: Sampled) -> bool {
        let document = Document::now(crate::threads::alone(|| sampled.profile(self.request)));
        let name = document.header.created.replace(':', "-");
        let path = self.free_name(&name);
        let is_written = records::write_atomically(&path, &document).map_err(|error| {
            failure::tell(&format!("{error}; this record is lost, the next one is tried"));
        });
        self.delete_oldest(&path);
        is_written.is_ok()
    }

    /// Two records of one second have two names.
    fn free_name(&self, time: &str) -> PathBuf {
        let numbered = |number: u32| if number == 0 { String::new() } else { format!(".{number}") };
        let path = |number| self.directory.join(format!("{PREFIX}{time}{}{SUFFIX}", numbered(number)));
        (0..u32::MAX).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(u32::MAX))
    }

    /// Deletes the oldest records until all of them are as large as may be; never the last one.
    fn delete_oldest(&self, last: &Path) {
        let mut all = kept(&self.directory);
        let mut bytes: u64 = all.iter().map(|(_, bytes)| bytes).sum();
        all.retain(|(path, _)| path != last);
        for (path, size) in all {
            if bytes <= self.keep.0 {
                return;
            }
            match std::fs::remove_file(&path) {
                Ok(()) => bytes -= size,
                Err(error) => {
                    failure::tell(&format!("cannot delete {}: {}", path.display(), records::plain(&error)));
                }
            }
        }
    }
}

/// The records that lie there, the oldest first, with their sizes.
fn kept(directory: &Path) -> Vec<(PathBuf, u64)> {
    let is_ours = |name: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
    let mut found = entries(directory, is_ours);
    found.sort();
    found
}

fn entries(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, u64)> {
    let all = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let wanted = all.filter(|entry| entry.file_name().to_str().is_some_and(&is_wanted));
    wanted
        .filter_map(|entry| {
            let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((entry.path(), about.len()))
        })
        .collect()
}

/// What a run that was killed has left, if no other one can be writing it.
fn remove_unfinished(directory: &Path) {
    const OLD: Duration = Duration::from_secs(600);
    let is_unfinished = |name: &str| {
        name.strip_prefix('.').is_some_and(|name| name.starts_with(PREFIX))
            && name.rsplit('.').next() == Some("tmp")
    };
    for (path, _) in entries(directory, is_unfinished) {
        let written = std::fs::metadata(&path).and_then(|about| about.modified());
        if written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > OLD)) {
            let _ = std::fs::remove_file(&path);
        }
    }
}
