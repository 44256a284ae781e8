//! One experiment as the catalogue knows it, and how a run of it becomes an outcome in the machine
//! record.

use crate::context::{Context, Refused};
use crate::defect;
use crate::effort::ByEffort;
use records::machine::{Effort, Ending, Experiments, Machine, Outcome, Status};
use std::time::Instant;

/// An experiment: its name, what it is for, what it needs, how long it takes, and its part of the
/// machine record.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name on the command line, in the record and of its CSV table.
    pub name: &'static str,
    /// One line of help: what it measures.
    pub about: &'static str,
    /// What the host must have or allow, beyond what every experiment needs; `None` if nothing.
    pub needs: Option<&'static str>,
    pub seconds: ByEffort<f64>,
    /// Runs it and puts its outcome into the record.
    pub(crate) run: fn(&mut Context<'_>, &mut Machine),
    /// Its part of the record; `None` if the run did not include it. See [`Entry::ending`].
    pub(crate) part: for<'a> fn(&'a Experiments, &'static str) -> Option<Ending<'a>>,
}

impl Entry {
    /// Seconds that the experiment may take.
    pub fn seconds_at(&self, effort: Effort) -> f64 {
        self.seconds.at(effort)
    }

    /// How it ended in this record; `None` if the run did not include it.
    pub fn ending<'a>(&self, experiments: &'a Experiments) -> Option<Ending<'a>> {
        (self.part)(experiments, self.name)
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs an experiment, and tells how it ended, whatever that is.
pub(crate) fn outcome_of<T>(
    ctx: &mut Context<'_>,
    known: &Machine,
    run: impl FnOnce(&mut Context<'_>, &Machine) -> Result<T, Refused>,
) -> Outcome<T> {
    let began = Instant::now();
    let result = defect::caught(|| run(ctx, known));
    let seconds = began.elapsed().as_secs_f64();
    let interrupted = ctx.stop.asked();
    let empty = Outcome { status: Status::Done, why: None, would_help: None, seconds, result: None };
    let (defect, result) = match result {
        Ok(result) => (false, result),
        Err(defect) => (true, Err(defect)),
    };
    match result {
        Ok(result) if interrupted => Outcome {
            status: Status::Interrupted,
            why: Some("stopped before it was complete".to_owned()),
            result: Some(result),
            ..empty
        },
        Ok(result) => Outcome { result: Some(result), ..empty },
        Err(refused) if interrupted && !defect => {
            Outcome { status: Status::Interrupted, why: Some(refused.why), ..empty }
        }
        Err(refused) => Outcome {
            status: if refused.not_possible { Status::NotPossible } else { Status::Failed },
            why: Some(refused.why),
            would_help: refused.would_help,
            ..empty
        },
    }
}
