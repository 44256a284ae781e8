//! `gleaner model`: fits of a machine record; what is fitted, and how, is the room of that name.

use crate::console::Console;
use crate::failure::Exit;
use clap::Args;
use records::machine::Machine;
use std::path::PathBuf;

/// Fit levels of the memory hierarchy, with sizes and costs, to a machine record
///
/// Levels are fitted to the latency of dependent loads and to windows; straight lines with a bend
/// to accesses in sequence, chains side by side and latency beside traffic. Nothing that the host
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
    let bends = ::model::bends(&document.body);
    let nothing = fits.is_empty() && bends.is_empty();
    if console.json() {
        // One list for scripts: those without levels of memory are levels of counts or of traffic.
        let of_levels = fits.iter().map(serde_json::to_value);
        let of_bends = bends.iter().map(|bend| serde_json::to_value(bend.as_levels()));
        let all = of_levels.chain(of_bends).collect::<Result<Vec<_>, _>>()?;
        console.value(&serde_json::json!({ "fits": all, "bends": bends }))?;
    } else if !nothing {
        let next = "next: 'gleaner predict' answers what a pattern of accesses takes\n";
        let texts = [::model::text(&fits), ::model::bends_text(&bends), next.to_owned()];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        console.text(&texts.join("\n"))?;
    }
    if nothing {
        console.remark(
            "nothing to fit: the record has no points of the latency of dependent loads or of windows, and none \
             of loads at once; 'gleaner measure latency windows mlp bandwidth' measures all",
        );
    }
    Ok(Exit::Done)
}
