//! One profile record in the format of another tool.

use super::{ExportArgs, Format, FormatKind, Weight, no_stacks};
use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::save;
use records::Problem;
use records::profile::Profile;
use std::io::{self, IsTerminal};
use std::path::Path;

pub(super) fn run(
    args: &ExportArgs,
    asked: Format,
    record: &Path,
    console: &Console,
) -> anyhow::Result<Exit> {
    let FormatKind::Profile(format) = asked.kind() else { return Err(no_stacks(asked).into()) };
    let option = format!("--format {}", asked.word());
    let file = args.file();
    if args.weight.is_some() && !format.traits().stacks {
        return Err(no_stacks(asked).into());
    }
    match file {
        Some(path) => save::check(path)?,
        None if format.traits().binary && io::stdout().is_terminal() => {
            let refusal = Refusal::wrong_use(option, "binary, and standard output is a terminal");
            return Err(refusal.would_help("name a file with -o").into());
        }
        None => {}
    }
    let document = read(record)?;
    let weight = match args.weight {
        None | Some(Weight::Time) => export::Weight::Time,
        Some(Weight::Stall) => export::Weight::Stall,
    };
    let named = || record.display().to_string();
    let bytes = export::profile(&document, format, weight)
        .map_err(|error| Refusal::wrong_use(named(), format!("{error}: nothing for {option}")))?;
    if format.traits().stacks && !export::has_stacks(&document.body) {
        console.remark(&format!("{}: no stacks were sampled; these are its functions alone", named()));
    }
    match file {
        Some(path) => {
            save::bytes(path, &bytes)?;
            if let Some(how) = asked.opened_by(&path.display().to_string()) {
                console.remark(&format!("next: {how}"));
            }
        }
        None => console.stdout_bytes(&bytes)?,
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> anyhow::Result<records::Document<Profile>> {
    records::read::<Profile>(path).map_err(|error| match error.problem {
        Problem::WrongKind { found, .. } => {
            let why = format!("a '{found}' record, where this format takes profile records");
            let refusal = Refusal::wrong_use(path.display().to_string(), why);
            refusal.would_help("--parquet, --format jsonl and --format prometheus take any").into()
        }
        _ => error.into(),
    })
}
