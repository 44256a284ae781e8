//! A recorded machine, against every claim: the verdicts of one run on a Zen 4 guest.

use gleaner_reproduce::{Evidence, curves, judge, ledger, tables};
use records::machine::Machine;
use records::reproduction::ClaimRow;
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
fn figures_of_documents_stand_beside_the_recorded_machine() {
    let machine = recorded();
    let evidence = Evidence { machine: Some(&machine), ..Evidence::default() };
    let mut drawn = Vec::new();
    for document in ledger::DOCUMENTS {
        assert!(curves(document, &Evidence::default()).is_empty(), "{}", document.name);
        for figure in curves(document, &evidence) {
            for claim in &figure.claims {
                assert!(document.claims.iter().any(|known| known.id == claim), "{claim}");
            }
            for curve in figure.paper.iter().chain(&figure.here) {
                let rising = curve.points.windows(2).all(|pair| pair[0].x < pair[1].x);
                assert!(curve.points.len() >= 3 && rising, "{}: {}", figure.id, curve.name);
                assert!(curve.points.iter().all(|point| point.y.value() > Some(0.0)), "{}", curve.name);
            }
            drawn.push((document.name, figure));
        }
    }
    let ids: Vec<_> = drawn.iter().map(|(name, figure)| (*name, &*figure.id)).collect();
    assert_eq!(ids, [("mlp", "gaps"), ("mlp", "bursts"), ("origin2000", "windows")]);
    // The claims' own figures lie on the curves.
    let of = |claim: &str| {
        let all = judge(ledger::find("mlp").expect("a document").claims, &evidence);
        all.into_iter().find(|outcome| outcome.id == claim).expect("a claim").here.value()
    };
    let ten = drawn[1].1.here.iter().map(|curve| curve.points.iter().find(|point| point.x == 10.0));
    assert!(ten.flatten().any(|point| point.y.value() == of("cost-of-parallelism")));
}

#[test]
fn tables_of_documents_have_rows_of_the_recorded_machine() {
    let machine = recorded();
    let evidence = Evidence { machine: Some(&machine), ..Evidence::default() };
    let mut printed = Vec::new();
    for document in ledger::DOCUMENTS {
        assert!(tables(document, &Evidence::default()).is_empty(), "{}", document.name);
        for table in tables(document, &evidence) {
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()), "{}", table.id);
            assert!(!table.rows[0].here, "{}: the document's come first", table.id);
            printed.push((document.name, table));
        }
    }
    let ids: Vec<_> = printed.iter().map(|(name, table)| (*name, &*table.id)).collect();
    assert_eq!(ids, [("mlp", "summary"), ("origin2000", "mflops"), ("origin2000", "hops")]);
    let here = |number: usize| printed[number].1.rows.iter().filter(|row| row.here).collect::<Vec<_>>();
    // Huge pages, with and without walks, and small ones; a guest with one node has no others.
    let cases = here(0);
    assert_eq!(cases.len(), 3, "{cases:?}");
    let figures = |row: &ClaimRow| row.cells.iter().filter(|cell| cell.value().is_some()).count();
    assert!(cases.iter().map(|row| figures(row)).eq([3, 4, 4]), "the first has no overhead: {cases:?}");
    assert!(printed[0].1.note.as_ref().unwrap().contains("a second NUMA node"));
    let rates: Vec<f64> = here(1).iter().filter_map(|row| row.cells[0].value()).collect();
    assert!(rates.len() >= 2 && rates.windows(2).all(|pair| pair[0] >= pair[1]), "{rates:?}");
    assert!(here(2).is_empty());
}

#[test]
fn nothing_measured_is_no_verdict() {
    for document in ledger::DOCUMENTS {
        for claim in judge(document.claims, &Evidence::default()) {
            assert!(claim.here.value().is_none() && claim.why.is_some(), "{}", claim.id);
        }
    }
}
