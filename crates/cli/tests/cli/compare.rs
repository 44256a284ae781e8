//! `gleaner compare` from the outside: sides, exit codes, formats, and records that cannot be
//! compared. Whether verdicts are right is tried in `crates/compare/tests`.
//!
//! To add a case: sides of records by [`sides`], which scales one that was just measured.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;
use testkit::said;

fn gleaner(directory: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    // Not the record of the user who runs the tests.
    command.args(arguments).current_dir(directory).env("XDG_CACHE_HOME", "/proc/no/such/place");
    said(&command.stdin(Stdio::null()).output().expect("gleaner"))
}

/// A record of the clock alone, which takes a second: the same for all.
static MEASURED: LazyLock<Value> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("measured.record");
    let arguments = ["measure", "clock", "--quick", "-q", "-o", path.to_str().unwrap()];
    assert_eq!(gleaner(place.path(), &arguments).0, Some(0));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
});

/// Directories `a` and `b` with five runs each; in `b` the core clock is this factor of that in
/// `a`. Runs differ by a thousandth.
fn sides(factor: f64) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    for (side, factor) in [("a", 1.0), ("b", factor)] {
        std::fs::create_dir(place.path().join(side)).unwrap();
        for run in 0..5 {
            let mut record = MEASURED.clone();
            record["run"]["seed"] = (run * 2 + i32::from(side == "b")).into();
            let by = factor * (1.0 + 0.001 * f64::from((run * 3) % 5));
            record["experiments"]["clock"]["result"]["core"] = serde_json::json!({
                "value": 3e9 * by, "lo": 2.999e9 * by, "hi": 3.001e9 * by, "unit": "Hz", "basis": "measured"
            });
            let path = place.path().join(format!("{side}/{run}.json"));
            std::fs::write(path, record.to_string()).unwrap();
        }
    }
    place
}

