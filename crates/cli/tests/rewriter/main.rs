//! Programs do the same rewritten as they do by themselves.
//!
//! Each source in `programs/rewriter/` is one test. It is built with gcc and clang, at four levels,
//! in four shapes, and runs as it is, with identity twins, and with twins in which everything
//! claimed dead is garbage before every instruction. What it prints and how it ends must be the
//! same. Then the twins of the functions it names are torn out of it, and it must fail: so they did
//! run.
//!
//! Not all variants are built each time: see `variant.rs`.
//!
//! To add a program: a source file there, one behaviour each; `directives.rs` lists what may stand
//! in its head. `random.rs` adds random programs. Variables that say what is run:
//!
//! | variable | what is run |
//! |---|---|
//! | `GLEANER_MATRIX=all` | all variants of each program, not a quarter of them |
//! | `GLEANER_VARIANTS=gcc-O2,static` | variants with one of these words in their names |
//! | `GLEANER_RANDOM=5000` | that count of random programs |

mod build;
mod directives;
mod outcome;
mod random;
mod tear;
mod trial;
mod variant;

use build::Program;
use directives::Directives;
use libtest_mimic::{Arguments, Trial};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    bound();
    // Some programs wait, as they should, or for what never comes: others go on meanwhile.
    let threads = 2 * testkit::processors();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("the only pool");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rewriter");
    let wanted: Vec<String> = std::env::var("GLEANER_VARIANTS")
        .map(|list| list.split(',').map(str::to_owned).collect())
        .unwrap_or_default();
    let mut skipped = Vec::new();
    let mut trials = Vec::new();
    for source in sources() {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (trial, lacking) = program(&name, source, &folder, &wanted);
        trials.push(trial);
        skipped.extend(lacking.into_iter().map(|what| format!("{name}: {what}")));
    }
    trials.push(Trial::test("matrix::pairs_are_met", || variant::pairs_are_met().map_err(Into::into)));
    trials.extend(random_programs(&folder, &mut skipped));
    let listing = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !listing {
        summary(&skipped);
    }
    conclusion.exit_code()
}

/// No process started from here takes the machine with it.
fn bound() {
    let most = |bytes: u64| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let limits = [(Resource::As, 8 << 30), (Resource::Fsize, 256 << 20), (Resource::Core, 0)];
    for (resource, bytes) in limits {
        setrlimit(resource, most(bytes)).expect("limits may be lowered");
    }
}

fn sources() -> Vec<PathBuf> {
    let folder = testkit::root().join("programs/rewriter");
    let entries = std::fs::read_dir(&folder).expect("the programs");
    let mut sources: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect();
    sources.sort();
    assert!(sources.len() > 3, "{}: no programs", folder.display());
    sources
}

/// A program's test, and what of it cannot be run here.
fn program(name: &str, source: PathBuf, folder: &Path, wanted: &[String]) -> (Trial, Vec<String>) {
    let text = std::fs::read_to_string(&source).expect("a source");
    let beside = source.parent().unwrap_or(Path::new(""));
    let directives = match Directives::read(&text, beside) {
        Ok(directives) => directives,
        Err(why) => return (Trial::test(name, move || Err(why.into())), Vec::new()),
    };
    let variant::Matrix { groups, lacking } =
        variant::matrix(&directives, wanted, variant::Breadth::of(name, wanted));
    let program = Program { name: name.to_owned(), source, directives, folder: folder.join(name) };
    let nothing = groups.is_empty();
    let trial = Trial::test(name, move || trial::all(&program, &groups).map_err(Into::into));
    if nothing {
        let why = if lacking.is_empty() {
            "not among the variants asked for".to_owned()
        } else {
            lacking.join(", ")
        };
        return (trial.with_kind(why).with_ignored_flag(true), lacking);
    }
    (trial, lacking)
}

fn random_programs(folder: &Path, skipped: &mut Vec<String>) -> Vec<Trial> {
    let Some(version) = random::version() else {
        skipped.push("random programs: no csmith, or no headers of it, here".to_owned());
        return Vec::new();
    };
    let last = random::seeds();
    (1..=last)
        .step_by(random::BATCH as usize)
        .map(|from| {
            let (folder, version) = (folder.join("random"), version.clone());
            let to = last.min(from + random::BATCH - 1);
            let name = format!("random::seeds_{from:04}_to_{to:04}");
            Trial::test(name, move || random::batch(&folder, &version, from, to))
        })
        .collect()
}

fn summary(skipped: &[String]) {
    let t = *trial::TOTALS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!(
        "{} variants, {} files rewritten, {} of {} functions twinned, {} runs, of these {} with twins torn out",
        t.variants, t.rewrites, t.twinned, t.functions, t.runs, t.torn
    );
    let left_out = random::LEFT_OUT.load(Ordering::Relaxed);
    if left_out > 0 {
        println!("{left_out} random programs left out: they run too long by themselves");
    }
    for what in skipped {
        println!("skipped: {what}");
    }
}
