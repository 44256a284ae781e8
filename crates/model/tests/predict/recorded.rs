//! Predictions against what a recorded machine measured apart: chases of one and of two threads.

use crate::{fixture, near, predicted, unshared};
use gleaner_model::{pattern, predict};

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

/// One load at a time would be twenty times too slow: what is not known is refused, or stated.
#[test]
fn independent_loads_need_to_know_how_many_run_at_once() {
    let mut machine = fixture();
    machine.experiments.mlp = None;
    let defaults = pattern::Options::default();
    let refused = |text: &str| predict::predict(&machine, &pattern::parse(text).expect(text), &defaults);
    for text in ["rand(64M)", "stride(4K, 64M)", "rand(64M, mlp=4)"] {
        let why = refused(text).expect_err(text);
        assert!(why.would_help.expect("help").contains("gleaner measure mlp"), "{text}");
    }
    assert!(refused("rand(64M, mlp=1)").is_ok() && refused("chase(64M)").is_ok());
}

#[test]
fn the_first_line_says_on_which_pages() {
    let machine = fixture();
    let line = |text: &str| predict::text(&predicted(&machine, text)).lines().next().unwrap().to_owned();
    assert!(line("chase(64M, pages=4K)").ends_with(" each, on 4K pages"));
    assert!(line("chase(64M, pages=thp)").ends_with(" each, on huge (thp) pages"));
    let both = line("chase(64M, pages=4K); chase(64M, pages=thp); chase(1M, pages=4K)");
    assert!(both.ends_with(" each, on 4K and huge (thp) pages"), "{both}");
    assert!(line("chase(64M)").ends_with(" pages by default"), "{}", line("chase(64M)"));
}

/// On a busy host all large areas of one kind of pages may be void: then another kind's curve says
/// more of memory than what is left of this one.
#[test]
fn what_was_measured_on_other_pages_is_better_than_small_areas_alone() {
    let mut machine = fixture();
    let whole = predicted(&machine, "chase(1G)").per_access.value().expect("a time");
    let latency = machine.experiments.latency.as_mut().and_then(|outcome| outcome.result.as_mut());
    let (mut cut, mut left) = (0, 0);
    for curve in &mut latency.expect("latencies").curves {
        if curve.pages.asked == "4K" {
            curve.points.retain(|point| point.size.0 <= 1 << 20);
            cut += 1;
        } else {
            left += 1;
        }
    }
    assert!(cut > 0 && left > 0);
    let found = predicted(&machine, "chase(1G)").per_access.value().expect("a time");
    assert!(found > whole / 2.0, "{found} for {whole} ns");
}

#[test]
fn computing_waits_for_loads_that_wait_for_each_other() {
    let machine = unshared();
    let each = |text: &str| predicted(&machine, text).per_access.value().expect("a time");
    let nearest = machine.levels[0].latency.ns.value().expect("resolved");
    assert_eq!(machine.levels[0].name, "L1");
    near(each("chase(64M, work=10ns)"), each("chase(64M)") + 10.0 - nearest);
    near(each("rand(64M, mlp=1, work=10ns)"), each("rand(64M, mlp=1)") + 10.0 - nearest);
    near(each("rand(64M, mlp=4, work=10ns)"), each("rand(64M, mlp=4)") + 10.0 - nearest / 4.0);
    // Within the nearest cache it is what was measured there; no work takes less than the load.
    near(each("rand(16K, mlp=1, work=10ns)"), 10.0);
    near(each("chase(64M, work=100ps)"), each("chase(64M)"));
}

#[test]
fn computing_overlaps_with_independent_loads() {
    let machine = fixture();
    let each = |text: &str| predicted(&machine, text).per_access.estimate().expect("a time");
    for text in ["rand(64M)", "stride(4K, 64M)", "window(4K, 64M)"] {
        let with = |work: f64| each(&text.replace(')', &format!(", work={work}ns)")));
        let alone = each(text);
        near(with(alone.value / 2.0).value, alone.value);
        let longer = with(alone.value * 2.0);
        near(longer.value, alone.value * 2.0);
        // At the most, nothing overlaps.
        near(longer.hi, alone.hi + alone.value * 2.0);
        near(longer.lo, longer.value.max(alone.lo));
    }
}

