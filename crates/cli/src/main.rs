//! The `gleaner` binary: one file a verb, no logic.
//!
//! To add a verb: a file with its arguments (`clap::Args`) and `run(&Args, &Console) ->
//! anyhow::Result<Exit>`; its `mod` line here; a variant of [`Verb`] and a line in [`run`]; its
//! page in `generate/pages.rs`. Text for people goes through [`Console::text`], a record through
//! [`Console::document`], never through `println!`: `gleaner … | head` must not panic, and `--json`
//! writes nothing but the record to standard output. A command that cannot be carried out returns a
//! [`Refusal`].
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // see above

mod annotate;
mod children;
mod compare;
mod console;
mod cpu;
mod csv;
mod doctor;
#[cfg(test)]
mod documented;
mod export;
mod failure;
mod figures;
mod generate;
mod harvest;
mod help;
mod limits;
mod live;
mod measure;
mod model;
mod plain;
mod predict;
mod probe;
mod profile;
mod progress;
mod proof;
mod report;
mod reproduce;
mod results;
mod save;
mod show;
mod sites;
mod speed;
mod started;
mod summary;
mod threads;
mod times;
mod top;
mod tour;
mod twin;
mod usage;
mod wrap;

use clap::{Parser, Subcommand};
use console::Console;
use failure::Exit;
use std::process::ExitCode;

/// So that an end for lack of memory can be told.
#[global_allocator]
static ALLOCATOR: lab::out_of_memory::NotingAllocator = lab::out_of_memory::NotingAllocator;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the measurement, the check or the program failed; 2 wrong use; 3 not possible on this host; \
4 something regressed or broke its limit, 5 something is inconclusive ('gleaner compare --fail-on', 'gleaner probe \
--expect'). \
After 'gleaner harvest' the exit code is that of the program which was run.";

/// Measures how long a core stalls on memory, shows which loads make it stall, and runs other
/// programs in a program's memory stalls
#[derive(Debug, Parser)]
#[command(name = "gleaner", version, max_term_width = 100, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Cli {
    /// Write the result to standard output as JSON, and text to standard error
    #[arg(long, global = true, help_heading = "Options of every verb")]
    json: bool,

    /// Print no progress and no remarks, only the result and errors
    #[arg(long, short, global = true, help_heading = "Options of every verb")]
    quiet: bool,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Tour(tour::TourArgs),
    Doctor(doctor::DoctorArgs),
    Measure(measure::MeasureArgs),
    Probe(probe::ProbeArgs),
    Profile(Box<profile::ProfileArgs>),
    Top(top::TopArgs),
    Speed(speed::SpeedArgs),
    Run(started::RunArgs),
    Harvest(Box<harvest::HarvestArgs>),
    Twin(twin::TwinArgs),
    Proof(proof::ProofArgs),
    Annotate(annotate::AnnotateArgs),
    Show(show::ShowArgs),
    Export(export::ExportArgs),
    Sites(sites::SitesArgs),
    Report(report::ReportArgs),
    Model(model::ModelArgs),
    Compare(compare::CompareArgs),
    Predict(predict::PredictArgs),
    Reproduce(reproduce::ReproduceArgs),
    Help(help::HelpArgs),
    Generate(generate::GenerateArgs),
}

fn run(cli: &Cli, console: &Console) -> anyhow::Result<Exit> {
    match &cli.verb {
        Verb::Tour(args) => tour::run(args, console),
        Verb::Doctor(args) => doctor::run(args, console),
        Verb::Measure(args) => measure::run(args, console),
        Verb::Probe(args) => probe::run(args, console),
        Verb::Profile(args) => profile::run(args, console),
        Verb::Top(args) => top::run(args, console),
        Verb::Speed(args) => speed::run(args, console),
        Verb::Run(args) => started::run(args, console),
        Verb::Harvest(args) => harvest::run(args, console),
        Verb::Twin(args) => threads::shared(|| twin::run(args, console)),
        Verb::Proof(args) => threads::shared(|| proof::run(args, console)),
        Verb::Annotate(args) => annotate::run(args, console),
        Verb::Show(args) => show::run(args, console),
        Verb::Export(args) => export::run(args, console),
        Verb::Sites(args) => sites::run(args, console),
        Verb::Report(args) => report::run(args, console),
        Verb::Model(args) => model::run(args, console),
        Verb::Compare(args) => compare::run(args, console),
        Verb::Predict(args) => predict::run(args, console),
        Verb::Reproduce(args) => reproduce::run(args, console),
        Verb::Help(args) => help::run(args, console),
        Verb::Generate(args) => generate::run(args),
    }
}

fn main() -> ExitCode {
    if let Some(exit) = lab::watchdog::serve_if_asked().or_else(lab::starter::serve_if_asked) {
        return exit;
    }
    if let Err(refusal) = limits::look_for_stack() {
        return failure::refused(&refusal);
    }
    with_enough_stack()
}

/// All the rest, in a frame of its own: what is inlined here would otherwise take stack before it
/// is known how much of it there is.
#[inline(never)]
fn with_enough_stack() -> ExitCode {
    lab::inherited::outlive_file_limits();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    let console = Console::new(cli.json, cli.quiet);
    let look = || {
        limits::look()?;
        // Of less than that, the line above tells how much would be enough.
        lab::out_of_memory::tell();
        Ok(())
    };
    match look().and_then(|()| run(&cli, &console)) {
        Ok(exit) => exit.into(),
        Err(error) => failure::report(&error),
    }
}
