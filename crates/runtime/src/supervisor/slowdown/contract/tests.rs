//! Simulated primaries and guests in which a contract must be kept.

use super::*;
use crate::supervisor::slowdown::samples::PaceMean;
use crate::supervisor::slowdown::solo_pace::SoloPace;

/// A primary that loses a share of its time by the number of its guests, and the supervisor's
/// way of looking at it: a check every 5 ms, a time alone of 0.8 ms every 64 ms. Returns by how
/// much it became slower, the mean length of its ring, and the share of time with guests.
fn live(slowdown: f64, longest: u32, seconds: f64, mut cost: impl FnMut(f64, u32) -> f64) -> (f64, f64, f64) {
    let mut contract = Contract::new(slowdown, longest);
    let (mut lost, mut guests, mut with, mut now) = (0.0, 0.0, 0.0, 0.0);
    let end = seconds * 1e9;
    let mut noise = 1_u64;
    while now < end {
        let mut step = 4e5;
        if contract.allows() {
            contract.choose(now as u64);
            let mut check = 5e5; // the first comes soon
            let mut phase = 0.0;
            loop {
                let share = cost(now, contract.ring);
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let seen = share + ((noise >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.06;
                contract.passes(check);
                contract.charge(check, seen.clamp(-0.5, 1.0));
                lost += check * share;
                guests += check * f64::from(contract.ring);
                with += check;
                now += check;
                phase += check;
                let goes_on = contract.sample(now as u64, contract.ring, seen);
                if !goes_on || phase > 6.4e7 || now >= end {
                    break;
                }
                check = 5e6;
            }
            step = 8e5;
        }
        contract.passes(step);
        now += step;
    }
    (lost / (now - lost), guests / with.max(1.0), with / now)
}

/// A primary whose looks differ by 8 %, alone and with guests, for no reason of its own; each
/// phase is compared with its pace alone as far as that is known. Returns by how much it became
/// slower, and how many guests it had, in the mean of all time.
fn live_in_noise(slowdown: f64, longest: u32, cost: impl Fn(u32) -> f64) -> (f64, f64) {
    let (mut contract, mut reference) = (Contract::new(slowdown, longest), SoloPace::default());
    let (mut lost, mut guests, mut now) = (0.0, 0.0, 0.0);
    let mut state = 1_u64;
    let mut look = |ticks: f64| {
        // About normal: the sum of six.
        let sum: f64 = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / f64::from(1 << 24) - 0.5
        })
        .take(6)
        .sum();
        ticks * (1.0 + 0.08 * 1.41 * sum)
    };
    while now < 20e9 {
        if contract.allows() {
            let own = look(1.0);
            reference.add_sample(Some(PaceMean { ticks: [own; 2], error: 0.0 }));
            let own = reference.mean().expect("a look").ticks[0];
            contract.choose(now as u64);
            let (mut phase, mut step) = (0.0, 5e5);
            loop {
                let share = cost(contract.ring);
                let seen = 1.0 - own / look(1.0 / (1.0 - share));
                contract.passes(step);
                contract.charge(step, seen);
                lost += step * share;
                guests += step * f64::from(contract.ring);
                now += step;
                phase += step;
                let goes_on = contract.sample(now as u64, contract.ring, seen);
                if !goes_on || phase > 6.4e7 {
                    break;
                }
                step = if phase < 5e6 { 1e6 } else { 5e6 };
            }
        }
        contract.passes(1.5e6);
        now += 1.5e6;
    }
    (lost / (now - lost), guests / now)
}

#[test]
fn where_looks_differ_for_no_reason_the_promise_is_kept_and_used() {
    // What a guest costs beyond the first, and what the first costs more; at best this many could
    // be there in the mean.
    for (slowdown, first, each, best) in
        [(0.05, 0.15, 0.002, 2.9), (0.05, 0.0, 0.01, 4.3), (0.1, 0.04, 0.02, 3.5), (0.2, 0.04, 0.02, 6.5)]
    {
        let (slower, guests) = live_in_noise(slowdown, 12, |ring| first + each * f64::from(ring));
        assert!(slower < 1.1 * slowdown, "{slower} of {slowdown}: {first} {each}");
        assert!(guests > 0.75 * best, "{guests} of {best}: {first} {each}");
    }
}

#[test]
fn a_guest_that_costs_everything_stays_within_the_promise() {
    for slowdown in [0.01, 0.05, 0.2] {
        let (slower, _, with) = live(slowdown, 1, 5.0, |_, _| 0.999);
        assert!(slower < slowdown, "{slower} of {slowdown}");
        assert!(with < slowdown, "they have what may be lost, and no more: {with}");
    }
}

