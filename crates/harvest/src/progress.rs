//! What is told while a harvest is prepared: analysing and rewriting a large program takes many
//! seconds the first time.

use std::path::Path;

/// What is done with a module. Nothing of it is done for a module that is in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Its code is searched for loads that may stall.
    Analyse,
    /// Its twins are made.
    Rewrite,
    /// The independent checker proves the rewritten file.
    Prove,
}

/// One step of a preparation, when it begins.
#[derive(Clone, Copy, Debug)]
pub struct PreparationStep<'a> {
    pub activity: Activity,
    pub module: &'a Path,
    pub module_bytes: u64,
    /// Which of the modules it is, from 1, and how many there are.
    pub number: usize,
    pub count: usize,
    /// How much of the whole preparation is done, 0 to 1, as far as sizes of files tell.
    pub done: f64,
}

/// Hears of a preparation.
pub trait Progress: Send {
    fn step(&mut self, step: &PreparationStep<'_>);
    /// Something is done in another way than asked for: a line for the user.
    fn notice(&mut self, line: &str);
    /// The plan takes the costs of this machine next: the time to measure them where no record has
    /// them.
    fn takes_costs(&mut self) {}
}

/// How much of a module's preparation is done when an activity begins.
fn done_before(activity: Activity) -> f64 {
    match activity {
        Activity::Analyse => 0.0,
        Activity::Rewrite => 0.4,
        Activity::Prove => 0.5,
    }
}

/// Counts the modules of a preparation, and the bytes in them.
pub(crate) struct Counter<'p> {
    progress: &'p mut dyn Progress,
    count: usize,
    bytes: u64,
    /// Modules before the current one, and their bytes.
    passed: usize,
    passed_bytes: u64,
    /// How much is done: a module that is rewritten once more does not take it back.
    done: f64,
}

impl<'p> Counter<'p> {
    pub(crate) fn new(progress: &'p mut dyn Progress, sizes: impl IntoIterator<Item = u64>) -> Self {
        let (mut count, mut bytes) = (0, 0);
        for size in sizes {
            count += 1;
            bytes += size;
        }
        Self { progress, count, bytes, passed: 0, passed_bytes: 0, done: 0.0 }
    }

    pub(crate) fn step(&mut self, activity: Activity, module: &Path, module_bytes: u64) {
        let bytes = self.passed_bytes as f64 + done_before(activity) * module_bytes as f64;
        let done = bytes / (self.bytes as f64).max(1.0);
        self.done = self.done.max(done);
        let (number, count, done) = (self.passed + 1, self.count, self.done);
        self.progress.step(&PreparationStep { activity, module, module_bytes, number, count, done });
    }

    /// The next module follows.
    pub(crate) fn pass(&mut self, module_bytes: u64) {
        self.passed += 1;
        self.passed_bytes += module_bytes;
    }
}
