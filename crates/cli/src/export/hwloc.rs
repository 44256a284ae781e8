//! One machine record for hwloc.

use super::{ExportArgs, Format};
use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::save;
use records::machine::Machine;
use std::path::Path;

pub(super) fn run(
    args: &ExportArgs,
    asked: Format,
    record: &Path,
    console: &Console,
) -> anyhow::Result<Exit> {
    if let Some(path) = args.file() {
        save::check(path)?;
    }
    let document = records::read::<Machine>(record)?;
    let xml = export::hwloc::xml(&document.body).map_err(|error| {
        let refusal = Refusal::wrong_use(record.display().to_string(), error.to_string());
        refusal.would_help("'gleaner probe' and 'gleaner measure latency bandwidth numa' measure it")
    })?;
    match args.file() {
        Some(path) => {
            save::bytes(path, xml.as_bytes())?;
            if let Some(how) = asked.opened_by(&path.display().to_string()) {
                console.remark(&format!("next: {how}"));
            }
        }
        None => console.stdout(&xml)?,
    }
    Ok(Exit::Done)
}
