//! One program: every variant as it is, with identity twins, with poisoned twins, with prefetches
//! ahead of every load, and with twins torn out.

use crate::build::{Program, fresh};
use crate::directives::End;
use crate::outcome::{Outcome, difference, run};
use crate::tear::{named, tear};
use crate::variant::{Group, Shape};
use image::elf::symbols::Symbols;
use rayon::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// Far more than any program takes; so that nothing hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// A program without its twins may wait for a thread that died. If it ends later, the test does not
/// see it.
const TORN_LIMIT: Duration = Duration::from_secs(2);

/// How many failed variants of one program are described.
const SHOWN: usize = 6;

/// What was done, for the summary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) variants: usize,
    pub(crate) runs: usize,
    pub(crate) torn: usize,
    pub(crate) rewrites: usize,
    pub(crate) functions: u64,
    pub(crate) twinned: u64,
}

pub(crate) static TOTALS: Mutex<Totals> =
    Mutex::new(Totals { variants: 0, runs: 0, torn: 0, rewrites: 0, functions: 0, twinned: 0 });

fn count(change: impl FnOnce(&mut Totals)) {
    change(&mut TOTALS.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
}

/// How a variant's original ends and what it prints, and the functions whose twins are entered only
/// by other twins there, since the entries of their originals had to be left as they were.
struct Done {
    outcome: Outcome,
    not_entered: Vec<String>,
}

/// All variants; what failed, with how to repeat it.
pub(crate) fn all(program: &Program, groups: &[Group]) -> Result<(), String> {
    let done: Vec<(String, Result<Done, String>)> =
        groups.par_iter().flat_map_iter(|group| one_group(program, group)).collect();
    let mut failures: Vec<String> = Vec::new();
    let mut first: Option<(&str, &Outcome)> = None;
    for (variant, result) in &done {
        match (result, first) {
            (Err(why), _) => failures.push(format!("{variant}: {why}")),
            (Ok(done), None) => first = Some((variant, &done.outcome)),
            (Ok(done), Some((other, expected))) => {
                if let Some(how) = difference(expected, &done.outcome).filter(|_| !program.directives.varies)
                {
                    failures.push(format!("{variant} is not like {other}, even as it is: {how}"));
                }
            }
        }
    }
    for function in &program.directives.twins {
        let passed = done.iter().filter_map(|(_, result)| result.as_ref().ok());
        let not_entered = passed.filter(|done| done.not_entered.contains(function)).count();
        if not_entered * 2 > done.len() {
            failures.push(format!("the twin of {function} is not entered in {not_entered} variants"));
        }
    }
    let failed = failures.len();
    if failed == 0 {
        return Ok(());
    }
    let more = failures.len().saturating_sub(SHOWN);
    failures.truncate(SHOWN);
    if more > 0 {
        failures.push(format!("and {more} more like these, or not"));
    }
    Err(format!("{failed} of {} variants failed\n{}", done.len(), failures.join("\n")))
}

fn one_group(program: &Program, group: &Group) -> Vec<(String, Result<Done, String>)> {
    let built = program.build(group);
    let each = |&shape: &Shape| {
        let result = built.clone().and_then(|()| one(program, group, shape));
        (group.variant(shape), result)
    };
    group.shapes.iter().map(each).collect()
}

fn one(program: &Program, group: &Group, shape: Shape) -> Result<Done, String> {
    let folder = program.variant_folder(group, shape);
    let expected = start(&folder, "original", LIMIT)?;
    if expected.end != program.directives.end || expected.out.is_empty() {
        let printed = String::from_utf8_lossy(&expected.out);
        return Err(format!("the original ended with {:?} and printed {printed:?}", expected.end));
    }
    let symbols = folder.join(if shape == Shape::Stripped { "symbols" } else { "original/program" });
    let symbols = std::fs::read(&symbols).map_err(|e| e.to_string())?;
    let mut failures = Vec::new();
    let (mut not_entered, mut kept) = (Vec::new(), Vec::new());
    let modes = if group.not_poisoned.contains(&shape) {
        &["identity"][..]
    } else {
        &["identity", "poison", "prefetch-all"]
    };
    for &mode in modes {
        let tried = twin(&folder, mode).and_then(|report| {
            if mode == "identity" {
                has_no_twins(program, &symbols, &report.refused)?;
                kept = report.kept;
            }
            let found = start(&folder, mode, LIMIT)?;
            difference(&expected, &found).map_or(Ok(()), Err)
        });
        let unproven = mode == "poison" && group.is_among(shape, &program.directives.unproven);
        let failure = match tried {
            Err(why) if unproven && why.contains("was not proven") => None,
            Ok(()) if unproven => Some("was proven, against its directive".to_owned()),
            tried => tried.err(),
        };
        failures.extend(failure.map(|why| format!("{mode}: {why}")));
    }
    if failures.is_empty() {
        for function in &program.directives.twins {
            match dies_without(&folder, function, &symbols, &expected, &kept) {
                Ok(true) => {}
                Ok(false) => not_entered.push(function.clone()),
                Err(why) => failures.push(why),
            }
        }
    }
    count(|totals| totals.variants += 1);
    if failures.is_empty() {
        for mode in ["identity", "poison", "prefetch-all", "torn"] {
            let _ = std::fs::remove_dir_all(folder.join(mode));
        }
        return Ok(Done { outcome: expected, not_entered });
    }
    let name = group.variant(shape);
    Err(format!(
        "{}\n    cd {} && original/program; poison/program\n    {}\n    \
         GLEANER_VARIANTS={name} cargo test -p gleaner-cli --test rewriter -- --exact {}",
        failures.join("; "),
        folder.display(),
        program.in_one_command(group, shape),
        program.name
    ))
}

/// Runs the program in this folder of a variant.
fn start(folder: &Path, mode: &str, limit: Duration) -> Result<Outcome, String> {
    let mut command = Command::new(folder.join(mode).join("program"));
    command.arg0("program").current_dir(folder).env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin");
    count(|totals| totals.runs += 1);
    run(command, folder, limit)
}

/// What the coverage report says of single functions of the program.
#[derive(Debug, Default)]
struct Report {
    refused: Vec<(u64, String)>,
    /// Those with a twin, but untouched entries.
    kept: Vec<u64>,
}

/// Rewrites the program and its library.
fn twin(folder: &Path, mode: &str) -> Result<Report, String> {
    fresh(&folder.join(mode))?;
    let mut all = Report::default();
    for original in files(&folder.join("original"))? {
        let name = original.file_name().unwrap_or_default();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command.args(["twin", "--json", &format!("--{mode}")]).arg(&original);
        command.arg("-o").arg(folder.join(mode).join(name));
        let outcome = run(command, folder, LIMIT)?;
        if outcome.end != End::Exit(0) {
            return Err(format!("gleaner twin: {}", String::from_utf8_lossy(&outcome.err).trim_end()));
        }
        let report: serde_json::Value = serde_json::from_slice(&outcome.out).map_err(|e| e.to_string())?;
        let number = |field: &str| report[field].as_u64().ok_or_else(|| format!("no {field} in the report"));
        let (functions, twinned) = (number("functions_with_unwind_entry")?, number("functions_twinned")?);
        // What has no load to prefetch has no twin then.
        if mode != "prefetch-all" && twinned * 3 < functions.max(1) {
            return Err(format!(
                "only {twinned} of {functions} functions with unwind entries have twins: {}",
                report["refusals"]
            ));
        }
        count(|totals| {
            totals.rewrites += 1;
            totals.functions += functions;
            totals.twinned += twinned;
        });
        if name == "program" {
            for unit in report["refused"].as_array().into_iter().flatten() {
                let reason = unit["reason"].as_str().unwrap_or_default();
                all.refused.push((unit["address"].as_u64().unwrap_or(0), reason.to_owned()));
            }
            let kept = report["kept"].as_array().into_iter().flatten();
            all.kept.extend(kept.filter_map(|unit| unit["address"].as_u64()));
        }
    }
    Ok(all)
}

/// Functions that must have no twins have none, for the reason that is expected.
fn has_no_twins(program: &Program, symbols: &[u8], refused: &[(u64, String)]) -> Result<(), String> {
    let image = image::Image::parse(symbols).map_err(|e| e.to_string())?;
    let symbols = Symbols::of(&image, None);
    for (name, reason) in &program.directives.refused {
        let addresses = named(&symbols, name);
        let is = |why: &str| reason.split('|').any(|reason| why == reason);
        if !refused.iter().any(|(address, why)| addresses.contains(address) && is(why)) {
            return Err(format!(
                "{name} should have no twin, because {reason}; the report says {refused:x?}"
            ));
        }
    }
    Ok(())
}

/// The program must not do what it did when nobody may enter this function's twin any more: so it
/// was entered before. False if it was not, and the report said that its entry had to be left as it
/// was.
fn dies_without(
    folder: &Path,
    function: &str,
    symbols: &[u8],
    expected: &Outcome,
    kept: &[u64],
) -> Result<bool, String> {
    let torn = folder.join("torn");
    fresh(&torn)?;
    let (mut any, mut untouched) = (false, false);
    for file in files(&folder.join("identity"))? {
        let name = file.file_name().unwrap_or_default();
        let rewritten = std::fs::read(&file).map_err(|e| e.to_string())?;
        let original = std::fs::read(folder.join("original").join(name)).map_err(|e| e.to_string())?;
        let with_names = if name == "program" { symbols } else { original.as_slice() };
        let image = image::Image::parse(with_names).map_err(|e| e.to_string())?;
        let addresses = named(&Symbols::of(&image, None), function);
        untouched |= name == "program" && addresses.iter().any(|address| kept.contains(address));
        let without = tear(&rewritten, &addresses);
        any |= without.is_some();
        let path = torn.join(name);
        std::fs::write(&path, without.unwrap_or(rewritten)).map_err(|e| e.to_string())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(|e| e.to_string())?;
    }
    if !any {
        return Err(format!("{function} has no twin"));
    }
    count(|totals| totals.torn += 1);
    let found = start(folder, "torn", TORN_LIMIT)?;
    match difference(expected, &found) {
        Some(_) => Ok(true),
        None if untouched => Ok(false),
        None => Err(format!("the twin of {function} never ran")),
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}
