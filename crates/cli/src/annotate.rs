//! `gleaner annotate`: the code of functions that took time, with what each instruction cost.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::figures::percent;
use crate::plain::escaped;
use clap::Args;
use insight::measured_share;
use records::profile::{AnnotatedFunction, AnnotatedInstruction, Profile};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Show the code of functions with what each instruction cost
///
/// Time is put down to the instruction that the core waited for, not to the one behind it on which
/// the sample landed. Source lines are shown where the module has debug information and the source
/// can be read.
#[derive(Debug, Args)]
pub(crate) struct AnnotateArgs {
    /// A profile record ('-' for standard input)
    #[arg(value_name = "RECORD")]
    record: PathBuf,

    /// Functions whose name has this text in it [default: those with most CPU time]
    #[arg(value_name = "FUNCTION")]
    function: Option<String>,

    /// Show only code near instructions that cost at least this share of the CPU time, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.2)]
    least: f64,

    /// How many functions are shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    top: usize,
}

pub(crate) fn run(args: &AnnotateArgs, console: &Console) -> anyhow::Result<Exit> {
    let profile = records::read::<Profile>(&args.record)?.body;
    let wanted = args.function.as_deref();
    let is_wanted = |code: &&AnnotatedFunction| {
        wanted.is_none_or(|text| code.function.as_deref().is_some_and(|name| name.contains(text)))
    };
    let shown: Vec<&AnnotatedFunction> = profile.code.iter().filter(is_wanted).take(args.top).collect();
    if shown.is_empty() {
        let what = args.record.display().to_string();
        return Err(match wanted {
            None => Refusal::wrong_use(what, "the record has no code of any function"),
            Some(text) => Refusal::wrong_use(
                what,
                format!("no function with '{text}' in its name took enough CPU time"),
            )
            .would_help("the functions that did: gleaner show RECORD .functions"),
        }
        .into());
    }
    if console.json() {
        console.value(&serde_json::to_value(&shown)?)?;
        return Ok(Exit::Done);
    }
    let mut sources = Sources::default();
    let mut text = String::new();
    for code in shown {
        function(&mut text, code, profile.sampling.samples, args.least / 100.0, &mut sources);
    }
    console.text(&text)?;
    Ok(Exit::Done)
}

fn function(text: &mut String, code: &AnnotatedFunction, all: u64, least: f64, sources: &mut Sources) {
    let name = code.function.clone().unwrap_or_else(|| format!("{:#x}", code.address));
    let share = percent(&measured_share(code.samples, all));
    let _ = writeln!(text, "{} in {}: {share} of CPU time", escaped(&name), escaped(&code.module));
    let mut line = None;
    let mut expected = None;
    for instruction in near(&code.instructions, least * all as f64) {
        if expected.is_some_and(|expected| expected != instruction.address) {
            let _ = writeln!(text, "{:>COST$}   ...", "");
        }
        expected = Some(instruction.address + u64::from(instruction.bytes));
        if let (Some(file), Some(number)) = (&instruction.file, instruction.line) {
            if line != Some((file, number)) {
                line = Some((file, number));
                let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
                let source = sources.line(file, number).unwrap_or_default();
                let _ =
                    writeln!(text, "{:>COST$}   {}:{number}  {}", "", escaped(&name), escaped(source.trim()));
            }
        }
        let _ = writeln!(
            text,
            "{:>COST$}   {:>8x}:  {}",
            cost(instruction, all),
            instruction.address,
            instruction.text
        );
    }
    text.push('\n');
}

/// Instructions in front of and behind each one that costs enough.
const AROUND: usize = 8;

/// The instructions near those with at least this number of samples.
fn near(all: &[AnnotatedInstruction], samples: f64) -> impl Iterator<Item = &AnnotatedInstruction> {
    let is_near = move |index: usize| {
        let around = &all[index.saturating_sub(AROUND)..(index + AROUND + 1).min(all.len())];
        around.iter().any(|instruction| instruction.samples as f64 >= samples.max(1.0))
    };
    all.iter().enumerate().filter(move |(index, _)| is_near(*index)).map(|(_, instruction)| instruction)
}

/// Columns of a cost, as `waits 20.3% [19.8, 20.8]`.
const COST: usize = 26;

fn cost(instruction: &AnnotatedInstruction, all: u64) -> String {
    if instruction.samples == 0 {
        return String::new();
    }
    let waits = if instruction.is_waited_for { "waits " } else { "" };
    format!("{waits}{}", percent(&measured_share(instruction.samples, all)))
}

/// Source files, read once.
#[derive(Default)]
struct Sources {
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// Larger files are no source.
    const LARGEST_BYTES: u64 = 16 << 20;

    fn line(&mut self, file: &str, number: u32) -> Option<&str> {
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| Self::read(Path::new(file)));
        lines.as_ref()?.get((number as usize).checked_sub(1)?).map(String::as_str)
    }

    /// A record may name any path: only what is a file is read.
    fn read(path: &Path) -> Option<Vec<String>> {
        let about = std::fs::metadata(path).ok()?;
        if !path.is_absolute() || !about.is_file() || about.len() > Self::LARGEST_BYTES {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }
}