#[test]
fn a_pass_in_order_takes_what_it_computes_more_than_the_record() {
    let machine = fixture();
    let each = |text: &str| predicted(&machine, text).per_access.estimate().expect("a time");
    let (alone, pass) = (each("seq(64M)"), each("seq(16K)").value);
    let with = each("seq(64M, work=5ns)");
    near(with.value, alone.value + 5.0 - pass);
    near(with.hi, alone.hi + 5.0);
    assert!(with.lo >= 5.0 && with.lo >= alone.lo, "{with:?}");
    near(each("seq(64M, work=1ps)").value, alone.value);
    // In the nearest cache it is what was measured there.
    near(each("seq(16K, work=5ns)").value, 5.0);
}

#[test]
fn the_more_instructions_the_fewer_loads_at_once() {
    let machine = unshared();
    let each = |text: &str| predicted(&machine, text).per_access.value().expect("a time");
    let mlp = machine.experiments.mlp.as_ref().and_then(|outcome| outcome.result.as_ref());
    let kind = mlp.expect("measured").kinds.iter().find(|kind| kind.pages.asked == "4K").expect("4K");
    let window = kind.cliff.value().expect("resolved");
    let mut last = each("rand(64M)");
    for instructions in [1, 4, 16, 64] {
        let now = each(&format!("rand(64M, instructions={instructions})"));
        assert!(now >= last, "{instructions}: {now} after {last}");
        last = now;
    }
    let alone = each("rand(64M, mlp=1)");
    let beyond = 4.0 * window;
    near(each(&format!("rand(64M, instructions={beyond})")), alone);
    // The core then looks ahead over a quarter of what an access computes.
    near(each(&format!("rand(64M, work=40ns, instructions={beyond})")), alone + 30.0);
    assert!(each("stride(4K, 64M, mlp=8, instructions=64)") >= each("stride(4K, 64M, mlp=8)"));
}

#[test]
fn computing_is_a_part_of_its_own() {
    let machine = fixture();
    for text in [
        "chase(64M, work=10ns)",
        "seq(64M, work=20ns); rand(64M, work=1ns, instructions=20)",
        "seq(64M, work=20ns) & rand(64M, work=1ns)",
        "tree(64M, 16, 128, work=90ns)",
    ] {
        let found = predicted(&machine, text);
        let times = found.levels.iter().map(|level| level.time.value().expect("a time"));
        near(times.sum(), found.per_access.value().expect("a time"));
        let shares = found.levels.iter().map(|level| level.share.value().expect("a share"));
        near(shares.sum(), 1.0);
        assert_eq!(found.levels.last().expect("levels").level, "computing");
        assert!(predict::text(&found).contains("\n  computing  "), "{}", predict::text(&found));
    }
}

/// What others load takes the place of a program's lines as time passes.
#[test]
fn of_a_shared_cache_fast_accesses_find_more() {
    let (shared, own) = (fixture(), unshared());
    let from_memory = |machine: &_, text: &str| {
        let all = predicted(machine, text);
        let memory = all.levels.iter().find(|level| level.level == "DRAM");
        memory.map_or(0.0, |level| level.share.value().expect("a share"))
    };
    let of_shared = ["rand(32M)", "rand(32M, mlp=1)", "rand(32M, mlp=1, work=500ns)"]
        .map(|text| from_memory(&shared, text));
    assert!(of_shared.is_sorted() && of_shared[0] + 0.2 < of_shared[2], "{of_shared:?}");
    let of_own = ["rand(32M)", "rand(32M, mlp=1, work=500ns)"].map(|text| from_memory(&own, text));
    near(of_own[0], of_own[1]);
    // The interval reaches to either.
    let time = predicted(&shared, "rand(32M)").per_access.estimate().expect("a time");
    let by_size = predicted(&own, "rand(32M)").per_access.value().expect("a time");
    assert!(time.lo <= by_size && by_size <= time.hi, "{time:?} and {by_size}");
}