#[test]
fn scripts_hear_of_a_regression_by_the_exit_code() {
    let place = sides(0.8);
    let compare = |more: &[&str]| gleaner(place.path(), &[&["compare", "a", "b"], more].concat());
    let (code, text, _) = compare(&[]);
    assert_eq!(code, Some(0), "without --fail-on a comparison is a comparison");
    assert!(text.contains("fails the gate") && text.contains("Gate: regressed"), "{text}");
    assert_eq!(compare(&["--fail-on", "regression"]).0, Some(4));
    assert_eq!(compare(&["--fail-on", "inconclusive"]).0, Some(0));
    assert_eq!(compare(&["--fail-on", "regression", "--min-effect", "40%"]).0, Some(0));
    let (code, json, errors) = compare(&["--json", "--fail-on", "regression,inconclusive"]);
    assert_eq!((code, errors.as_str()), (Some(4), ""));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["against"][0]["gate"]["outcome"], "regressed");
    assert_eq!(json["against"][0]["figures"][0]["gate"], "regressed");
    let (_, page, _) = compare(&["--format", "html"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Gate: regressed"), "{page}");
    let (_, text, _) = compare(&["--format", "md"]);
    assert!(text.contains("| **core clock** | 3"), "{text}");
    // The other way round it is an improvement.
    let (code, text, _) = gleaner(place.path(), &["compare", "b", "a", "--fail-on", "regression"]);
    assert!(code == Some(0) && text.contains("improved"), "{text}");
}

#[test]
fn the_same_passes_and_one_run_tells_too_little() {
    let place = sides(1.0);
    let compare = |sides: &[&str]| {
        gleaner(place.path(), &[&["compare"], sides, &["--fail-on", "regression,inconclusive"]].concat())
    };
    let (code, text, _) = compare(&["a", "b"]);
    assert!(code == Some(0) && text.contains("Gate: pass"), "{text}");
    let (code, text, _) = compare(&["a/0.json,a/1.json,a/2.json,a/3.json", "a/4.json,b"]);
    assert!(code == Some(0) && text.contains("(4 runs)") && text.contains("(6 runs)"), "{text}");
    let (code, text, errors) = compare(&["a/0.json", "b/0.json"]);
    assert!(code == Some(5) && text.contains("Gate: insufficient"), "{text}");
    assert!(errors.contains("gleaner measure --repeat 5"), "{errors}");
}

#[test]
fn a_gate_that_cannot_find_a_regression_does_not_pass() {
    let place = sides(0.8);
    let compare =
        |more: &[&str]| gleaner(place.path(), &[&["compare", "a/0.json", "b/0.json"], more].concat()).0;
    assert_eq!(compare(&[]), Some(0), "without --fail-on a comparison is a comparison");
    assert_eq!(compare(&["--fail-on", "regression"]), Some(5));
    assert_eq!(compare(&["--fail-on", "regression", "--inconclusive", "ok"]), Some(0));
    assert_eq!(compare(&["--fail-on", "inconclusive", "--inconclusive", "ok"]), Some(2));
    assert_eq!(compare(&["--inconclusive", "ok"]), Some(2));
}

#[test]
fn the_next_step_fits_the_kind_of_record() {
    let place = tempfile::tempdir().unwrap();
    let fixtures = testkit::root().join("crates/records/fixtures");
    for (fixture, verb) in [
        ("profile.v1.clock-three-loops.json", "gleaner profile -o"),
        ("run.v1.one-scavenger.json", "gleaner harvest -o"),
    ] {
        let mut record: Value =
            serde_json::from_slice(&std::fs::read(fixtures.join(fixture)).unwrap()).unwrap();
        std::fs::write(place.path().join("a.json"), record.to_string()).unwrap();
        record["created"] = "2026-01-01T00:00:00Z".into();
        std::fs::write(place.path().join("b.json"), record.to_string()).unwrap();
        let (code, _, errors) = gleaner(place.path(), &["compare", "a.json", "b.json"]);
        assert_eq!(code, Some(0), "{errors}");
        assert!(errors.contains(verb) && !errors.contains("measure"), "{errors}");
    }
}

#[test]
fn what_cannot_be_compared_is_told_in_a_line() {
    let place = sides(1.0);
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    let whole = std::fs::read_to_string(place.path().join("a/0.json")).unwrap();
    write("cut.json", &whole[..whole.len() / 2]);
    write("later.json", &whole.replacen("\"version\":1", "\"version\":9", 1));
    std::fs::create_dir(place.path().join("empty")).unwrap();
    let fixture = |name: &str| testkit::root().join("crates/records/fixtures").join(name);
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let (profile, plan) = (fixture("profile.v1.call-chain.json"), fixture("plan.v1.assumed-prices.json"));
    let (profile, plan) = (text(profile), text(plan));
    for (new, expected) in [
        ("cut.json", "cut.json: cut short"),
        ("later.json", "written by a later gleaner"),
        ("absent.json", "absent.json: cannot be read: No such file or directory"),
        ("empty", "empty: no records"),
        ("a/0.json", "a/0.json and a/0.json are the same run"),
        ("b/0.json,", "b/0.json,: one side of a comma is empty"),
        (profile.as_str(), "only records of one kind can be compared"),
    ] {
        let (code, _, errors) = gleaner(place.path(), &["compare", "a/0.json", new]);
        assert_eq!(code, Some(2), "{new}: {errors}");
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{new}: {errors}");
    }
    let (code, _, errors) =
        gleaner(place.path(), &["compare", &plan, &plan.replace("/plan.", "/../fixtures/plan.")]);
    assert!(code == Some(2) && errors.contains("are the same run"), "{errors}");
    assert_eq!(gleaner(place.path(), &["compare", "a/0.json"]).0, Some(2));
    assert_eq!(gleaner(place.path(), &["compare", "a", "b", "--min-effect", "0"]).0, Some(2));
}

#[test]
fn profiles_and_harvests_are_compared_too() {
    let place = tempfile::tempdir().unwrap();
    let fixtures = testkit::root().join("crates/records/fixtures");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(fixtures.join(name)).unwrap()).unwrap()
    };
    let scale = |quantity: &mut Value, by: f64| {
        for end in ["value", "lo", "hi"] {
            quantity[end] = (quantity[end].as_f64().expect("a figure") * by).into();
        }
    };
    for (kind, name) in
        [("profile", "profile.v1.clock-three-loops.json"), ("run", "run.v1.one-scavenger.json")]
    {
        for (side, by) in [("a", 1.0), ("b", 1.3)] {
            for run in 0..5 {
                let mut record = read(name);
                let by = by * (1.0 + 0.001 * f64::from((run * 3) % 5));
                let elapsed =
                    if kind == "run" { &mut record["wall"] } else { &mut record["summary"]["elapsed"] };
                scale(elapsed, by);
                if kind == "profile" {
                    scale(&mut record["loads"][0]["stall"], by);
                }
                std::fs::create_dir_all(place.path().join(kind).join(side)).unwrap();
                std::fs::write(
                    place.path().join(kind).join(side).join(format!("{run}.json")),
                    record.to_string(),
                )
                .unwrap();
            }
        }
        let (code, text, errors) =
            gleaner(&place.path().join(kind), &["compare", "a", "b", "--fail-on", "regression"]);
        assert_eq!(code, Some(4), "{text}{errors}");
        assert!(text.contains("elapsed time") && text.contains("fails the gate"), "{text}");
        assert_eq!(kind == "profile", text.contains("\n  load "), "the load that became worse: {text}");
    }
}

