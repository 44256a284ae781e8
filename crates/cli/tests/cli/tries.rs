//! Changes that need no source: prefetches that a rewrite inserts, huge pages; what the record says
//! of them. Whether something is faster is the bench's part.

use crate::allocations::profiled;
use records::profile::{FindingKind, TrialOutcome};
use std::process::Stdio;
use testkit::{Place, text};

/// Goes down the columns of a matrix and branches on what it finds.
const COLUMNS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#define ROWS 16384
#define COLUMNS 512
static uint32_t a[ROWS][COLUMNS];
__attribute__((noinline, noclone)) static unsigned long column(int j) {
    unsigned long s = 0, h = 1;
    for (int i = 0; i < ROWS; i++) {
        uint32_t v = a[i][j];
        if (v & 1) { h = h * 31 + v; h ^= h >> 7; } else { s += v / 3; s ^= h << 3; }
    }
    return s ^ h;
}
int main(void) {
    uint64_t x = 88172645463325252UL;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j += 16) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; a[i][j] = x; }
    unsigned long all = 0;
    for (int round = 0; round < 200; round++)
        for (int j = 0; j < COLUMNS; j += 64) all += column(j);
    printf("%lu\n", all);
}
"#;

fn place() -> Place {
    Place::new(COLUMNS, env!("CARGO_BIN_EXE_gleaner"))
}

#[test]
fn a_strided_load_is_tried_with_prefetches() {
    let place = place();
    let alone = place.command("./p").output().unwrap();
    let arguments = ["--budget", "30", "--try", "--pairs", "2", "--", "./p"];
    let Some((output, profile)) = profiled(&place, &arguments) else { return };
    assert_eq!(text(&output.stdout), text(&alone.stdout), "it is shown once: {}", text(&output.stderr));
    let load = &profile.loads[0];
    if load.probes < 64 {
        eprintln!("skipped: no breakpoints are to be had: {:?}", profile.refusals);
        return;
    }
    assert_eq!(load.stride.value(), Some(2048.0), "{load:#?}");
    let trial = profile.trials.iter().find(|trial| trial.kind == FindingKind::Prefetch);
    let trial = trial.unwrap_or_else(|| panic!("{:#?}", profile.trials));
    assert_eq!((trial.rounds, trial.same_output), (2, Some(true)), "{trial:#?}");
    assert!(trial.faster.value().is_some() && trial.with.value().is_some(), "{trial:#?}");
    // Two pairs are never more than chance.
    assert_eq!(trial.outcome, TrialOutcome::NoDifference);
    assert!(text(&output.stderr).contains("tried, by whole runs in pairs"), "{}", text(&output.stderr));
}

#[test]
fn prefetches_are_inserted_and_proven() {
    let place = place();
    let gleaner =
        |arguments: &[&str]| place.command(env!("CARGO_BIN_EXE_gleaner")).args(arguments).output().unwrap();
    let code =
        std::process::Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(place.at("p")).output();
    let Ok(code) = code else { return eprintln!("skipped: there is no objdump") };
    let code = text(&code.stdout);
    let column = code.split_once("<column>:").expect("the function").1;
    let load = column.lines().find(|line| line.contains("mov    (%r")).expect("its load");
    let address = load.trim().split(':').next().unwrap();
    let output = gleaner(&["twin", "--prefetch", &format!("0x{address}:32768"), "-o", "q", "p"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let proof = gleaner(&["proof", "p", "q"]);
    assert!(proof.status.success(), "{}", text(&proof.stderr));
    let run = |name: &str| place.command(name).output().unwrap();
    assert_eq!(text(&run("./q").stdout), text(&run("./p").stdout));
    let code = std::process::Command::new("objdump").arg("-d").arg(place.at("q")).output().unwrap();
    assert!(text(&code.stdout).contains("prefetcht0 0x8000("), "the distance is there");
    for wrong in ["0x1:", "1", ":5", "0xzz:1", "0x1:99999999999"] {
        let output = gleaner(&["twin", "--prefetch", wrong, "-o", "r", "p"]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn what_cannot_be_run_again_is_not_tried() {
    let place = place();
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    let output = command.args(["profile", "--try", "--", "./p"]).stdin(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("standard input"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "it has not run");
}
