//! Fixtures: every record ever committed still reads, and fits the schema of its version.

use gleaner_records::KINDS;
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Records written by this and by earlier versions: `KIND.vN.WHAT.json`, large ones compressed:
/// `.json.gz`.
fn fixtures() -> Vec<PathBuf> {
    let directory = testkit::root().join("crates/records/fixtures");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json" || e == "gz"))
        .collect();
    paths.sort();
    paths
}

/// Those short enough to be tried with every byte cut off or changed.
fn short_fixtures() -> Vec<PathBuf> {
    let mut short = fixtures();
    short.retain(|path| bytes(path).len() < 16 << 10);
    assert!(!short.is_empty());
    short
}

fn bytes(path: &Path) -> Vec<u8> {
    let raw = std::fs::read(path).expect("a fixture");
    if path.extension().is_some_and(|e| e == "gz") {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&raw[..]).read_to_end(&mut bytes).expect("a whole fixture");
        bytes
    } else {
        raw
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&bytes(path)).expect("JSON")
}

#[test]
fn every_record_ever_committed_still_reads() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for path in fixtures() {
        let plain = directory.path().join(path.file_name().expect("a name"));
        std::fs::write(&plain, bytes(&path)).expect("a file");
        if let Err(error) = gleaner_records::read_any(&plain) {
            panic!("{error}");
        }
    }
}

#[test]
fn the_full_run_still_says_what_it_said() {
    let path = testkit::root().join("crates/records/fixtures/machine.v1.full-run-zen4-guest.json.gz");
    let machine =
        gleaner_records::parse::<gleaner_records::machine::Machine>(&bytes(&path)).expect("a record").body;
    let names: Vec<&str> = machine.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["L1", "L2", "L3", "DRAM"]);
    let cycles = machine.levels[1].latency.cycles.value().expect("a figure");
    assert!((14.0..14.2).contains(&cycles), "{cycles}");
    let tlb = machine.experiments.tlb.expect("an outcome").result.expect("a result");
    assert!(tlb.kinds.iter().any(|kind| !kind.levels.is_empty()));
}

#[test]
fn every_version_of_every_kind_has_a_fixture() {
    let names: Vec<String> = fixtures()
        .iter()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    for kind in KINDS {
        for version in 1..=kind.version {
            let prefix = format!("{}.v{version}.", kind.name);
            assert!(names.iter().any(|name| name.starts_with(&prefix)), "no fixture {prefix}*.json");
        }
    }
    for path in fixtures() {
        let (value, name) = (json(&path), path.file_name().expect("a name").to_string_lossy().into_owned());
        let prefix = format!("{}.v{}.", value["kind"].as_str().unwrap_or("?"), value["version"]);
        assert!(name.starts_with(&prefix), "{name} holds {prefix}");
    }
}

#[test]
fn records_fit_the_schema_of_their_version() {
    let Some(python) = testkit::python_reader() else { return };
    for path in fixtures() {
        let value = json(&path);
        let file = format!("{}.v{}.schema.json", value["kind"].as_str().unwrap_or("?"), value["version"]);
        let schema = json(&testkit::root().join("docs/schema").join(&file)).to_string();
        let faults = testkit::schema_faults(&python, &schema, &value.to_string());
        assert!(faults.is_empty(), "{} does not fit {file}: {faults:#?}", path.display());
        let mut wrong = value.clone();
        wrong["created"] = 7.into();
        let faults = testkit::schema_faults(&python, &schema, &wrong.to_string());
        assert!(!faults.is_empty(), "{file} looks at nothing");
    }
}

#[test]
fn a_record_cut_short_anywhere_is_refused_as_such() {
    use gleaner_records::{Problem, machine::Machine, parse};
    for path in short_fixtures() {
        let bytes = std::fs::read(&path).expect("a fixture");
        let end = bytes.trim_ascii_end().len();
        for cut in 1..end {
            let problem = parse::<Machine>(&bytes[..cut]).expect_err("half a record");
            assert!(
                matches!(problem, Problem::CutShort { .. }),
                "{} cut at {cut}: {problem}",
                path.display()
            );
        }
    }
}

#[test]
fn a_record_with_any_byte_changed_reads_or_is_refused() {
    use gleaner_records::{machine::Machine, parse};
    let mut refused = 0;
    for path in short_fixtures() {
        let bytes = std::fs::read(&path).expect("a fixture");
        // Each byte becomes one of these; all of them come up.
        for (at, put) in (0..bytes.len()).zip([b'"', b'{', b'9', b'-', b'\\', 0, 0xff].into_iter().cycle()) {
            let mut changed = bytes.clone();
            changed[at] = put;
            refused += usize::from(parse::<Machine>(&changed).is_err());
        }
    }
    assert!(refused > 0, "nothing was found wrong with any of them");
}
