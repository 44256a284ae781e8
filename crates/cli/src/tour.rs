//! `gleaner tour`: a program that waits for memory, from the machine to what can be done about it;
//! and a page that tells it.
//!
//! To add a step: a file here with a function from the [`Tour`] to a [`Told`], and its line in
//! [`run`]. A step that cannot be carried out says why, and the tour goes on.

mod fix;
mod harvested;
mod machine;
mod place;
mod profiled;
mod tell;

use crate::console::Console;
use crate::failure::Exit;
use clap::Args;
use lab::stop::Stop;
use place::Place;
use records::machine::Machine;
use records::tour::{NextStep, StepFigure, StepOutcome, TourStep};
use records::{AnyRecord, Document};
use std::path::PathBuf;
use std::time::Instant;
use units::Quantity;

/// Watch a program wait for memory, find out why, and try what helps: two to three minutes, and a
/// page that tells it
///
/// Measures this machine quickly, profiles a small program that comes with Gleaner, tries a fix,
/// and runs another program in its waits. Every figure is measured in this run; a step that this
/// host does not allow says so. All files go to one directory.
#[derive(Debug, Args)]
pub(crate) struct TourArgs {
    /// Write the page, the records and the programs into this directory, which is created if
    /// necessary
    #[arg(long, value_name = "DIR", default_value = "gleaner-tour")]
    directory: PathBuf,
}

/// What steps found that later ones need.
struct Tour<'a> {
    place: Place,
    console: &'a Console,
    stop: Stop,
    machine: Option<Machine>,
    /// Time of one of the program's loads, where each waits for the one before.
    predicted: Option<Quantity>,
    /// How often as fast a change without source made the program, where one did.
    faster: Option<f64>,
    /// How many times as much a CPU did with others in the program's waits, where that paid.
    harvested: Option<f64>,
}

/// What a step found.
#[derive(Debug, Default)]
struct Told {
    says: Vec<String>,
    figures: Vec<StepFigure>,
    figures_show: String,
    /// The record with all of it, in the tour's directory.
    record: Option<&'static str>,
}

/// Why a step was not carried out.
#[derive(Debug)]
struct NotRun {
    why: String,
    would_help: Option<String>,
}

impl NotRun {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), would_help: None }
    }
}

type Found = Result<Told, NotRun>;

/// A step: its question, the command that answers it for any program, and what carries it out.
type Step = (&'static str, String, fn(&mut Tour<'_>) -> Found);

/// What the program is, before anything is found.
const PROGRAM: [&str; 3] = [
    "The program is 'join', some C that comes with Gleaner. A shop has two million customers, each with a discount, and some \
     million orders, each of which names its customer. What have all orders earned?",
    "It does what databases do: it puts the customers into a hash table, goes through the orders, and looks up the customer of \
     each. So it reads, order after order, from places all over 128 MiB.",
    "Every figure here was measured on this machine in this run. Brackets are 95% intervals: [low, high].",
];

