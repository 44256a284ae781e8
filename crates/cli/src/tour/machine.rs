//! The machine: what a load from each level takes, how many the core can have under way, and what
//! a program must expect of them.

use super::place::MACHINE;
use super::{Found, NotRun, Told, Tour, tell};
use crate::failure::Refusal;
use crate::measure::{self, MeasureArgs};
use crate::save;
use ::model::pattern::{self, Options};
use ::model::predict;
use ::tour::machine::{LoadTimes, MachineFigures, SwitchTimes};
use records::Document;
use records::machine::{Grade, Machine, Verdict};
use records::tour::StepFigure;
use store::machine_record;
use units::Quantity;

/// Of the catalogue, what the story and the harvest need.
const EXPERIMENTS: [&str; 4] = ["latency", "mlp", "threads", "yield"];

/// All customers.
const AREA: &str = "128M";

pub(super) fn command() -> String {
    format!("gleaner measure --quick {}", EXPERIMENTS.join(" "))
}

pub(super) fn measured(tour: &mut Tour<'_>) -> Found {
    let args = MeasureArgs { quick: true, ..MeasureArgs::only(&EXPERIMENTS) };
    let machine = measure::measured(&args, 0, tour.console).map_err(|error| refused(&error))?;
    let document = Document::now(machine);
    save::record(&tour.place.at(MACHINE), &document).map_err(|error| NotRun::because(error.to_string()))?;
    // Profiles and harvests look there; one that is there already may be better.
    machine_record::keep(&document);
    let machine = document.body;
    let says = sentences(&machine);
    let levels = machine.levels.iter().map(|level| figure(&level.name, &level.latency.ns));
    let told = Told {
        says,
        figures: levels.collect(),
        figures_show: "Time of a load, by what serves it".to_owned(),
        record: Some(MACHINE),
    };
    tour.machine = Some(machine);
    Ok(told)
}

fn sentences(machine: &Machine) -> Vec<String> {
    let mut says = vec![format!("The processor is called {}.", tell::processor(machine))];
    let figures = MachineFigures::of(machine);
    if let Some(LoadTimes { near, memory, times }) = &figures.loads {
        let times =
            times.as_ref().map_or(String::new(), |times| format!(": {} times as long", times.brief()));
        if let (Some(near), Some(far)) = (resolved(near), resolved(&memory.ns)) {
            says.push(format!(
                "A load that finds its data in the first cache takes {near}. One that has to go to memory takes {far}{times}."
            ));
        }
        if let Some(cycles) = resolved(&memory.cycles) {
            says.push(format!("That is {cycles} in which the core could have worked, and waits."));
        }
    }
    if let Some(loads) = figures.overlap.map(Quantity::brief) {
        says.push(format!(
            "It can wait for several at once, if it learns their addresses early enough: at the highest throughput {loads} loads \
             from memory were under way."
        ));
    }
    if let Some(SwitchTimes { by_kernel, by_user, kernel_outlasts_wait }) = figures.switches {
        let longer = if kernel_outlasts_wait { ", longer than the wait" } else { "" };
        says.push(format!(
            "To let another program run meanwhile, the kernel takes {} for each switch{longer}. A switch without the kernel \
             takes {}.",
            by_kernel.brief(),
            by_user.brief()
        ));
    }
    let Grade { verdict, reasons } = &machine.run.grade;
    if let (Verdict::Noisy, Some(reason)) = (verdict, reasons.first()) {
        says.push(format!(
            "The machine was busy meanwhile ({reason}): quiet, it would give narrower intervals."
        ));
    }
    if machine.levels.is_empty() {
        says.push(
            "How long a load takes from each level is not resolved: try again when it is quiet.".to_owned(),
        );
    }
    says
}

/// A figure with its interval; nothing where it is not resolved, for a sentence would say nothing.
fn resolved(quantity: &Quantity) -> Option<String> {
    quantity.estimate().map(|_| quantity.brief())
}

pub(super) fn pattern_command() -> String {
    format!("gleaner predict --machine {MACHINE} --if pages=4K 'chase({AREA}); rand({AREA})'")
}

/// Where each load waits for the one before, and where the core has as many under way as it can.
pub(super) fn predicted(tour: &mut Tour<'_>) -> Found {
    let Some(machine) = &tour.machine else {
        return Err(NotRun::because("the machine was not measured"));
    };
    let (told, chain) = expected(machine)?;
    tour.predicted = Some(chain);
    Ok(told)
}

