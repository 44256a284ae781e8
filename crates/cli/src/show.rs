//! `gleaner show`: a record, or one thing in it, for people or for scripts.

mod line;
mod path;
mod table;
mod tree;

use crate::console::Console;
use crate::failure::Exit;
use crate::plain::escaped;
use crate::wrap;
use clap::Args;
use records::AnyRecord;
use serde_json::Value;
use std::path::PathBuf;

/// Show a record, or a part of it
///
/// PATH picks a part of the record by field names and indices, as in
/// .levels[0].latency.cycles.value
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A machine, profile, plan or run record ('-' for standard input)
    #[arg(value_name = "RECORD")]
    record: PathBuf,

    /// The part to show [default: all of it]
    #[arg(value_name = "PATH")]
    path: Option<String>,
}

pub(crate) fn run(args: &ShowArgs, console: &Console) -> anyhow::Result<Exit> {
    let record = records::read_any(&args.record)?;
    let whole = Value::Object(record.whole());
    let (shown, path) = match &args.path {
        Some(path) => (path::find(&whole, path)?, path.as_str()),
        None => (&whole, ""),
    };
    if console.json() {
        console.value(shown)?;
        return Ok(Exit::Done);
    }
    let style = tree::Style {
        colour: console.colour(),
        whole: !path.is_empty() && path != ".",
        width: console.width(),
    };
    let text = if style.whole { tree::draw(shown, &style) } else { summary(&record, &style) };
    console.text(&wrap::lines(&text, console.width()))?;
    Ok(Exit::Done)
}

fn summary(record: &AnyRecord, style: &tree::Style) -> String {
    let header = &record.header;
    let [kind, gleaner, created] = [&header.kind, &header.gleaner, &header.created].map(|text| escaped(text));
    let head =
        format!("{kind} record, version {}, written by gleaner {gleaner} at {created}\n", header.version);
    head + &tree::draw(&record.body, style)
}
