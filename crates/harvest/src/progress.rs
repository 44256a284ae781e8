//! What is told while a harvest is prepared: analysing and rewriting a large program takes many
//! seconds the first time.
//!
//! It is only told of where a user would begin to wonder: of a large module at once, of small ones
//! when they take long, and then of one in a second, since a program may have a hundred.

use std::path::Path;
use std::time::{Duration, Instant};
use units::Progress;

/// A module of this size takes a second or more.
const LARGE_MODULE_BYTES: u64 = 1 << 20;
/// When nothing was told for longer than this, the next module is, whatever its size.
const PATIENCE: Duration = Duration::from_secs(1);

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

impl Activity {
    fn word(self) -> &'static str {
        match self {
            Self::Analyse => "analysing",
            Self::Rewrite => "rewriting",
            Self::Prove => "proving",
        }
    }

    /// How much of a module's preparation is done when it begins.
    fn done_before(self) -> f64 {
        match self {
            Self::Analyse => 0.0,
            Self::Rewrite => 0.4,
            Self::Prove => 0.5,
        }
    }
}

/// Something is done in another way than asked for: a line for the user. The programs' own lines
/// follow on the same console, so it says which program it is from.
pub(crate) fn notice(progress: &mut dyn Progress, line: &str) {
    progress.line(&format!("gleaner: {line}"));
}

/// Counts the modules of a preparation, and the bytes in them.
pub(crate) struct Counter<'p> {
    progress: &'p mut dyn Progress,
    count: usize,
    bytes: u64,
    /// Modules before the current one, and their bytes.
    passed: usize,
    passed_bytes: u64,
    /// How much of the whole is done, 0 to 1, as far as sizes of files tell: a module that is
    /// rewritten once more does not take it back.
    done: f64,
    told: Instant,
}

impl<'p> Counter<'p> {
    pub(crate) fn new(progress: &'p mut dyn Progress, sizes: impl IntoIterator<Item = u64>) -> Self {
        let (mut count, mut bytes) = (0, 0);
        for size in sizes {
            count += 1;
            bytes += size;
        }
        Self { progress, count, bytes, passed: 0, passed_bytes: 0, done: 0.0, told: Instant::now() }
    }

    /// This begins.
    pub(crate) fn step(&mut self, activity: Activity, module: &Path, module_bytes: u64) {
        let bytes = self.passed_bytes as f64 + activity.done_before() * module_bytes as f64;
        self.done = self.done.max(bytes / (self.bytes as f64).max(1.0));
        if module_bytes >= LARGE_MODULE_BYTES || self.told.elapsed() >= PATIENCE {
            let (number, count) = (self.passed + 1, self.count);
            let what = format!("{} {} ({number} of {count})", activity.word(), module.display());
            self.progress.at(&what, self.done);
            self.told = Instant::now();
        }
    }

    /// The next module follows.
    pub(crate) fn pass(&mut self, module_bytes: u64) {
        self.passed += 1;
        self.passed_bytes += module_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Vec<String>);

    impl Progress for Told {
        fn at(&mut self, what: &str, fraction: f64) {
            self.0.push(format!("{:.0}% {what}", 100.0 * fraction));
        }
        fn line(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
        fn finish(&mut self) {}
    }

    #[test]
    fn large_modules_are_told_of_at_once() {
        let (large, small) = (4 << 20, 4 << 10);
        let mut told = Told::default();
        let mut counter = Counter::new(&mut told, [small, large]);
        counter.step(Activity::Analyse, Path::new("/bin/small"), small);
        counter.pass(small);
        counter.step(Activity::Rewrite, Path::new("/bin/large"), large);
        counter.step(Activity::Prove, Path::new("/bin/large"), large);
        counter.step(Activity::Rewrite, Path::new("/bin/large"), large);
        let again = "50% rewriting /bin/large (2 of 2)";
        assert_eq!(told.0, ["40% rewriting /bin/large (2 of 2)", "50% proving /bin/large (2 of 2)", again]);
    }
}
