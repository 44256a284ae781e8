use super::*;
use model::prices;
use records::plan::{Gain, Origin, Prefetch};
use records::profile::{Pattern, Profile};
use units::Bytes;

fn candidate(address: u64, class: LoadClass, group: u32) -> Candidate {
    Candidate {
        address,
        function: 0,
        class,
        prefetch: Prefetch::Read,
        loop_depth: 1,
        loop_size: Some(40),
        round: None,
        saved: Saved { general: 1, ..Saved::default() },
        group,
        same_line: false,
        without_twin: false,
    }
}

fn subject(role: Role, candidates: Vec<Candidate>) -> Subject {
    Subject {
        path: "/bin/x".to_owned(),
        role,
        build_id: None,
        content: "c".to_owned(),
        size: Bytes(1),
        functions: 1,
        accesses: 9,
        names: vec![Function { start: 0, name: Some("f".to_owned()) }],
        candidates,
    }
}

fn wishes() -> Wishes {
    Wishes {
        choice: Choice::Paying,
        coalesce: true,
        least_gain: 0.0,
        most_sites: None,
        excluded: Vec::new(),
        explained: true,
        without: Vec::new(),
        asked: Asked { scavengers: 12, ring: None, max_slowdown: 0.05, max_absence_seconds: 1e-5 },
    }
}

fn sorted(candidates: Vec<Candidate>, wishes: &Wishes) -> PlannedModule {
    let prices = prices::assumed("a test");
    plan(&[subject(Role::Primary, candidates)], &prices, &Priors, wishes).modules.remove(0)
}

fn addresses(module: &PlannedModule) -> (Vec<u64>, Vec<(u64, Because)>) {
    (
        module.sites.iter().map(|s| s.place.address).collect(),
        module.rejected.iter().map(|r| (r.place.address, r.because)).collect(),
    )
}

/// The gain of this load in one of several scavengers, by priors.
fn of_a_guest(candidate: &Candidate, scavengers: u32) -> Gain {
    let prices = prices::assumed("a test");
    let asked = Asked { scavengers, ..wishes().asked };
    let subject = subject(Role::Scavenger, vec![*candidate]);
    let plan = plan(&[subject], &prices, &Priors, &Wishes { asked, ..wishes() });
    let module = &plan.modules[0];
    let rejected = module.rejected.first().and_then(|rejected| rejected.gain.clone());
    module.sites.first().map(|site| site.gain.clone()).or(rejected).unwrap()
}

#[test]
fn a_guest_that_gives_way_and_hits_loses_its_turn() {
    let net = |candidate: &Candidate, scavengers| of_a_guest(candidate, scavengers).net.value().unwrap();
    let chased = candidate(1, LoadClass::Chased, 0);
    // A miss is 350 cycles, a segment 35. Alone: 0.5 × 350 − 11 − 20 − 0.5 × (350 − 35).
    let without = 0.5 * 350.0 - 31.0;
    assert!((net(&chased, 1) - (without - 0.5 * 315.0)).abs() < 1e-9, "{:?}", of_a_guest(&chased, 1));
    // Of four, others have most of the time: (350 − 4 × 35) ÷ 4. Nine have all of it.
    assert!((net(&chased, 4) - (without - 0.5 * 52.5)).abs() < 1e-9);
    assert!((net(&chased, 12) - (without - 0.5 * (350.0 - 9.0 * 35.0) / 9.0)).abs() < 1e-9);
    // What does nothing but chase waits there.
    let tight = Candidate { loop_size: Some(8), ..chased };
    assert!((net(&tight, 1) - (0.7 * 350.0 - 31.0 - 0.3 * 315.0)).abs() < 1e-9);
    assert!(
        of_a_guest(&chased, 1)
            .lost_turn
            .is_some_and(|lost| { lost.value().is_some_and(|cycles| (cycles - 0.5 * 315.0).abs() < 1e-9) })
    );
}

#[test]
fn a_load_gives_way_where_that_pays() {
    let all = vec![candidate(1, LoadClass::Chased, 0), candidate(2, LoadClass::Strided, 1)];
    let module = sorted(all, &wishes());
    assert_eq!(addresses(&module), (vec![1], vec![(2, Because::DoesNotPay)]));
    let gain = &module.sites[0].gain;
    // 0.5 × 350 − 11 − 20
    assert!((gain.net.value().unwrap() - 144.0).abs() < 1e-9, "{gain:?}");
    assert_eq!((gain.p_miss_from, gain.miss_level.as_str()), (Origin::Prior, "DRAM"));
    assert_eq!(module.rejected[0].why, "0.010 × 350 − 11 − 20 = -27.5 cycles");
}

