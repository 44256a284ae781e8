//! Random programs by csmith, with recorded seeds: each prints checksums of all its variables,
//! which twins must not change.
//!
//! `GLEANER_RANDOM` says how many seeds, counted from 1; `make test-random` runs thousands.

use crate::build::{Program, succeed};
use crate::directives::{Directives, End};
use crate::outcome::run;
use crate::trial;
use crate::variant::{COMPILERS, Group, LEVELS, Shape};
use libtest_mimic::Failed;
use rayon::prelude::*;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const HEADERS: &str = "/usr/include/csmith";
/// Each compiler, level and shape comes up.
const SEEDS: u64 = 64;
pub(crate) const BATCH: u64 = 8;
/// Small programs: many shapes of code rather than much of it.
const OPTIONS: [&str; 8] =
    ["--max-funcs", "5", "--max-block-depth", "3", "--max-block-size", "4", "--max-expr-complexity", "6"];
/// Some random programs never end. Those that compute for longer than this many seconds by
/// themselves are left out: by their own time, so that it does not hang on what else goes on here.
const LONG: u32 = 1;
/// Far more than any takes to compute for so long.
const LIMIT: Duration = Duration::from_secs(120);
/// What the kernel ends them with then.
const OVER: End = End::Signal(24);

/// Programs left out since they run for too long by themselves.
pub(crate) static LEFT_OUT: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn seeds() -> u64 {
    std::env::var("GLEANER_RANDOM").map_or(SEEDS, |seeds| seeds.parse().expect("GLEANER_RANDOM is a number"))
}

/// The version of csmith, if it is there. It leaves a file wherever it runs.
pub(crate) fn version() -> Option<String> {
    if !Path::new(HEADERS).join("csmith.h").exists() {
        return None;
    }
    let output =
        Command::new("csmith").arg("--version").current_dir(env!("CARGO_TARGET_TMPDIR")).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" "))
}

pub(crate) fn batch(folder: &Path, version: &str, from: u64, to: u64) -> Result<(), Failed> {
    let failures: Vec<String> = (from..=to)
        .into_par_iter()
        .filter_map(|seed| one(folder, version, seed).err().map(|why| format!("seed {seed}: {why}")))
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn one(folder: &Path, version: &str, seed: u64) -> Result<(), String> {
    let folder = folder.join(format!("seed-{seed}"));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let (source, made_by) = (folder.join("program.c"), folder.join("made-by"));
    let how = format!("{version} {OPTIONS:?}");
    if !std::fs::read_to_string(&made_by).is_ok_and(|found| found == how) {
        let mut command = Command::new("csmith");
        command
            .args(OPTIONS)
            .args(["--seed", &seed.to_string(), "--output"])
            .arg(&source)
            .current_dir(&folder);
        succeed(command, &folder)?;
        std::fs::write(&made_by, how).map_err(|e| e.to_string())?;
    }
    let directives = Directives::read(&format!("//# flags: -I{HEADERS}\n"), &folder)?;
    let program = Program { name: format!("random::{seed}"), source, directives, folder };
    let group = group(seed);
    if group.compiler.version().is_none() {
        return Ok(());
    }
    program.build(&group)?;
    let built = program.variant_folder(&group, group.shapes[0]);
    let endless = built.join("endless");
    if !endless.exists() {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -St {LONG}; exec original/program")]).current_dir(&built);
        let outcome = run(command, &built, LIMIT)?;
        if outcome.end != OVER {
            return trial::all(&program, &[group]);
        }
        std::fs::write(&endless, "").map_err(|e| e.to_string())?;
    }
    LEFT_OUT.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Each seed is built in one way; all ways come up in turn, those with the whole library seldom.
fn group(seed: u64) -> Group {
    let seed = seed as usize;
    let shape = match seed / 8 % 8 {
        0 => Shape::Static,
        1..4 => Shape::Fixed,
        4 => Shape::Stripped,
        _ => Shape::Pie,
    };
    Group {
        compiler: &COMPILERS[seed % 2],
        level: LEVELS[seed / 2 % 4],
        shapes: vec![shape],
        not_poisoned: Vec::new(),
    }
}
