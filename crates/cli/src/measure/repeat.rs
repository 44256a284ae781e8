//! `gleaner measure --repeat N`: runs of the same thing, a record each, into a directory: a side of
//! a comparison.

use super::{Format, MeasureArgs, ended, measured};
use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::{cpu, save};
use experiments::catalogue;
use records::Document;
use records::machine::Verdict;
use std::path::Path;

pub(crate) fn run(args: &MeasureArgs, console: &Console) -> anyhow::Result<Exit> {
    let directory = check(args, console)?;
    prepare(directory)?;
    let mut exit = Exit::Done;
    for number in 1..=args.repeat {
        let name = directory.join(file_name(number, args.repeat));
        save::check(&name)?;
        console.remark(&format!("run {number} of {}", args.repeat));
        let run = one(args, number, &name, console)?;
        if run != Exit::Done {
            exit = run;
        }
    }
    let directory = directory.display();
    console.text(&format!(
        "{} runs are in {directory}\nnext: 'gleaner compare {directory} OTHER' compares them with those of another directory\n",
        args.repeat
    ))?;
    Ok(exit)
}

fn check<'a>(args: &'a MeasureArgs, console: &Console) -> Result<&'a Path, Refusal> {
    let refuse = |why: &str| Err(Refusal::wrong_use(format!("--repeat {}", args.repeat), why));
    if console.json() {
        return refuse("writes files; --json writes one record to standard output");
    }
    if args.csv.is_some() || args.format != Format::Text {
        return refuse("writes records; --csv and --format are for one run");
    }
    if let Some(cpu) = args.cpu {
        cpu::check(cpu)?;
    }
    match args.output.as_deref() {
        Some(directory) if directory.as_os_str() != "-" => Ok(directory),
        _ => refuse("needs -o DIRECTORY for its records"),
    }
}

/// A directory for the runs of one side, in which no other runs are.
pub(crate) fn prepare(directory: &Path) -> Result<(), Refusal> {
    save::directory(directory)?;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut records = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
    match records.next() {
        Some(_) => Err(Refusal::wrong_use(
            directory.display().to_string(),
            "it holds records already, which would count as runs of the same thing",
        )),
        None => Ok(()),
    }
}

/// Names in the order of the runs.
pub(crate) fn file_name(number: u32, of: u32) -> String {
    format!("{number:0width$}.json", width = of.to_string().len())
}

fn one(args: &MeasureArgs, number: u32, name: &Path, console: &Console) -> anyhow::Result<Exit> {
    let machine = measured(args, number - 1, console)?;
    if machine.run.interrupted {
        let (done, of) = (number - 1, args.repeat);
        return Err(Refusal::failed("measure", format!("stopped; {done} of {of} runs are complete")).into());
    }
    let document = Document::now(machine);
    save::record(name, &document)?;
    let grade = match document.body.run.grade.verdict {
        Verdict::Quiet => "quiet",
        Verdict::Fair => "fair",
        Verdict::Noisy => "noisy",
    };
    console.remark(&format!("wrote {} (grade: {grade})", name.display()));
    ended(&catalogue::endings(&document.body.experiments), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_the_runs_came() {
        assert_eq!(file_name(3, 5), "3.json");
        assert_eq!(file_name(3, 12), "03.json");
    }
}
