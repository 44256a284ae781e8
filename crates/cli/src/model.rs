//! `gleaner model`: fits of a machine record; what is fitted, and how, is the room of that name.

use crate::console::Console;
use crate::failure::Exit;
use clap::Args;
use records::machine::Machine;
use std::path::PathBuf;

/// Fit levels of the memory hierarchy, with sizes and costs, to a machine record
///
/// Two experiments are fitted: the latency of dependent loads, and windows. Nothing that the host
/// says of its caches is used. Intervals come from the residuals of this one record; a boundary is
/// only reported if both halves of the measured areas show it.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// A record of 'gleaner measure' ('-' for standard input)
    #[arg(value_name = "RECORD")]
    record: PathBuf,
}

pub(crate) fn run(args: &ModelArgs, console: &Console) -> anyhow::Result<Exit> {
    let document = records::read::<Machine>(&args.record)?;
    let fits = ::model::fits(&document.body);
    if console.json() {
        console.value(&serde_json::json!({ "fits": fits }))?;
    } else if !fits.is_empty() {
        let next = "next: 'gleaner report' draws the points of this record\n";
        console.text(&format!("{}\n{next}", ::model::text(&fits)))?;
    }
    if fits.is_empty() {
        console.remark(
            "nothing to fit: the record has no points of the latency of dependent loads or of windows; \
             'gleaner measure latency windows' measures both",
        );
    }
    Ok(Exit::Done)
}