#[test]
fn runs_are_repeated_and_settings_take_turns() {
    let place = tempfile::tempdir().unwrap();
    let measure = |more: &[&str]| gleaner(place.path(), &[&["measure", "clock", "--quick"], more].concat());
    let (code, text, errors) = measure(&["--repeat", "2", "-o", "runs"]);
    assert!(code == Some(0) && text.contains("2 runs are in runs"), "{text}{errors}");
    let seed = |name: &str| -> u64 {
        let record: Value = serde_json::from_slice(&std::fs::read(place.path().join(name)).unwrap()).unwrap();
        record["run"]["seed"].as_u64().unwrap()
    };
    assert_ne!(seed("runs/1.json"), seed("runs/2.json"));
    for (wrong, why) in [
        (&["--repeat", "2"][..], "needs -o DIRECTORY"),
        (&["--repeat", "2", "-o", "runs"], "it holds records already"),
        (&["--repeat", "2", "--json", "-o", "more"], "--json writes one record"),
        (&["--repeat", "0", "-o", "more"], "0"),
    ] {
        let (code, _, errors) = measure(wrong);
        assert!(code == Some(2) && errors.contains(why), "{wrong:?}: {errors}");
    }
    let compare = |more: &[&str]| gleaner(place.path(), &[&["compare", "--ab"], more].concat());
    let (code, text, errors) =
        compare(&["clock --quick", "clock --quick thp=never", "--repeat", "2", "-o", "turns"]);
    assert!(code == Some(0) && text.contains("A: clock --quick (2 runs)"), "{text}{errors}");
    let order: Vec<&str> = errors.lines().filter(|line| line.starts_with("run ")).collect();
    assert!(order[0].ends_with(": clock --quick") && order[1].ends_with("thp=never"), "{errors}");
    assert!(order[2].ends_with("thp=never") && order[3].ends_with(": clock --quick"), "{errors}");
    assert!(place.path().join("turns/a/2.json").exists() && place.path().join("turns/b/2.json").exists());
    let (code, _, errors) = compare(&["clock --quick", "no-such-experiment", "--repeat", "2"]);
    assert!(code == Some(2) && errors.contains("nothing is compared"), "{errors}");
    assert_eq!(compare(&["clock", "clock --json"]).0, Some(2));
}
