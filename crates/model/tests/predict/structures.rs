//! Trees, searches, nodes, skewed keys, written lines and interleaved accesses, from first
//! principles: what they must cost where a level is known, and what must be larger than what.

use crate::{each, fixture, near, predicted, unshared};
use records::machine::Machine;

/// The same machine without its nearest cache.
fn without_l1() -> Machine {
    let mut machine = fixture();
    assert_eq!(machine.levels.remove(0).name, "L1");
    machine
}

fn latency(machine: &Machine, level: &str) -> f64 {
    let level = machine.levels.iter().find(|known| known.name == level).expect(level);
    level.latency.ns.value().expect("resolved")
}

#[test]
fn a_tree_that_fits_into_a_cache_costs_its_depth() {
    let machine = without_l1();
    // 1 + 16 + 256 + 4096 nodes of a line, 273 KiB.
    let walk = each(&machine, "tree(279616, 16, 64)").value;
    near(walk, 4.0 * each(&machine, "rand(279616, mlp=1)").value);
    let depth = walk / latency(&machine, "L2");
    assert!((3.9..4.6).contains(&depth), "{depth}");
    // With a nearer cache, the upper levels cost less, and none less than that cache.
    let whole = fixture();
    let faster = each(&whole, "tree(279616, 16, 64)").value;
    assert!(faster < walk && faster > 4.0 * latency(&whole, "L1"), "{faster} and {walk}");
}

#[test]
fn only_the_lower_levels_of_a_large_tree_come_from_memory() {
    let machine = unshared();
    // A root, and a level that is nearly all of the tree.
    let flat = each(&machine, "tree(64M, 1M, 64)").value;
    let leaf = each(&machine, "rand(64M, mlp=1)").value;
    assert!((flat - leaf - latency(&machine, "L1")).abs() < 0.05 * leaf, "{flat} for {leaf}");
    // The higher the fan-out, the fewer steps, and the last ones cost most.
    let walks = ["tree(64M, 2, 64)", "tree(64M, 4, 64)", "tree(64M, 16, 64)"];
    let times = walks.map(|text| each(&machine, text).value);
    assert!(times[0] > times[1] && times[1] > times[2] && times[2] > leaf, "{times:?}");
    assert!(times[0] < 20.0 * leaf, "{times:?}");
    let shares = predicted(&machine, walks[0]).levels;
    near(shares.iter().map(|level| level.share.value().expect("a share")).sum(), 1.0);
    // Lines of one node are loaded at once, and walks may be.
    let [one, four] = [1, 4].map(|n| each(&machine, &format!("tree(256M, 16, 256, lines={n})")).value);
    assert!(one <= four && four < 1.5 * one, "{one} and {four}");
    near(four, each(&machine, "tree(256M, 16, 256)").value);
    assert!(each(&machine, "tree(64M, 16, 64, mlp=4)").value < 0.5 * times[2]);
}

#[test]
fn a_search_takes_a_step_for_each_half() {
    let machine = unshared();
    // 16 KiB are 2048 keys, and one more step for what is no power of two.
    let near_steps = each(&machine, "search(16K)").value / latency(&machine, "L1");
    assert!((10.9..11.4).contains(&near_steps), "{near_steps}");
    let with_work = each(&machine, "search(16K, work=30ns)").value;
    assert!((with_work - 30.0).abs() < 0.1, "{with_work}");
    let times =
        ["search(16K)", "search(1M)", "search(16M)", "search(1G)"].map(|text| each(&machine, text).value);
    assert!(times.is_sorted(), "{times:?}");
    assert!(times[3] < 27.0 * each(&machine, "rand(1G, mlp=1)").value);
    let walk = each(&machine, "search(1G)").value;
    assert!(each(&machine, "search(1G, work=500ns)").value < walk + 500.0);
    near(each(&machine, "search(1G, work=1ns)").value, walk);
}

#[test]
fn a_zipf_of_nothing_is_no_skew() {
    let machine = fixture();
    for more in ["", ", mlp=1", ", mlp=4", ", lines=3"] {
        let (skewed, plain) = (format!("rand(64M, zipf=0{more})"), format!("rand(64M{more})"));
        near(each(&machine, &skewed).value, each(&machine, &plain).value);
    }
    let skews = ["0", "0.5", "0.99", "1.5", "4"];
    let times = skews.map(|skew| each(&machine, &format!("rand(1G, mlp=1, zipf={skew})")).value);
    assert!(times.iter().rev().is_sorted(), "{times:?}");
    assert!(times[4] < 1.1 * latency(&machine, "L1"), "{times:?}");
    // Of the loads that wait in full there are no more where a level serves more.
    let ahead = each(&machine, "rand(1G, zipf=0.99, instructions=9)");
    assert!(ahead.relative_half_width() < 0.5, "{ahead:?}");
    // Caches differ in what they keep of skewed keys, and of others they do not.
    let width = |text: &str| each(&machine, text).relative_half_width();
    assert!(width("rand(1G, mlp=1, zipf=0.99)") > width("rand(1G, mlp=1)"));
}

