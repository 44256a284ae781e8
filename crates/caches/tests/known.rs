//! Streams, copies, column walks and chases whose traffic is known by construction.

use gleaner_caches::{Access, Cache, Geometry, Hierarchy, Last, Replacement, Served, Traffic};

/// A quarter of the real thing, so that tests are quick.
const MIB: u64 = 1 << 18;

fn geometry(is_victim: bool) -> Geometry {
    let last = |replacement| Last { cache: Cache { bytes: 8 * MIB, ways: 16 }, replacement, is_victim };
    Geometry {
        l2: Cache { bytes: MIB, ways: 8 },
        l3: vec![last(Replacement::LeastRecentlyUsed), last(Replacement::Any)],
        ..Geometry::default()
    }
}

struct Run {
    caches: Hierarchy,
    served: [u64; 4],
    expected: u64,
}

impl Run {
    fn new(is_victim: bool) -> Self {
        Self { caches: Hierarchy::new(&geometry(is_victim), 1), served: [0; 4], expected: 0 }
    }

    fn access(&mut self, address: u64, bytes: u64, access: Access) {
        let outcome = self.caches.access(0, address, bytes, access);
        let level = [Served::L1, Served::L2, Served::L3, Served::Memory];
        self.served[level.iter().position(|&level| level == outcome.served).unwrap()] += 1;
        self.expected += u64::from(outcome.is_expected);
    }

    fn stream(&mut self, from: u64, bytes: u64, access: Access) {
        for at in (from..from + bytes).step_by(8) {
            self.access(at, 8, access);
        }
    }
}

const A: u64 = 1 << 32;
const B: u64 = 2 << 32;

#[test]
fn a_stream_through_more_than_the_caches_hold_comes_from_memory_each_time() {
    for is_victim in [false, true] {
        let mut run = Run::new(is_victim);
        run.stream(A, 64 * MIB, Access::Read);
        run.stream(A, 64 * MIB, Access::Read);
        let Traffic { read, written } = run.caches.traffic()[0];
        assert_eq!((read, written), (128 * MIB, 0));
        assert_eq!(run.served[3], 2 * MIB, "a line in eight accesses");
        assert!(run.expected as f64 > 0.95 * run.served[3] as f64, "{}", run.expected);
    }
}

#[test]
fn what_a_level_holds_it_serves() {
    for (bytes, level) in [(16 << 10, 0), (MIB / 2, 1), (6 * MIB, 2)] {
        let mut run = Run::new(true);
        run.stream(A, bytes, Access::Read);
        run.served = [0; 4];
        run.stream(A, bytes, Access::Read);
        let lines = bytes / 64;
        let beyond: u64 = run.served[1..].iter().sum();
        if level == 0 {
            assert_eq!(beyond, 0);
        } else {
            assert!(run.served[level] as f64 > 0.98 * lines as f64, "{bytes}: {:?}", run.served);
        }
    }
}

#[test]
fn a_victim_adds_to_what_l2_holds_and_a_filled_cache_does_not() {
    // 8.75: more than L3, less than L2 and L3 together.
    let missing = |is_victim| {
        let mut run = Run::new(is_victim);
        for _ in 0..4 {
            run.stream(A, 35 * MIB / 4, Access::Read);
        }
        run.caches.traffic()[0].read as f64 / (35 * MIB / 4) as f64
    };
    assert!(missing(true) < 2.0 && missing(false) > 2.5, "{} {}", missing(true), missing(false));
}

#[test]
fn what_is_written_is_fetched_before_and_written_back_after() {
    for is_victim in [false, true] {
        let mut run = Run::new(is_victim);
        run.stream(A, 64 * MIB, Access::Write);
        for Traffic { read, written } in run.caches.traffic() {
            assert_eq!(read, 64 * MIB);
            // All but what the caches hold.
            let held = 64 * MIB - written;
            assert!((8 * MIB - 8 * MIB / 16..=9 * MIB + MIB / 8).contains(&held), "{held}");
        }
    }
}

#[test]
fn a_copy_reads_twice_what_it_writes() {
    let mut run = Run::new(true);
    for at in (0..32 * MIB).step_by(8) {
        run.access(B + at, 8, Access::Read);
        run.access(A + at, 8, Access::Write);
    }
    let Traffic { read, written } = run.caches.traffic()[0];
    assert_eq!(read, 64 * MIB);
    assert!((32 * MIB - written) <= 9 * MIB + MIB / 8, "{written}");
}

#[test]
fn writes_of_whole_lines_fetch_nothing_and_those_past_the_caches_stay_in_none() {
    let mut run = Run::new(true);
    for at in (0..32 * MIB).step_by(64) {
        run.access(A + at, 64, Access::WriteWhole);
    }
    assert_eq!(run.caches.traffic()[0].read, 0);
    let mut run = Run::new(true);
    run.stream(A, MIB, Access::Read);
    run.stream(A, MIB, Access::WritePast);
    assert_eq!(run.caches.traffic()[0], Traffic { read: MIB, written: MIB });
    run.stream(A, MIB, Access::Read);
    assert_eq!(run.caches.traffic()[0].read, 2 * MIB, "they are fetched again");
}

#[test]
fn a_chase_misses_as_often_as_its_area_is_larger_than_the_caches() {
    // In random order through four times what L2 and L3 hold: a step finds its line with 1/4.
    let mut run = Run::new(true);
    let lines = 4 * 9 * MIB / 64;
    let mut random = 1_u64;
    for step in 0..4 * lines {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        run.access(A + (random >> 33) % lines * 64, 8, Access::Read);
        if step == 2 * lines {
            run.served = [0; 4];
        }
    }
    let share = run.served[3] as f64 / run.served.iter().sum::<u64>() as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
    assert!(run.expected < lines / 100);
}

#[test]
fn an_access_over_the_end_of_a_line_is_two() {
    let mut run = Run::new(true);
    run.access(A + 60, 8, Access::Read);
    assert_eq!(run.caches.traffic()[0].read, 128);
    run.access(A + 124, 8, Access::Read);
    assert_eq!((run.served[3], run.caches.traffic()[0].read), (2, 192));
}

#[test]
fn cores_have_their_own_first_levels_and_share_the_last() {
    let mut caches = Hierarchy::new(&geometry(false), 2);
    assert_eq!(caches.access(0, A, 8, Access::Read).served, Served::Memory);
    assert_eq!(caches.access(1, A, 8, Access::Read).served, Served::L3);
    assert_eq!(caches.access(1, A, 8, Access::Read).served, Served::L1);
}
