//! Predictions against what a recorded machine measured apart: chases of one and of two threads.

use gleaner_model::{pattern, predict};
use records::machine::Machine;
use std::path::Path;
use std::process::Command;

fn fixture() -> Machine {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../records/fixtures");
    let packed = fixtures.join("machine.v1.full-run-zen4-guest.json.gz");
    let unpacked = Command::new("gzip").arg("-dc").arg(packed).output().expect("gzip runs");
    records::parse::<Machine>(&unpacked.stdout).expect("a sound record").body
}

fn predicted(machine: &Machine, text: &str) -> predict::Prediction {
    let pattern = pattern::parse(text).expect(text);
    predict::predict(machine, &pattern, &pattern::Options::default()).expect(text)
}

#[test]
fn chases_of_threads_are_predicted_within_a_tenth() {
    let machine = fixture();
    let threads = machine.experiments.threads.as_ref().and_then(|outcome| outcome.result.as_ref());
    let mut held = 0;
    for crowd in &threads.expect("a whole run").crowds {
        let chase = format!("chase({}, pages=thp, n=1M)", crowd.size.0);
        let all = vec![chase; crowd.threads as usize].join(" || ");
        let found = predicted(&machine, &all).time.value().expect("a time") / 1e6;
        let measured = crowd.latency.ns.value().expect("resolved");
        assert!((found / measured - 1.0).abs() <= 0.10, "{all}: {found} for {measured} ns");
        held += 1;
    }
    assert!(held >= 6, "{held}");
}

#[test]
fn what_must_be_ordered_is() {
    let machine = fixture();
    let each = |text: &str| predicted(&machine, text).per_access.value().expect("a time");
    // More at once is not slower, a larger area is not faster, and order helps.
    assert!(each("rand(64M, mlp=8)") <= each("rand(64M, mlp=2)"));
    assert!(each("rand(64M, mlp=1)") <= each("chase(64M)") * 1.001);
    assert!(each("chase(1M)") <= each("chase(16M)"));
    assert!(each("chase(128M)") <= each("chase(4G)"));
    assert!(each("seq(64M)") < each("stride(4K, 64M)"));
    assert!(each("rand(64M, pages=2M, mlp=1)") <= each("rand(64M, pages=4K, mlp=1)"));
    let twice = predicted(&machine, "2 * chase(1M)").time.value().expect("a time");
    let once = predicted(&machine, "chase(1M)").time.value().expect("a time");
    assert!((twice / once - 2.0).abs() < 1e-9);
}