#[test]
fn a_load_whose_misses_the_core_overlaps_does_not_pay() {
    let overlapped = |round| Candidate { round: Some(round), ..candidate(1, LoadClass::Gathered, 0) };
    let module = sorted(vec![overlapped(8)], &wishes());
    assert_eq!(addresses(&module), (vec![], vec![(1, Because::DoesNotPay)]));
    // 224 ÷ 8 rounds are more than 12 misses: 0.3 × 350 ÷ 12 − 11 − 20
    assert_eq!(module.rejected[0].why, "0.300 × 350 ÷ 12 at once − 11 − 20 = -22.2 cycles");
    // Rounds longer than what the core looks ahead: as if each waited.
    let module = sorted(vec![overlapped(300)], &wishes());
    assert_eq!(addresses(&module), (vec![1], vec![]));
    assert_eq!(module.sites[0].gain.at_once, None);
}

#[test]
fn a_plan_to_launch_lists_neither_rejected_loads_nor_alternatives() {
    let all = || vec![candidate(1, LoadClass::Chased, 0), candidate(2, LoadClass::Strided, 1)];
    let prices = prices::assumed("a test");
    let of = |explained| {
        plan(&[subject(Role::Primary, all())], &prices, &Priors, &Wishes { explained, ..wishes() })
    };
    let (told, launched) = (of(true), of(false));
    assert_eq!((told.modules[0].rejected.len(), told.alternatives.len()), (1, 6));
    assert_eq!((launched.modules[0].rejected.len(), launched.alternatives.len()), (0, 0));
    assert_eq!(told.modules[0].sites, launched.modules[0].sites);
    assert_eq!(told.modules[0].counts, launched.modules[0].counts);
    assert_eq!(told.modules[0].sites[0].live.general, ["rax"]);
}

#[test]
fn neighbours_share_a_yield_or_not() {
    let all = || vec![candidate(1, LoadClass::Gathered, 7), candidate(2, LoadClass::Gathered, 7)];
    let together = sorted(all(), &wishes());
    assert_eq!(addresses(&together), (vec![1], vec![(2, Because::ServedByNeighbour)]));
    assert_eq!((together.sites[0].with.as_slice(), together.counts.coalesced), (&[2][..], 1));
    // 1 − 0.7 × 0.7
    assert!((together.sites[0].gain.p_miss.value().unwrap() - 0.51).abs() < 1e-9);
    let alone = sorted(all(), &Wishes { coalesce: false, ..wishes() });
    assert_eq!(addresses(&alone), (vec![1, 2], vec![]));
}

#[test]
fn what_is_barred_says_why() {
    let mut same = candidate(2, LoadClass::Chased, 1);
    same.same_line = true;
    let mut stack = candidate(3, LoadClass::Chased, 2);
    stack.without_twin = true;
    let all = vec![candidate(1, LoadClass::Chased, 0), same, stack];
    let module = sorted(all, &Wishes { excluded: vec![1], ..wishes() });
    let expected = [(1, Because::Excluded), (2, Because::SameLine), (3, Because::NoTwin)];
    assert_eq!(addresses(&module), (vec![], expected.to_vec()));
}

#[test]
fn the_deepest_loops_come_first_when_sites_are_limited() {
    let mut deep = candidate(2, LoadClass::Gathered, 1);
    deep.loop_depth = 2;
    let all = vec![candidate(1, LoadClass::Chased, 0), deep];
    let module = sorted(all, &Wishes { most_sites: Some(1), ..wishes() });
    assert_eq!(addresses(&module), (vec![2], vec![(1, Because::Limit)]));
}

#[test]
fn alternatives_are_weighed_by_the_same_arithmetic() {
    let all = vec![
        candidate(1, LoadClass::Chased, 0),
        candidate(2, LoadClass::Gathered, 0),
        candidate(3, LoadClass::Strided, 1),
    ];
    let prices = prices::assumed("a test");
    let plan = plan(&[subject(Role::Primary, all)], &prices, &Priors, &wishes());
    let told: Vec<(&str, usize, bool)> =
        plan.alternatives.iter().map(|a| (a.name.as_str(), a.sites, a.chosen)).collect();
    assert_eq!(
        told,
        [
            ("paying", 1, true),
            ("paying-alone", 2, false),
            ("chases", 1, false),
            ("chases-alone", 1, false),
            ("every-load", 2, false),
            ("every-load-alone", 3, false)
        ]
    );
    let gain = |name: &str| {
        plan.alternatives.iter().find(|a| a.name == name).and_then(|a| a.gain.value()).expect("a gain")
    };
    assert!(gain("every-load-alone") < gain("paying-alone"));
}