#[test]
fn the_lines_of_a_node_are_loaded_at_once() {
    let machine = fixture();
    let (line, node) = (each(&machine, "chase(128M)"), each(&machine, "chase(128M, lines=4)"));
    assert!(node.value >= line.value && node.value < 1.5 * line.value, "{node:?} for {line:?}");
    near(predicted(&machine, "chase(128M, lines=4)").accesses, f64::from(1 << 19));
    // Independent nodes take what their lines take, where the core is busy with them anyway.
    near(each(&machine, "rand(128M, lines=4)").value, 4.0 * each(&machine, "rand(128M)").value);
    assert!(
        each(&machine, "rand(128M, lines=4, mlp=1)").value < 1.5 * each(&machine, "rand(128M, mlp=1)").value
    );
}

#[test]
fn written_lines_go_back() {
    let machine = fixture();
    let (read, written) = (each(&machine, "rand(64M)"), each(&machine, "rmw(64M)"));
    assert!(written.value >= each(&machine, "seq(64M, op=write)").value);
    assert!(written.hi > 1.5 * read.value && written.lo < 1.5 * read.value, "{written:?} for {read:?}");
    let in_turn = each(&machine, "rmw(64M, mlp=1)").value / each(&machine, "rand(64M, mlp=1)").value;
    assert!((0.7..1.5).contains(&in_turn), "{in_turn}");
    // Both ways of the traffic count beside other threads.
    let slowed = |text: &str| {
        let beside = predicted(&machine, &format!("chase(64M, n=10M) || {text} || {text}"));
        beside.time.value().expect("a time")
    };
    assert!(slowed("rmw(64M, n=100M)") >= slowed("rand(64M, n=100M)"));
    let mut unmeasured = machine.clone();
    let latency = unmeasured.experiments.latency.as_mut().and_then(|outcome| outcome.result.as_mut());
    let curves = &mut latency.expect("latencies").curves;
    curves.retain(|curve| curve.access == records::machine::Access::Read);
    let remarks = predicted(&unmeasured, "rmw(64M)").remarks;
    assert!(remarks.iter().any(|remark| remark.contains("were not measured apart")), "{remarks:?}");
}

#[test]
fn interleaved_accesses_overlap_and_share_caches() {
    let machine = fixture();
    let time = |text: &str| predicted(&machine, text).time.estimate().expect("a time");
    // Two lists at once: as long as one of them, in caches that hold lines of both.
    near(time("chase(64M) & chase(64M)").value, time("chase(128M, n=1048576)").value);
    // Each way of writing it is between the longest part and the sum of all.
    for (a, b) in [("rand(64M)", "seq(64M)"), ("chase(1M)", "seq(16M)"), ("tree(64M, 16, 64)", "rmw(1M)")] {
        let (mixed, other) = (time(&format!("{a} & {b}")), time(&format!("{b} & {a}")));
        near(mixed.value, other.value);
        let longest = time(a).value.max(time(b).value);
        assert!(mixed.value >= 0.999 * longest, "{a} & {b}: {mixed:?} for {longest}");
        assert!(mixed.hi >= time(a).value + time(b).value, "{a} & {b}: {mixed:?}");
    }
    // Both fill the queues of the core: nothing is saved.
    let (random, pass) = (time("rand(1G, n=1M)").value, time("seq(1G, n=1M)").value);
    let both = time("rand(1G, n=1M) & seq(1G, n=1M)").value;
    assert!(both > 0.95 * (random + pass), "{both} for {random} and {pass}");
    // A pass through memory drives out what would fit into a cache alone.
    let alone = each(&machine, "chase(512K)").value;
    let beside = &predicted(&machine, "chase(512K, n=1M) & seq(1G, n=16M)").parts[0];
    assert!(beside.per_access.value().expect("a time") > 2.0 * alone);
    // An access that hardly ever comes changes nothing.
    let rare = time("rand(64M, n=10M) & seq(1G, n=1)").value;
    assert!((rare / time("rand(64M, n=10M)").value - 1.0).abs() < 0.01);
}

#[test]
fn extremes_have_a_time_between_its_bounds() {
    let machine = fixture();
    for text in [
        "rand(1G, zipf=1000000)",
        "rand(1G, zipf=200)",
        "rand(64, zipf=2)",
        "rmw(1K, lines=900)",
        "tree(64, 2, 64)",
        "tree(1024T, 2, 1)",
        "tree(1024T, 1G, 64)",
        "tree(1M, 2, 1M)",
        "tree(1G, 16, 64, mlp=1000)",
        "search(1)",
        "search(1024T)",
        "chase(1G, lines=1M)",
        "chase(64) & seq(1024T)",
        "seq(1024T) & chase(64) & rmw(1G, zipf=3)",
        "window(4K, 1M) & stride(4K, 64M) & tree(1M, 4, 16) & search(1M)",
        "rand(1G, n=1) & seq(64, n=1G)",
    ] {
        let found = predicted(&machine, text);
        for part in found.parts.iter().map(|part| &part.time).chain([&found.time]) {
            let time = part.estimate().unwrap_or_else(|| panic!("{text}: {part:?}"));
            assert!(time.lo > 0.0 && time.lo <= time.value && time.value <= time.hi, "{text}: {time:?}");
        }
        let shares = found.levels.iter().map(|level| level.share.value().expect("a share"));
        let shares: Vec<f64> = shares.collect();
        assert!(shares.iter().all(|&share| share >= 0.0), "{text}: {shares:?}");
    }
}
