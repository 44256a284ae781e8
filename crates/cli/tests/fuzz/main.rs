//! Whatever a file holds, it is read in the memory and the time that its size is worth, and nothing
//! panics.
//!
//! Each target gets a second here, and as many as `GLEANER_FUZZ_SECONDS` says by `make fuzz`. A
//! case is one number: a case that fails is told with its number and its files are kept;
//! `GLEANER_FUZZ_CASE=NUMBER cargo test -p gleaner-cli --test fuzz -- TARGET` does it again.
//! Numbers begin at `GLEANER_FUZZ_START`.
//!
//! Bounds: see [`bounds`].

mod anatomy;
mod bounds;
mod crowds;
mod damage;
mod random;
mod soup;
mod specimens;
mod stored;
mod targets;

use bounds::Watch;
use libtest_mimic::{Arguments, Failed, Trial};
use random::Random;
use rustix::process::{Resource, Rlimit, setrlimit};
use specimens::Program;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};
use targets::{Case, TARGETS, Target};

/// Tells how much memory is taken.
#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

static PANIC: Mutex<String> = Mutex::new(String::new());
static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| specimens::programs(&folder()));

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1); // memory is counted for the whole process
    let most = 8 << 30;
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum: Some(most) })
        .expect("limits may be lowered");
    std::panic::set_hook(Box::new(|info| {
        let mut last = PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = info.to_string().replace('\n', " ");
    }));
    let trials = TARGETS.iter().map(|target| Trial::test(target.name, || fuzz(target))).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    std::fs::create_dir_all(&folder).expect("a folder for what fails");
    folder
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    Some(number.unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

fn fuzz(target: &Target) -> Result<(), Failed> {
    let programs = &*PROGRAMS;
    if let Some(case) = number("GLEANER_FUZZ_CASE") {
        return run(target, case, programs).map(|_| ());
    }
    let start = number("GLEANER_FUZZ_START").unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(number("GLEANER_FUZZ_SECONDS").unwrap_or(1));
    let (mut cases, mut accepted) = (0, 0);
    let mut slowest = (Duration::ZERO, 0);
    while Instant::now() < until {
        let begin = Instant::now();
        accepted += u64::from(run(target, start + cases, programs)?);
        slowest = slowest.max((begin.elapsed(), start + cases));
        cases += 1;
    }
    let (longest, which) = slowest;
    println!(
        "{cases} cases from {start:#x} on, {accepted} of them read to the end; {which:#x} took {longest:.0?}"
    );
    Ok(())
}

/// One case; whether it was accepted.
fn run(target: &Target, number: u64, programs: &[Program]) -> Result<bool, Failed> {
    let mut random = Random::new(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let case = (target.make)(programs, &mut random);
    let watch = Watch::begin(target.name, number);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(&case)));
    let taken = MEMORY.peak_usage().saturating_sub(before);
    drop(watch);
    let wrong = match outcome {
        Err(_) => Some(PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()),
        Ok(accepted) => bounds::too_much(&case, accepted, taken),
    };
    match (wrong, outcome) {
        (Some(wrong), _) => Err(told(target, number, &case, &wrong)),
        (None, outcome) => Ok(outcome.is_ok_and(|accepted| accepted.is_some())),
    }
}

fn told(target: &Target, number: u64, case: &Case, wrong: &str) -> Failed {
    for (index, file) in case.files.iter().enumerate() {
        let path = folder().join(format!("{}-{number:#x}-{index}", target.name));
        std::fs::write(&path, file).expect("a place for what fails");
    }
    let again = format!(
        "GLEANER_FUZZ_CASE={number:#x} cargo test -p gleaner-cli --test fuzz -- --exact {}",
        target.name
    );
    format!(
        "{wrong}\n  case {number:#x}, {} bytes, choice {}, kept in {}; again: {again}",
        case.size(),
        case.choice,
        folder().display()
    )
    .into()
}