#[test]
fn bounds_follow_from_prices_and_wishes() {
    let prices = prices::assumed("a test");
    let of = |ring, scavengers, seconds| {
        let b =
            bounds(&prices, &Asked { scavengers, ring, max_slowdown: 0.05, max_absence_seconds: seconds });
        (b.ring, b.quantum)
    };
    // A segment is 11 + 4 + 20 = 35 cycles: 350 × 1.05 ÷ 35 − 1 = 9; 10 µs at 3 GHz are 30 000
    // cycles, of which eight of nine are counted: more than a miss takes, and more than 16 × 11.
    assert_eq!(of(None, 12, 1e-5), (9, 176));
    assert_eq!(of(None, 1, 1e-5), (1, 367));
    assert_eq!(of(Some(20), 24, 1e-5), (20, 176));
    // 1 µs has space for three of nine.
    assert_eq!(of(Some(20), 24, 1e-6), (20, 133));
    // 30 cycles have space for one guest with two switches.
    assert_eq!(of(None, 12, 1e-8), (1, 26));
}

fn profile_of_loads(loads: usize) -> Profile {
    let fixture = include_bytes!("../../../records/fixtures/profile.v1.clock-three-loops.json");
    let mut profile = records::parse::<Profile>(fixture).unwrap().body;
    profile.loads.truncate(loads);
    profile
}

#[test]
fn a_chain_beyond_l2_waits_for_as_long_as_its_level_takes() {
    let mut profile = profile_of_loads(1);
    let prices = prices::assumed("a test");
    let mut rate = |each: Estimate, pattern: Pattern, beyond_l2: bool| {
        let load = &mut profile.loads[0];
        (load.module, load.build_id, load.address) = ("/bin/x".to_owned(), None, 1);
        (load.pattern, load.beyond_l2) = (pattern, beyond_l2);
        load.stride = Quantity::unresolved("a test");
        load.stall_each = Quantity::modelled(each, Unit::Cycles);
        let rates = ProfiledRates::of([&profile], &prices);
        let all = vec![candidate(1, LoadClass::Loose, 0)];
        rates.rate(&subject(Role::Primary, all.clone()), &all[0]).0.value
    };
    let (wide, near) = (Estimate::new(35.0, 9.0, 1e5), Estimate::new(35.0, 30.0, 40.0));
    let level_and_miss = (55.0_f64 * 350.0).sqrt() / 350.0;
    assert!((rate(wide, Pattern::Chain, true) - level_and_miss).abs() < 1e-9);
    for (each, pattern, beyond_l2) in
        [(near, Pattern::Chain, true), (wide, Pattern::Chain, false), (wide, Pattern::Parallel, true)]
    {
        assert!((rate(each, pattern, beyond_l2) - 0.1).abs() < 1e-9, "{each:?} {pattern:?}");
    }
}

#[test]
fn a_profile_goes_before_priors() {
    let mut profile = profile_of_loads(2);
    for (load, (address, each)) in profile.loads.iter_mut().zip([(1, 175.0), (2, 3.5)]) {
        (load.module, load.build_id, load.address) = ("/bin/x".to_owned(), None, address);
        load.stall_each = Quantity::modelled(Estimate::exact(each), Unit::Cycles);
    }
    let prices = prices::assumed("a test");
    let rates = ProfiledRates::of([&profile], &prices);
    let planned = |subject: Subject| plan(&[subject], &prices, &rates, &wishes()).modules.remove(0);
    // By priors the first would not pay, and the others would.
    let all = vec![
        candidate(1, LoadClass::Strided, 0),
        candidate(2, LoadClass::Chased, 1),
        candidate(3, LoadClass::Gathered, 2),
    ];
    let module = planned(subject(Role::Primary, all.clone()));
    let rejected = vec![(2, Because::DoesNotPay), (3, Because::DoesNotPay)];
    assert_eq!(addresses(&module), (vec![1], rejected));
    let gain = &module.sites[0].gain;
    assert_eq!((gain.p_miss_from, gain.p_miss.value()), (Origin::Profile, Some(0.5)));
    let other_build = Subject { build_id: Some("ab".to_owned()), ..subject(Role::Primary, all) };
    assert_eq!(addresses(&planned(other_build)).0, [2, 3], "a profile of another build says nothing");
}
