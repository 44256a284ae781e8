//! Sides: runs put together, and what cannot be compared refused.

use crate::environment::{self, Circumstance};
use crate::figure::{Figure, Value};
use crate::{harvested, machine, profile, recipe};
use records::machine::Machine;
use records::profile::Profile;
use records::recipe::Recipe;
use records::run::Run as Harvest;
use records::{AnyRecord, Misfit, Record};
use units::Unit;

/// A record and where it comes from.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    pub record: AnyRecord,
}

/// Runs of the same thing.
#[derive(Clone, Debug)]
pub struct Side {
    pub name: String,
    pub runs: Vec<Member>,
}

/// Why sides are not compared, in one line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// A run's figures, and what they were taken under.
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) figures: Vec<Figure>,
    pub(crate) circumstances: Vec<Circumstance>,
    /// What makes the run doubtful.
    pub(crate) doubts: Vec<String>,
}

pub(crate) struct Read {
    pub(crate) name: String,
    pub(crate) runs: Vec<Run>,
}

/// A figure of one side: its values in the runs that resolved it.
pub(crate) struct OnSide {
    pub(crate) values: Vec<Value>,
    pub(crate) unit: Unit,
    pub(crate) disturbed: usize,
}

/// The kind of all records, and the sides.
pub(crate) fn read(sides: &[Side]) -> Result<(String, Vec<Read>), Refused> {
    let Some(first) = sides.first().and_then(|side| side.runs.first()) else {
        return Err(Refused("no record to compare with".to_owned()));
    };
    let kind = first.record.header.kind.clone();
    for (at, run) in sides.iter().flat_map(|side| &side.runs).enumerate() {
        if run.record.header.kind != kind {
            return Err(Refused(format!(
                "{} is a {} record, {} a {kind} record: only records of one kind can be compared",
                run.name, run.record.header.kind, first.name
            )));
        }
        // Once as two runs, or against itself, a record would pass for agreement.
        let earlier = sides.iter().flat_map(|side| &side.runs).take(at);
        if let Some(same) = earlier.into_iter().find(|earlier| earlier.record == run.record) {
            return Err(Refused(format!("{} and {} are the same run", same.name, run.name)));
        }
    }
    let sides: Result<Vec<Read>, Refused> = sides.iter().map(read_side).collect();
    Ok((kind, sides?))
}

fn read_side(side: &Side) -> Result<Read, Refused> {
    if side.runs.is_empty() {
        return Err(Refused(format!("{}: no record in it", side.name)));
    }
    let runs: Result<Vec<Run>, Refused> = side.runs.iter().map(read_run).collect();
    Ok(Read { name: side.name.clone(), runs: runs? })
}

fn read_run(member: &Member) -> Result<Run, Refused> {
    let record = &member.record;
    let unsound = |misfit: Misfit| Refused(format!("{}: {misfit}", member.name));
    let header = &record.header;
    let (figures, circumstances, doubts) = match header.kind.as_str() {
        "machine" => {
            let machine = Machine::from_body(&record.body).map_err(unsound)?;
            let stopped = machine.run.interrupted.then(|| format!("{} was stopped early", member.name));
            let circumstances = environment::of_machine(header, &machine);
            (machine::figures(&machine), circumstances, Vec::from_iter(stopped))
        }
        "profile" => {
            let profile = Profile::from_body(&record.body).map_err(unsound)?;
            (profile::figures(&profile), environment::of_profile(header, &profile), Vec::new())
        }
        "run" => {
            let run = Harvest::from_body(&record.body).map_err(unsound)?;
            (harvested::figures(&run), environment::of_run(header, &run), Vec::new())
        }
        "recipe" => {
            let recipe = Recipe::from_body(&record.body).map_err(unsound)?;
            (recipe::figures(&recipe), environment::of_recipe(header, &recipe), Vec::new())
        }
        other => {
            let why = "only machine, profile, recipe and run records have figures to compare";
            return Err(Refused(format!("{} is a {other} record: {why}", member.name)));
        }
    };
    if figures.iter().all(|figure| figure.value().is_none()) {
        return Err(Refused(format!("{}: it has no figure to compare", member.name)));
    }
    Ok(Run { name: member.name.clone(), figures, circumstances, doubts })
}

impl Read {
    pub(crate) fn figure(&self, name: &str) -> Option<OnSide> {
        let figures = self.runs.iter().filter_map(|run| run.figures.iter().find(|f| f.name == name));
        let resolved: Vec<&Figure> = figures.filter(|figure| figure.value().is_some()).collect();
        Some(OnSide {
            unit: resolved.first()?.unit()?,
            values: resolved.iter().filter_map(|figure| figure.value()).collect(),
            disturbed: resolved.iter().filter(|figure| figure.is_disturbed()).count(),
        })
    }

    /// Names of figures of any of its runs, headline figures first, each with its first appearance.
    pub(crate) fn names(&self) -> Vec<&Figure> {
        let mut names: Vec<&Figure> = Vec::new();
        for figure in self.runs.iter().flat_map(|run| &run.figures) {
            if !names.iter().any(|known| known.name == figure.name) {
                names.push(figure);
            }
        }
        names.sort_by_key(|figure| !figure.headline);
        names
    }
}
