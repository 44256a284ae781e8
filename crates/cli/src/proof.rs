//! `gleaner proof`: checks a rewritten program against its original.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::save::read;
use ::proof::check;
use ::proof::{Counts, Refusal as Unproven, Violation};
use clap::Args;
use std::path::{Path, PathBuf};

/// Check that a rewritten file is its original plus twins, and nothing else
///
/// The checker uses none of the rewriter's readers and analyses, and reads every instruction with
/// two decoders. It checks every byte of the original, every instruction of every twin, and what
/// headers, names and tables say, and reports each broken rule with its address. Not checked are
/// bytes of unwind tables that change nothing, and three fields of jump tables.
#[derive(Debug, Args)]
pub(crate) struct ProofArgs {
    /// The original file
    #[arg(value_name = "ORIGINAL")]
    original: PathBuf,

    /// The file that 'gleaner twin' made of it
    #[arg(value_name = "REWRITTEN")]
    rewritten: PathBuf,
}

pub(crate) fn run(args: &ProofArgs, console: &Console) -> anyhow::Result<Exit> {
    let (original, rewritten) = (read(&args.original)?, read(&args.rewritten)?);
    let found = check(&original, &rewritten);
    if console.json() {
        console.value(&document(&found))?;
    }
    match found {
        Ok(counts) => {
            if !console.json() {
                console.text(&proven(counts))?;
            }
            Ok(Exit::Done)
        }
        Err(Unproven::Wrong { violations, total }) => {
            if !console.json() {
                console.text(&crate::plain::escaped_lines(&listed(&violations)))?;
            }
            let what = args.rewritten.display().to_string();
            Err(Refusal::failed(what, format!("the proof failed: {total} rule violations")).into())
        }
        Err(Unproven::Original(error)) => Err(refused(&args.original, &error)),
        Err(unreadable) => Err(refused(&args.rewritten, &unreadable)),
    }
}

fn refused(path: &Path, why: &impl ToString) -> anyhow::Error {
    Refusal::wrong_use(path.display().to_string(), why.to_string()).into()
}

fn document(found: &Result<Counts, Unproven>) -> serde_json::Value {
    match found {
        Ok(counts) => serde_json::json!({ "proven": true, "checked": counts }),
        Err(Unproven::Wrong { violations, total }) => {
            serde_json::json!({ "proven": false, "violations": violations, "total": total })
        }
        Err(refusal) => serde_json::json!({ "proven": false, "why": refusal.to_string() }),
    }
}

fn proven(counts: Counts) -> String {
    format!(
        "proven: {} units with twins, {} entries, {} instructions, {} escapes, {} jump tables, {} call sites\n",
        counts.units, counts.patches, counts.instructions, counts.escapes, counts.tables, counts.call_sites
    )
}

fn listed(violations: &[Violation]) -> String {
    violations.iter().take(64).fold(String::new(), |text, violation| text + &violation.to_string() + "\n")
}
