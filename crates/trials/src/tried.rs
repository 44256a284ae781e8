//! Each change alone, at the number of pairs that is asked for: for `gleaner profile --try`.

use crate::change::Change;
use crate::left::Plain;
use crate::pairs::Pairs;
use crate::program::{Program, TrialError};
use crate::run::Run;
use crate::settings::form::Form;
use crate::settings::page::Page;
use crate::settings::prepared::{Prepared, Start};
use lab::stop::Stop;
use records::profile::{Trial, TrialOutcome};
use units::{Estimate, Quantity, Unit};

/// Of all trials of changes that change nothing, this share has an interval without 1 in it: by all
/// changes of a trial together, since each has its own chance.
const MISSED: f64 = 0.05;

/// Tries changes, one after the other. `told` is called before each round of each, with what it is
/// and the round's number.
pub fn run(
    program: &Program,
    changes: &[Change],
    rounds: usize,
    stop: Stop,
    told: &mut dyn FnMut(&str, usize),
) -> Result<Vec<Trial>, TrialError> {
    let mut trials = Vec::new();
    let missed = MISSED / changes.len().max(1) as f64;
    for change in changes {
        if stop.asked() {
            break;
        }
        let prepared = prepared(change, program);
        if prepared.is_err() && change.is_guess() {
            continue;
        }
        let says = change.says();
        trials.push(match prepared {
            Ok(prepared) => {
                let told = &mut |round| told(&says, round);
                tried(program, change, &prepared, (rounds, missed), stop, told)?
            }
            Err(why) => trial(change, TrialOutcome::NotTried { why }),
        });
    }
    Ok(trials)
}

/// The forms of a change, ready to run.
fn prepared(change: &Change, program: &Program) -> Result<Vec<(Form, Prepared)>, String> {
    let ready = |form: Form| {
        let mut prepared = crate::settings::prepare(&form.settings, program)?;
        prepared.start.arguments.clone_from(&form.arguments);
        Ok((form, prepared))
    };
    change.forms()?.into_iter().map(ready).collect()
}

/// One change: both ways in each round. A change with several forms is first tried in each, and the
/// best one of these then counts by runs of its own.
fn tried(
    program: &Program,
    change: &Change,
    prepared: &[(Form, Prepared)],
    (rounds, missed): (usize, f64),
    stop: Stop,
    told: &mut dyn FnMut(usize),
) -> Result<Trial, TrialError> {
    let as_it_is = Start::default();
    told(0);
    let (form, chosen) = match chosen(program, prepared, stop)? {
        Ok(chosen) => chosen,
        Err(why) => return Ok(trial(change, TrialOutcome::NotTried { why })),
    };
    let mut pairs = Pairs::default();
    let (mut plain, mut with) = (Plain::default(), Vec::new());
    let mut failed = None;
    for round in 0..rounds {
        if stop.asked() {
            break;
        }
        told(round);
        let mut both = [None, None];
        for turn in [round % 2, 1 - round % 2] {
            let run: Run = program.run(if turn == 0 { &as_it_is } else { &chosen.start })?;
            failed = failed.or(run.failed.filter(|_| turn == 1));
            if turn == 0 {
                plain.add(run.left);
            } else {
                with.push(run.left);
            }
            both[turn] = Some(run.seconds);
        }
        if let [Some(without), Some(with)] = both {
            pairs.push(without, with);
        }
    }
    let differs = with.iter().find_map(|left| plain.differs(left));
    let is_known = !plain.prints_otherwise() && !plain.ends_otherwise();
    let same_output = is_known.then_some(differs.is_none());
    let Some(faster) = pairs.faster(missed) else {
        return Ok(trial(change, TrialOutcome::NotTried { why: "it was stopped".to_owned() }));
    };
    let outcome = match (failed, differs) {
        (Some(why), _) => TrialOutcome::Failed { why },
        (None, Some(why)) => TrialOutcome::Failed { why: why.to_owned() },
        (None, None) if faster.lo > 1.0 => TrialOutcome::Faster,
        (None, None) if faster.hi < 1.0 => TrialOutcome::Slower,
        (None, None) => TrialOutcome::NoDifference,
    };
    let seconds = |estimate: Estimate| Quantity::measured(estimate, Unit::Seconds);
    let [without, with] = pairs.seconds();
    Ok(Trial {
        form: form.says.clone(),
        rounds: pairs.len(),
        without: seconds(without),
        with: seconds(with),
        faster: Quantity::measured(faster, Unit::Ratio),
        by_chance: pairs.by_chance(),
        same_output,
        ..trial(change, outcome)
    })
}

/// The form that is fastest, among those that change anything; or why there is none.
fn chosen<'p>(
    program: &Program,
    prepared: &'p [(Form, Prepared)],
    stop: Stop,
) -> Result<Result<(&'p Form, &'p Prepared), String>, TrialError> {
    let mut best: Option<(f64, (&Form, &Prepared))> = None;
    let mut why = "it was stopped".to_owned();
    for (form, ready) in prepared {
        if stop.asked() {
            break;
        }
        if prepared.len() == 1 && ready.page.is_none() {
            return Ok(Ok((form, ready)));
        }
        let mut took = program.run(&ready.start)?.seconds;
        if let Some(nothing) = ready.page.as_ref().and_then(Page::did_nothing) {
            why = nothing;
            continue;
        }
        if prepared.len() > 1 {
            took = took.min(program.run(&ready.start)?.seconds);
        }
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, (form, ready)));
        }
    }
    Ok(best.map(|(_, form)| form).ok_or(why))
}

fn trial(change: &Change, outcome: TrialOutcome) -> Trial {
    let not_run = || Quantity::unresolved("it was not run");
    Trial {
        kind: change.kind(),
        says: change.says(),
        form: String::new(),
        outcome,
        rounds: 0,
        without: not_run(),
        with: not_run(),
        faster: not_run(),
        by_chance: 1.0,
        same_output: None,
    }
}
