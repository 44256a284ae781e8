//! A recorded machine, against every claim: the verdicts of one run on a Zen 4 guest.

use gleaner_reproduce::{Evidence, judge, ledger};
use records::machine::Machine;
use std::io::Read as _;

fn recorded() -> Machine {
    let path = testkit::root().join("crates/records/fixtures/machine.v1.full-run-zen4-guest.json.gz");
    let mut bytes = Vec::new();
    let file = std::fs::read(path).expect("the fixture");
    flate2::read::GzDecoder::new(&file[..]).read_to_end(&mut bytes).expect("a whole fixture");
    records::parse::<Machine>(&bytes).expect("a record").body
}

#[test]
fn verdicts_on_a_recorded_machine() {
    let machine = recorded();
    let evidence = Evidence { machine: Some(&machine), ..Evidence::default() };
    let mut text = String::new();
    for document in ledger::DOCUMENTS {
        text.push_str(&format!("{}\n", document.name));
        for claim in judge(document.claims, &evidence) {
            let here = match claim.here.estimate() {
                Some(e) => format!("{:.3} [{:.3}, {:.3}]", e.value, e.lo, e.hi),
                None => claim.why.unwrap_or_default(),
            };
            text.push_str(&format!("  {}: {}: {here}; {}\n", claim.id, claim.verdict.words(), claim.shape));
        }
    }
    testkit::golden("crates/reproduce/tests/recorded.txt", &text);
}

#[test]
fn nothing_measured_is_no_verdict() {
    for document in ledger::DOCUMENTS {
        for claim in judge(document.claims, &Evidence::default()) {
            assert!(claim.here.value().is_none() && claim.why.is_some(), "{}", claim.id);
        }
    }
}
