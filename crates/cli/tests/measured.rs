//! What remains of a short measurement when something goes wrong at its end or is tight from its start: nothing is lost that
//! could be kept. Speeds are nobody's business here, only what is written where.
//!
//! To add a case: a test that measures the clock, which takes a second, or asks for more than there is.

use std::process::{Command, Output, Stdio};

fn gleaner(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(args).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn tables_are_written_though_the_reader_of_the_text_has_left() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["measure", "clock", "--quick", "-q", "--csv", dir.path().to_str().unwrap()];
    let mut child = gleaner(&args).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let table = std::fs::read_to_string(dir.path().join("clock.csv")).expect("a table");
    assert!(table.lines().count() > 1, "{table}");
}

#[test]
fn where_no_file_can_be_kept_the_text_is() {
    let args = ["measure", "clock", "--quick", "-q", "-o", "/dev/full"];
    let output = gleaner(&args).env("TMPDIR", "/no/such/place").output().unwrap();
    let (code, text, errors) = said(&output);
    assert_eq!(
        (code, errors.as_str()),
        (Some(1), "gleaner: cannot write /dev/full: No space left on device\n")
    );
    assert!(text.contains("\nClock\n") && text.contains("\nGrade: "), "{text}");
}

#[test]
fn areas_fit_into_the_addresses_that_the_shell_leaves() {
    let measure = |kib: u32| {
        let line = format!(
            "ulimit -v {kib}; exec {} measure latency --quick -q --json",
            env!("CARGO_BIN_EXE_gleaner")
        );
        said(&Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).output().expect("a shell"))
    };
    let (code, record, errors) = measure(220_000);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{record}");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let area = record["run"]["memory"]["largest_area"].as_u64().expect("a size");
    assert!((1 << 20..=64 << 20).contains(&area), "{area}");
    let (code, _, errors) = measure(140_000);
    assert_eq!(code, Some(3));
    assert!(errors.contains("ulimit -v") && errors.lines().count() == 1, "{errors}");
}
