//! Predictions for a recorded machine.

mod recorded;
mod structures;

use gleaner_model::{pattern, predict};
use records::machine::Machine;
use std::path::Path;
use std::process::Command;
use units::Estimate;

fn fixture() -> Machine {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../records/fixtures");
    let packed = fixtures.join("machine.v1.full-run-zen4-guest.json.gz");
    let unpacked = Command::new("gzip").arg("-dc").arg(packed).output().expect("gzip runs");
    records::parse::<Machine>(&unpacked.stdout).expect("a sound record").body
}

/// The same, with an outermost cache that is as large as chases find it: nobody else fills it.
fn unshared() -> Machine {
    let mut machine = fixture();
    for level in &mut machine.levels {
        level.size_claimed = level.size.clone();
    }
    machine
}

fn predicted(machine: &Machine, text: &str) -> predict::Prediction {
    let pattern = pattern::parse(text).expect(text);
    predict::predict(machine, &pattern, &pattern::Options::default()).expect(text)
}

/// The time of an access.
fn each(machine: &Machine, text: &str) -> Estimate {
    predicted(machine, text).per_access.estimate().expect("a time")
}

fn near(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-9, "{a} is not {b}");
}
