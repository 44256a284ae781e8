//! `gleaner tour`: what Gleaner can do here, done once.

use crate::console::Console;
use crate::failure::Exit;
use crate::measure::{self, MeasureArgs};
use crate::wrap;
use clap::Args;
use records::host::Ability;
use std::fmt::Write;
use std::path::PathBuf;

/// See what Gleaner does: what works on this host, then everything it measures, in about a minute
#[derive(Debug, Args)]
pub(crate) struct TourArgs {
    /// Where the record goes; created if need be
    #[arg(long, value_name = "DIR", default_value = "gleaner-tour")]
    directory: PathBuf,
}

pub(crate) fn run(args: &TourArgs, console: &Console) -> anyhow::Result<Exit> {
    crate::save::directory(&args.directory)?;
    let host = crate::live::host();
    let mut text = String::from("What this host allows (more: gleaner doctor; profiling is not built yet)\n");
    tell(&mut text, "measure", &host.verdict.measure);
    for (backend, ability) in &host.verdict.profile {
        tell(&mut text, &format!("profile by {backend}"), ability);
    }
    tell(&mut text, "harvest", &host.verdict.harvest);
    console.text(&wrap::lines(&format!("{text}\nMeasuring, about a minute.\n\n"), console.width()))?;

    let record = args.directory.join("machine.json");
    let exit = measure::run(&MeasureArgs::quickly(&record), console)?;
    if exit == Exit::Done {
        let path = record.display();
        console.text(&format!(
            "\nThe record is {path}\n  gleaner show {path} '.levels[0].latency'    one figure of it, with its interval\n  \
             gleaner measure -o machine.json             the same with more blocks, in six minutes\n",
        ))?;
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
