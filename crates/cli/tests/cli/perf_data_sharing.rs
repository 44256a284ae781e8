//! `gleaner profile --perf-data` of loads that lines of other cores served, as perf c2c records
//! them, and of data that another node has: files that are written byte by byte.

use crate::perf_data::{L1, MODIFIED_ELSEWHERE, PROCESS, Program, RAM, pebs, place, profiled, source};
use records::profile::{FindingKind, Sharing};
use testkit::perf_data::{PerfData, Sample};
use testkit::text;

/// Two threads that each write eight bytes of `nearby`, so far apart, and read them from lines that
/// the other one's core had modified.
fn c2c(program: &Program, apart: u64) -> PerfData {
    let mut file = pebs(program);
    for at in 0..60_u64 {
        let thread = at % 2;
        let sample = Sample {
            ip: program.load("read_nearby"),
            process: PROCESS,
            thread: PROCESS + thread as u32,
            time_ns: 600_000_000 + 1000 * at,
            address: program.address("nearby").next_multiple_of(64) + 64 + apart * thread,
            period: 1000,
            weight: 900,
            data_source: source(3, false) | MODIFIED_ELSEWHERE,
            ..Sample::default()
        };
        file.sample(0, &sample);
        file.sample(1, &Sample { weight: 0, data_source: 4 | L1 << 33, ..sample });
    }
    file
}

#[test]
fn threads_that_share_lines_are_told_apart_by_their_bytes() {
    let place = place();
    let program = Program::of(&place);
    for (apart, kind, sharing) in
        [(8, FindingKind::FalseSharing, Sharing::False), (0, FindingKind::TrueSharing, Sharing::True)]
    {
        std::fs::write(place.at("c2c.data"), c2c(&program, apart).file()).unwrap();
        let (output, profile) = profiled(&place, "c2c.data");
        let told = text(&output.stderr);
        let finding = &profile.findings[0];
        assert_eq!((finding.kind, finding.object.as_deref()), (kind, Some("nearby (p)")), "{told}");
        assert_eq!(finding.function.as_deref(), Some("read_nearby"), "{told}");
        assert!(finding.gain.value().is_some_and(|gain| gain > 0.1), "{told}");
        assert!(told.contains("that another core had modified (measured)"), "{told}");
        let line = &profile.lines[0];
        assert_eq!((line.sharing, line.object.as_deref()), (sharing, Some("nearby (p)")));
        let written: u64 = line.parts.iter().map(|part| part.writes).sum();
        assert!(written >= 60 && line.latency_share.value().is_some() && line.stall.value().is_none());
    }
    std::fs::write(place.at("c2c.data"), c2c(&program, 64).file()).unwrap();
    let (_, profile) = profiled(&place, "c2c.data");
    assert_eq!(profile.findings, [], "each has lines of its own");
}

#[test]
fn data_of_another_node_is_named() {
    const REMOTE: u64 = 1 << 37;
    let place = place();
    let program = Program::of(&place);
    let mut file = pebs(&program);
    for at in 0..60_u64 {
        let sample = Sample {
            ip: program.load("read_nearby"),
            process: PROCESS,
            thread: PROCESS,
            time_ns: 600_000_000 + 1000 * at,
            address: program.address("nearby") + 64 * (at % 32),
            period: 1000,
            weight: 700,
            data_source: source(RAM, false) | REMOTE,
            ..Sample::default()
        };
        file.sample(0, &sample);
    }
    std::fs::write(place.at("numa.data"), file.file()).unwrap();
    let (output, profile) = profiled(&place, "numa.data");
    let told = text(&output.stderr);
    let finding = &profile.findings[0];
    assert_eq!(
        (finding.kind, finding.object.as_deref()),
        (FindingKind::FirstTouch, Some("nearby (p)")),
        "{told}"
    );
    assert!(told.contains("came from another node (measured"), "{told}");
}
