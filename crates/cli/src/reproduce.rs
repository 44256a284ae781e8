//! `gleaner reproduce`: the claims of published documents, each beside what this machine shows.

mod harvested;
mod programs;
mod sharing;
mod text;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::measure::{self, MeasureArgs};
use crate::{cpu, save, summary};
use ::reproduce::programs::Programs;
use ::reproduce::{Evidence, Ledger, ledger};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use lab::stop::Stop;
use records::Document;
use records::machine::Machine;
use records::reproduction::Reproduction;
use std::path::PathBuf;
use std::time::Instant;

fn document_values() -> Vec<PossibleValue> {
    ledger::DOCUMENTS.iter().map(|document| PossibleValue::new(document.name).help(document.title)).collect()
}

/// Test the claims of a published document on this machine
///
/// Shapes are tested: orders, ratios and cliffs; nanoseconds and cycles of another processor are
/// shown beside those of this one, and not tested. The interval decides: a claim is reproduced if
/// all of it has the shape, and differs if none of it has.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The document; without one, all are listed with what a run takes
    #[arg(value_name = "DOCUMENT", value_parser = PossibleValuesParser::new(document_values()))]
    document: Option<String>,

    /// List the claims, and measure nothing
    #[arg(long)]
    list: bool,

    /// Measure fewer points, and each less often
    #[arg(long)]
    quick: bool,

    /// Measure on this CPU
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Seed of the random choices, to repeat those of an earlier run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Take the figures of the machine from this record, and do not measure them; programs are run
    /// all the same
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["cpu", "seed"])]
    machine: Option<PathBuf>,

    /// Write the record to this file ('-' for standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &ReproduceArgs, console: &Console) -> anyhow::Result<Exit> {
    let console = &console.with_output(args.output.as_deref());
    let document = args.document.as_deref().and_then(ledger::find);
    match document {
        Some(document) if !args.list => tested(document, args, console),
        _ => {
            let documents = document.map_or_else(|| ledger::DOCUMENTS.to_vec(), |document| vec![document]);
            listed(&documents, args.list, console)
        }
    }
}

/// The documents, or their claims.
fn listed(documents: &[&'static Ledger], claims: bool, console: &Console) -> anyhow::Result<Exit> {
    if console.json() {
        console.value(&text::list_as_json(documents, claims))?;
    } else if claims {
        console.text(&text::claims(documents, console.width()))?;
    } else {
        console.text(&text::documents(documents, console.width()))?;
    }
    Ok(Exit::Done)
}

fn tested(document: &'static Ledger, args: &ReproduceArgs, console: &Console) -> anyhow::Result<Exit> {
    if let Some(cpu) = args.cpu {
        cpu::check(cpu)?;
    }
    if let Some(output) = &args.output {
        save::check(output)?;
    }
    let began = Instant::now();
    let machine = machine(document, args, console)?;
    let interrupted = machine.run.interrupted;
    if interrupted && machine.run.blocks.valid == 0 {
        return Err(Refusal::failed("reproduce", "stopped before anything was measured").into());
    }
    let mut evidence = Evidence { machine: Some(&machine), ..Evidence::default() };
    let stop = Stop::on_signals();
    if let Some((programs, ..)) = document.programs {
        let mut progress = console.progress();
        let gathered = match programs {
            Programs::Sharing => sharing::gather(&mut evidence, args.quick, stop, progress.as_mut()),
            Programs::Harvest => harvested::gather(&mut evidence, args.quick, stop, progress.as_mut()),
        };
        evidence.without = gathered.err();
        progress.finish();
    }
    let interrupted = interrupted || stop.asked();
    let processor = &machine.host.processor.name;
    let record = Document::now(Reproduction {
        document: document.name.to_owned(),
        title: document.title.to_owned(),
        processor: processor.get().map_or_else(|| "unknown".to_owned(), Clone::clone),
        grade: Some(machine.run.grade.clone()),
        seconds: began.elapsed().as_secs_f64(),
        interrupted,
        claims: ::reproduce::judge(document.claims, &evidence),
        curves: ::reproduce::curves(document, &evidence),
        tables: ::reproduce::tables(document, &evidence),
    });
    let kept = args.output.as_deref().map_or(Ok(()), |path| save::record(path, &record));
    let busy = summary::busy(&machine).unwrap_or_default();
    console.text(&(busy + &text::outcome(&record.body, console.width())))?;
    console.document(&record)?;
    kept?;
    if let Some(path) = args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        console.remark(&format!("wrote {}", path.display()));
    }
    Ok(if interrupted { Exit::Failed } else { Exit::Done })
}

fn machine(document: &Ledger, args: &ReproduceArgs, console: &Console) -> anyhow::Result<Machine> {
    if let Some(path) = &args.machine {
        return Ok(records::read::<Machine>(path)?.body);
    }
    let only = MeasureArgs {
        quick: args.quick,
        cpu: args.cpu,
        seed: args.seed,
        ..MeasureArgs::only(document.experiments)
    };
    measure::measured(&only, 0, console)
}