/// The step, and the time of a load that waits for the one before.
fn expected(machine: &Machine) -> Result<(Told, Quantity), NotRun> {
    let one = |text: String| -> Result<Quantity, NotRun> {
        let pattern = pattern::parse(&text).expect("a pattern of the algebra");
        let mut defaults = Options::default();
        pattern::parse_setting("pages=4K", &mut defaults).expect("a kind of pages");
        predict::predict(machine, &pattern, &defaults)
            .map(|predicted| predicted.per_access)
            .map_err(|cannot| not_resolved(machine, &format!("{}: {}", cannot.what, cannot.why)))
    };
    let chain = one(format!("chase({AREA})"))?;
    let mut says = vec![format!(
        "By the model that is fitted to the measurement, a load from such an area takes {} if its address is in what the load \
         before it reads: the core cannot begin it earlier.",
        chain.brief()
    )];
    let mut figures = vec![figure("one waits for another", &chain)];
    match one(format!("rand({AREA})")) {
        Ok(apart) => {
            says.push(format!(
                "If all addresses are known, it takes {} in the mean, since the core has as many under way as it can.",
                apart.brief()
            ));
            if let Some(times) = ::tour::ratio(&chain, &apart) {
                let times = times.brief();
                says.push(format!("So the same reads may take {times} times as long, by their order alone."));
            } else {
                says.push("How much the order alone makes of that is not resolved here.".to_owned());
            }
            figures.push(figure("all addresses known", &apart));
        }
        Err(NotRun { why, .. }) => {
            says.push(format!("What it takes if all addresses are known is not resolved ({why})."));
        }
    }
    let figures_show = format!("Time of a load from an area of {AREA}iB, modelled");
    Ok((Told { says, figures, figures_show, record: None }, chain))
}

/// Why there is no prediction. The first step has measured all that it needs: to ask for that again
/// would not help, unless the machine becomes quieter.
fn not_resolved(machine: &Machine, why: &str) -> NotRun {
    let others = machine.run.blocks.other_tasks;
    let would_help = match others {
        0 => "step 1 measured it and did not resolve it: take the tour again".to_owned(),
        _ => format!(
            "step 1 measured it and did not resolve it beside {others} other programs: take the tour again when they have ended"
        ),
    };
    NotRun { why: why.to_owned(), would_help: Some(would_help) }
}

pub(super) fn figure(name: &str, value: &Quantity) -> StepFigure {
    StepFigure { name: name.to_owned(), value: value.clone(), percent: false }
}

pub(super) fn share(name: &str, value: &Quantity) -> StepFigure {
    StepFigure { percent: true, ..figure(name, value) }
}

fn refused(error: &anyhow::Error) -> NotRun {
    match error.downcast_ref::<Refusal>() {
        Some(refusal) => NotRun { why: refusal.why.clone(), would_help: refusal.would_help.clone() },
        None => NotRun::because(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Machine {
        let fixture = "crates/records/fixtures/machine.v1.full-run-zen4-guest.json.gz";
        let unpacked =
            std::process::Command::new("gzip").arg("-dc").arg(testkit::root().join(fixture)).output();
        records::parse::<Machine>(&unpacked.expect("gzip runs").stdout).expect("a record").body
    }

    #[test]
    fn the_second_step_does_not_ask_for_what_the_first_one_ran() {
        let mut machine = recorded();
        assert_eq!(expected(&machine).expect("a prediction").0.figures.len(), 2);
        let mlp = machine.experiments.mlp.as_mut().and_then(|outcome| outcome.result.as_mut());
        for kind in &mut mlp.expect("a whole run").kinds {
            kind.saturation = Quantity::unresolved("busy");
        }
        let (told, _) = expected(&machine).expect("what is known is told");
        assert_eq!(told.figures.len(), 1);
        assert!(
            told.says[1].contains("not resolved") && !told.says[1].contains("gleaner measure"),
            "{told:?}"
        );

        machine.experiments.latency = None;
        machine.levels.clear();
        machine.run.blocks.other_tasks = 3;
        let NotRun { would_help, .. } = expected(&machine).expect_err("nothing is known");
        let help = would_help.expect("help");
        assert!(!help.contains("gleaner measure") && help.contains("3 other programs"), "{help}");
    }
}
