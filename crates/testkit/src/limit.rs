//! A time limit for one test that starts processes in a folder of its own.
//!
//! When it is over, the processes are told with what they wait in, and killed: so the test ends, by
//! what it then finds. It fails in any case. A test that goes on nevertheless ends the test
//! program.

use crate::{kill, processes};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest test takes half a minute where it is alone; machines may be busy with ten times as
/// much.
const LIMIT: Duration = Duration::from_secs(600);
/// For what a test still does when its processes were killed.
const AFTERWARDS: Duration = Duration::from_secs(60);

/// Ends the test's processes when the limit is over, unless it is dropped before.
#[derive(Debug)]
pub struct TimeLimit {
    ended: Option<Sender<()>>,
    /// Gives back whether the limit was over.
    watch: Option<JoinHandle<bool>>,
}

impl TimeLimit {
    /// For the test that runs in this thread.
    pub fn new(folder: &Path) -> Self {
        Self::of(folder, LIMIT)
    }

    fn of(folder: &Path, limit: Duration) -> Self {
        // The harness names a test's thread by the test.
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let (ended, end) = channel::<()>();
        let watch = std::thread::spawn(move || {
            if end.recv_timeout(limit) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
            end_processes(&test, &folder, limit);
            if end.recv_timeout(AFTERWARDS) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test}: goes on {AFTERWARDS:?} after its limit: the test program ends");
                std::process::exit(101);
            }
            true
        });
        Self { ended: Some(ended), watch: Some(watch) }
    }
}

fn end_processes(test: &str, folder: &Path, limit: Duration) {
    let threads = processes::threads_in(folder).join("\n    ");
    eprintln!("{test}: not over within {limit:?}; its processes are killed:\n    {threads}");
    for pid in processes::pids_in(folder) {
        let _ = kill("KILL", &pid);
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        drop(self.ended.take());
        let over = self.watch.take().is_some_and(|watch| watch.join().unwrap_or(true));
        assert!(!over || std::thread::panicking(), "the test was not over within its time limit");
    }
}

#[test]
fn processes_end_with_the_limit_and_the_test_fails() {
    let folder = tempfile::tempdir().unwrap();
    let failed = std::panic::catch_unwind(|| {
        let limit = TimeLimit::of(folder.path(), Duration::from_millis(200));
        let status = std::process::Command::new("sleep").arg("300").current_dir(folder.path()).status();
        assert_eq!(status.unwrap().code(), None, "it was killed");
        drop(limit);
    });
    let why = failed.unwrap_err();
    assert_eq!(*why.downcast_ref::<&str>().unwrap(), "the test was not over within its time limit");
    drop(TimeLimit::new(folder.path()));
}
