//! `gleaner profile` on the programs in programs/sharing: cache lines that threads share, and
//! memory that one thread makes for several. Each program says in its head what is found.
//!
//! Threads disturb one another only while they run at the same time. So a program in which nothing
//! is found gets a few attempts: on a busy machine its threads may hardly have met.

use records::profile::{Finding, FindingKind, Profile, Sharing};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Place, text};

const ATTEMPTS: usize = 4;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/sharing").join(name)
}

/// One of the programs, compiled; `None` where its compiler is missing.
fn compiled(name: &str, options: &[&str]) -> Option<Place> {
    let place = Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner"));
    let compiler =
        if Path::new(name).extension().is_some_and(|extension| extension == "cpp") { "c++" } else { "cc" };
    let mut command = place.command(compiler);
    command.args(["-O1", "-g", "-pthread"]).args(options).arg("-o").arg(place.at("p")).arg(source(name));
    let done = command.status().is_ok_and(|status| status.success());
    if !done {
        eprintln!("skipped: no {compiler}, or {name} is nothing that it takes");
    }
    done.then_some(place)
}

/// Its profile; `None` where nothing may be sampled, or threads cannot run at the same time.
fn profiled(place: &Place) -> Option<Profile> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: there is one CPU");
        return None;
    }
    let mut command: Command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["profile", "-q", "--frequency", "4000", "--no-stacks", "-o", "profile.json", "--", "./p"]);
    let output = command.output().unwrap();
    if output.status.code() == Some(3) {
        eprintln!("skipped: {}", text(&output.stderr));
        return None;
    }
    let read = records::read::<Profile>(&place.at("profile.json"));
    Some(read.unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr))).body)
}

fn of(profile: &Profile, kind: FindingKind) -> Vec<&Finding> {
    profile.findings.iter().filter(|finding| finding.kind == kind).collect()
}

/// Asserts that a finding of this kind is there, about data and code with these words, and that
/// none of the other kind is. What it says; `None` where nothing can be said here.
fn is_found(name: &str, options: &[&str], kind: FindingKind, object: &str, function: &str) -> Option<String> {
    let place = compiled(name, options)?;
    let mut seen = String::new();
    for _ in 0..ATTEMPTS {
        let profile = profiled(&place)?;
        if let Some(finding) = of(&profile, kind).first() {
            let about = finding.object.as_deref().unwrap_or("");
            assert!(about.contains(object), "{finding:?}");
            assert!(finding.function.as_deref().is_some_and(|name| name.contains(function)), "{finding:?}");
            assert!(finding.line.is_some() && finding.gain.estimate().is_some(), "{finding:?}");
            match kind {
                FindingKind::FalseSharing => {
                    assert!(finding.says.contains("different bytes"), "{finding:?}");
                    let line = profile.lines.iter().find(|line| line.sharing == Sharing::False).unwrap();
                    assert!(line.parts.iter().any(|part| part.writes > 0), "{line:?}");
                }
                FindingKind::TrueSharing => {
                    assert_eq!(of(&profile, FindingKind::FalseSharing), Vec::<&Finding>::new());
                }
                _ => {}
            }
            return Some(finding.says.clone());
        }
        seen = format!("{:#?}", profile.lines);
    }
    panic!("{name} {options:?}: no {kind:?}: {seen}");
}

/// Asserts that nothing is found.
fn is_silent(name: &str, options: &[&str]) {
    let Some(place) = compiled(name, options) else { return };
    let Some(profile) = profiled(&place) else { return };
    for kind in [FindingKind::FalseSharing, FindingKind::TrueSharing, FindingKind::FirstTouch] {
        assert_eq!(of(&profile, kind), Vec::<&Finding>::new(), "{name} {options:?}: {:#?}", profile.lines);
    }
}

use FindingKind::{FalseSharing, FirstTouch, TrueSharing};

#[test]
fn arguments_of_threads_share_lines() {
    is_found("linear_regression.c", &[], FalseSharing, "malloc in main", "regress");
    is_found("histogram.c", &[], FalseSharing, "stack of main", "count");
}

#[test]
fn sums_of_threads_share_lines() {
    is_found("streamcluster.c", &[], FalseSharing, "open_centres", "weigh");
}

#[test]
fn small_locks_share_lines() {
    is_found("spinlocks.c", &[], FalseSharing, "pool", "update");
}

#[test]
fn locks_in_pools_are_named() {
    let says = is_found("lock_pool.c", &[], FalseSharing, "pool", "update");
    assert!(says.is_none_or(|says| says.contains("false sharing of locks") && says.contains("pool (p)")));
    let says = is_found("lock_pool.c", &["-DONE"], TrueSharing, "pool", "update");
    assert!(says.is_none_or(|says| says.contains("wait for one lock")));
}

#[test]
fn all_hot_lines_of_one_object_are_told() {
    let Some(says) = is_found("three_lines.c", &[], FalseSharing, "counts", "") else { return };
    assert!(says.contains("3 cache lines"), "{says}");
    for function in ["bytes", "words", "lines"] {
        assert!(says.contains(&format!(" in {function} (three_lines.c:")), "{says}");
    }
}

#[test]
fn processes_share_lines_of_memory_that_they_map() {
    let says = is_found("processes.c", &[], FalseSharing, "", "count");
    assert!(says.is_none_or(|says| says.starts_with("2 processes use different bytes of one cache line")));
    is_found("processes.c", &["-DSAME"], TrueSharing, "", "count");
    is_silent("processes.c", &["-DAPART"]);
}

#[test]
fn the_allocator_puts_side_by_side_what_threads_use() {
    is_found("string_match.c", &[], FalseSharing, "new_key", "encrypt");
    is_found("shared_ptr.cpp", &[], FalseSharing, "make_shared", "copy");
}

#[test]
fn what_threads_truly_share_is_no_matter_of_lines() {
    is_found("counter.c", &[], TrueSharing, "counter", "count");
    is_found("queue.c", &[], TrueSharing, "queue", "take_turns");
    is_found("shared_ptr.cpp", &["-DONE"], TrueSharing, "make_shared", "copy");
}

#[test]
fn what_does_not_disturb_is_not_reported() {
    is_silent("linear_regression.c", &["-DPAD=128"]);
    is_silent("padded.c", &[]);
    is_silent("read_only.c", &[]);
}

#[test]
fn threads_that_take_turns_do_not_disturb() {
    is_silent("phases.c", &[]);
    is_silent("handed_over.c", &[]);
}

#[test]
fn first_touch_by_one_thread_of_what_several_use_is_found() {
    is_found("triad.c", &[], FirstTouch, "main", "initialise");
    is_silent("triad.c", &["-DPARALLEL"]);
}