#[test]
fn a_ring_that_is_too_long_is_made_shorter() {
    // Each guest costs a percent: four are what 5 % allow.
    let (slower, ring, with) = live(0.05, 16, 10.0, |_, ring| 0.01 * f64::from(ring));
    assert!(slower < 0.05, "{slower}");
    assert!((2.0..7.0).contains(&ring) && ring * with > 3.9, "{ring} {with}");
}

#[test]
fn one_guest_that_costs_too_much_takes_turns_with_none() {
    let (slower, ring, with) = live(0.05, 1, 10.0, |_, _| 0.3);
    assert!(slower < 0.055, "{slower}");
    assert!(ring < 1.5 && (0.05..0.3).contains(&with), "{ring} {with}");
}

#[test]
fn guests_that_cost_nothing_are_aboard_nearly_always() {
    let (slower, ring, with) = live(0.05, 12, 10.0, |_, _| 0.005);
    assert!(slower < 0.01 && ring > 11.5 && with > 0.95, "{slower} {ring} {with}");
}

#[test]
fn phases_are_followed() {
    // A second of waiting for memory, a second without.
    let bad = |now: f64| (now / 1e9) as u64 % 2 == 1;
    let (slower, _, with) =
        live(0.05, 8, 20.0, |now, ring| if bad(now) { 0.95 } else { 0.002 * f64::from(ring) });
    assert!(slower < 0.05, "{slower}");
    assert!((0.2..0.55).contains(&with), "{with}");
}

#[test]
fn a_ring_is_long_again_soon_after_guests_that_set_up() {
    // Three seconds in which all of them together cost nearly everything, then a thousandth
    // each.
    let mut reached = f64::MAX;
    live(0.2, 32, 6.0, |now, ring| {
        if now < 3e9 {
            return 1.0 - 0.02 / f64::from(ring);
        }
        if ring == 32 {
            reached = reached.min(now - 3e9);
        }
        0.001 * f64::from(ring)
    });
    assert!(reached < 3.5e8, "{reached}");
}

#[test]
fn a_burst_now_and_then_keeps_no_ring_short() {
    // Guests that cost a thousandth each, and for one look of 25 most of the time.
    let mut looks = 0;
    let (slower, ring, with) = live(0.2, 8, 10.0, |_, ring| {
        looks += 1;
        if looks % 25 == 0 { 0.7 } else { 0.001 * f64::from(ring) }
    });
    assert!(slower < 0.05, "{slower}");
    assert!(ring > 7.0 && with > 0.9, "{ring} {with}");
}

#[test]
fn a_ring_is_as_long_as_what_may_be_lost_allows_in_the_end() {
    // Cheap up to six, then of a sudden far too dear.
    let (slower, ring, _) = live(0.1, 12, 20.0, |_, ring| if ring > 6 { 0.4 } else { 0.01 });
    assert!(slower < 0.1, "{slower}");
    assert!((4.5..9.0).contains(&ring), "{ring}");
}

#[test]
fn where_many_cost_hardly_more_than_few_there_are_many_for_a_part_of_the_time() {
    let (slower, ring, with) = live(0.05, 16, 20.0, |_, ring| 0.09 + 0.002 * f64::from(ring));
    assert!(slower < 0.05, "{slower}");
    assert!(ring * with > 4.0, "{ring} {with}: one guest is worth a half");
    // And where each costs as much as the one before, there are few.
    let (slower, ring, with) = live(0.05, 16, 20.0, |_, ring| 0.012 * f64::from(ring));
    assert!(slower < 0.05 && with > 0.6 && ring * with > 3.0, "{slower} {ring} {with}");
}

#[test]
fn where_everything_may_be_lost_nobody_has_to_go() {
    let (_, ring, with) = live(10_000.0, 24, 1.0, |_, _| 0.97);
    assert!(ring > 23.9 && with > 0.9, "{ring} {with}");
}

#[test]
fn nothing_is_allowed_where_nothing_may_be_lost() {
    let (slower, _, with) = live(0.0, 8, 1.0, |_, _| 0.5);
    assert!(slower < 1e-9 && with < 1e-9);
}

#[test]
fn homes_get_what_the_next_guest_phase_does_not_need() {
    let mut contract = Contract::new(0.1, 1);
    let nothing = |contract: &Contract| contract.spared(0) + contract.spared(1) <= 0.0;
    assert!(nothing(&contract));
    contract.passes(CREDIT_NS);
    let credit = contract.share * CREDIT_NS;
    let spared = credit - contract.phase_needs();
    assert!((contract.spared(1) - spared).abs() < 1.0);
    assert!((contract.spared(0) - spared / 2.0).abs() < 1.0, "nobody is aboard");
    contract.charge(credit, 2.0);
    assert!(nothing(&contract), "in debt");
}
