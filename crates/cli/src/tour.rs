//! `gleaner tour`: a first look: what this host allows, and a quick measurement of all.

use crate::console::Console;
use crate::failure::Exit;
use crate::measure::{self, MeasureArgs};
use crate::plain::escaped_lines;
use crate::wrap;
use clap::Args;
use records::host::Ability;
use std::fmt::Write;
use std::path::PathBuf;

/// Show what works on this host, and measure it with a few experiments, in about a minute
#[derive(Debug, Args)]
pub(crate) struct TourArgs {
    /// Write the record into this directory, which is created if necessary
    #[arg(long, value_name = "DIR", default_value = "gleaner-tour")]
    directory: PathBuf,
}

pub(crate) fn run(args: &TourArgs, console: &Console) -> anyhow::Result<Exit> {
    crate::save::directory(&args.directory)?;
    let host = crate::live::host();
    let mut text = String::from("What this host allows ('gleaner doctor' shows more)\n");
    tell(&mut text, "measure", &host.verdict.measure);
    tell(&mut text, "harvest", &host.verdict.harvest);
    let text = format!("{}\nMeasuring, about a minute.\n\n", escaped_lines(&text));
    console.text(&wrap::lines(&text, console.width()))?;

    let record = args.directory.join("machine.json");
    let exit = measure::run(&MeasureArgs::quickly(&record), console)?;
    if exit == Exit::Done {
        let path = record.display();
        let text = format!(
            "\nThe record is {path}\n  gleaner show {path} '.levels[0].latency'    one figure of it, with its interval\n  \
             gleaner measure    the same with more blocks, in six minutes\n  gleaner harvest --help    run other programs \
             in a program's memory stalls\n",
        );
        console.text(&wrap::lines(&text, console.width()))?;
    }
    Ok(exit)
}

fn tell(text: &mut String, what: &str, ability: &Ability) {
    let _ = match ability {
        Ability::Yes { detail } => writeln!(text, "  yes  {what}: {detail}"),
        Ability::No { why, would_help } => writeln!(text, "  no   {what}: {why}; would help: {would_help}"),
        Ability::Unknown { why } => writeln!(text, "  ?    {what}: {why}"),
    };
}