pub(crate) fn run(args: &TourArgs, console: &Console) -> anyhow::Result<Exit> {
    crate::limits::look_for_waiting()?;
    let began = Instant::now();
    let place = Place::new(&args.directory)?;
    let mut tour = Tour {
        place,
        console,
        stop: Stop::on_signals(),
        machine: None,
        predicted: None,
        faster: None,
        harvested: None,
    };
    console.text(&tell::beginning(&PROGRAM, console.width()))?;
    let steps: [Step; 5] = [
        ("How long does memory take on this machine?", machine::command(), machine::measured),
        (
            "What must a program expect that reads from all over 128 MiB?",
            machine::pattern_command(),
            machine::predicted,
        ),
        ("What does this program wait for?", profiled::command(), profiled::profiled),
        ("Can the program wait less?", fix::command(), fix::tried),
        ("What if the program cannot be changed?", harvested::command(), harvested::harvested),
    ];
    let mut told = Vec::new();
    for (title, command, carry_out) in steps {
        if tour.stop.asked() {
            break;
        }
        console.text(&tell::question(told.len() + 1, title, &command, console.width()))?;
        let found = carry_out(&mut tour);
        if tour.stop.asked() {
            break;
        }
        let step = step_of(title, command, found);
        console.text(&tell::answer(&step, console.width()))?;
        told.push(step);
    }
    let interrupted = tour.stop.asked();
    if interrupted && told.is_empty() {
        return Err(crate::failure::Refusal::failed("tour", "stopped before anything was found").into());
    }
    let processor = tour.machine.as_ref().map(tell::processor);
    let record = Document::now(records::tour::Tour {
        processor: processor.unwrap_or_else(|| "unknown".to_owned()),
        seconds: began.elapsed().as_secs_f64(),
        interrupted,
        program: PROGRAM.map(str::to_owned).to_vec(),
        steps: told,
        next: next_steps(tour.faster, tour.harvested),
    });
    crate::save::record(&tour.place.at(place::STORY), &record)?;
    let page = written(&tour.place, &record)?;
    console.text(&tell::end(&page, &record.body, console.width()))?;
    console.document(&record)?;
    Ok(if interrupted { Exit::Failed } else { Exit::Done })
}

fn step_of(title: &str, command: String, found: Found) -> TourStep {
    let step = TourStep {
        title: title.to_owned(),
        command,
        outcome: StepOutcome::Done,
        says: Vec::new(),
        figures: Vec::new(),
        figures_show: String::new(),
        record: None,
    };
    match found {
        Ok(told) => TourStep {
            says: told.says,
            figures: told.figures,
            figures_show: told.figures_show,
            record: told.record.map(str::to_owned),
            ..step
        },
        Err(NotRun { why, would_help }) => {
            TourStep { outcome: StepOutcome::NotRun { why, would_help }, ..step }
        }
    }
}

/// The page of the story and of the records behind it.
fn written(place: &Place, story: &Document<records::tour::Tour>) -> anyhow::Result<PathBuf> {
    let named = |name: &str, record: AnyRecord| report::Named { name: name.to_owned(), record };
    let mut all = vec![named(place::STORY, records::read_any(&place.at(place::STORY))?)];
    for name in story.body.steps.iter().filter_map(|step| step.record.as_deref()) {
        if all.iter().all(|other| other.name != name) {
            all.push(named(name, records::read_any(&place.at(name))?));
        }
    }
    let page = place.shown(place::PAGE);
    crate::save::bytes(&page, report::report(&all, &report::Options::default()).html.as_bytes())?;
    Ok(page)
}

/// What gained more here comes first.
fn next_steps(faster: Option<f64>, harvested: Option<f64>) -> Vec<NextStep> {
    let next = |command: &str, what_for: &str| NextStep {
        command: command.to_owned(),
        what_for: what_for.to_owned(),
    };
    let speed = next(
        "gleaner speed -- PROGRAM",
        "what makes your program faster without its source, proven by runs and kept for 'gleaner run'",
    );
    let harvest = next(
        "gleaner harvest --scavenger 'OTHER' -- PROGRAM",
        "run another program in its waits; profile first, and give the record by --profile",
    );
    let mut all = vec![
        next("gleaner doctor", "what works on this host, and what would help where something does not"),
        next(
            "gleaner profile -- PROGRAM",
            "which loads your program waits for, which data, and what would help",
        ),
    ];
    if harvested.unwrap_or(1.0) > faster.unwrap_or(1.0) {
        all.extend([harvest, speed]);
    } else {
        all.extend([speed, harvest]);
    }
    all.push(next(
        "gleaner measure",
        "this machine in full, in six minutes; all verbs use the record from then on",
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gained_more_here_comes_first() {
        let third = |faster, harvested| {
            let command = next_steps(faster, harvested)[2].command.clone();
            command.split(' ').nth(1).map(str::to_owned).unwrap()
        };
        assert_eq!(third(Some(1.3), Some(1.8)), "harvest");
        assert_eq!(third(Some(1.3), Some(1.1)), "speed");
        assert_eq!(third(None, None), "speed");
    }
}
