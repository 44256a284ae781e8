//! The progress of a preparation: which module is analysed, rewritten or proven.
//!
//! It is only told of where a user would begin to wonder: of a large module at once, of small ones
//! when they take long, and then of one in a second, since a program may have a hundred.

use super::costs;
use crate::console::Console;
use crate::plain::escaped;
use crate::progress::Progress;
use ::harvest::progress::{Activity, PreparationStep};
use std::time::{Duration, Instant};

/// A module of this size takes a second or more.
const LARGE_MODULE_BYTES: u64 = 1 << 20;
/// When nothing was told for longer than this, the next module is, whatever its size.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Preparing<'c> {
    console: &'c Console,
    progress: Box<dyn Progress + Send>,
    told: Instant,
    shown: bool,
}

impl<'c> Preparing<'c> {
    pub(super) fn new(console: &'c Console) -> Self {
        Self { console, progress: console.progress(), told: Instant::now(), shown: false }
    }

    /// Clears the line, if there is one.
    pub(super) fn finish(&mut self) {
        if std::mem::take(&mut self.shown) {
            self.progress.finish();
        }
    }
}

impl ::harvest::progress::Progress for Preparing<'_> {
    fn step(&mut self, step: &PreparationStep<'_>) {
        if step.module_bytes >= LARGE_MODULE_BYTES || self.told.elapsed() >= PATIENCE {
            self.progress.at(&words(step), step.done);
            self.told = Instant::now();
            self.shown = true;
        }
    }

    fn takes_costs(&mut self) {
        costs::measure_if_missing(self.console);
    }

    fn notice(&mut self, line: &str) {
        self.finish();
        self.console.remark(&format!("gleaner: {line}"));
    }
}

fn words(step: &PreparationStep<'_>) -> String {
    let activity = match step.activity {
        Activity::Analyse => "analysing",
        Activity::Rewrite => "rewriting",
        Activity::Prove => "proving",
    };
    let module = escaped(&step.module.display().to_string());
    format!("{activity} {module} ({} of {})", step.number, step.count)
}
