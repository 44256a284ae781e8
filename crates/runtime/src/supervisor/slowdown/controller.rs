//! How many guests a primary's thread may have, and when: so that it becomes slower by no more than was asked for, whatever it
//! does and whatever they do. Pure: time and samples in, decisions out.
//!
//! A *credit* of lost time holds the promise: it grows by the share of time that may be lost, and what guests cost, as it is measured,
//! is taken from it. Without credit guests wait. So the sum is right even where nothing else helps, and the ring's length only
//! decides how much is got for it: it is made shorter while each sample costs more than the share, longer where that would still cost less.
//! Where many cost hardly more than few (what they displace is displaced by the first ones already), it is not made shorter: many for a
//! part of the time get more done than few all the time. Where guests cost nearly everything, they go home for a while that doubles each time.
//!
//! To change the law: here, and in the worlds of the tests below that it must hold in.

/// Of the slowdown that was asked for, some is left for what is not measured.
const SPENT: f64 = 0.9;
/// Where answers are waited for, guests may cost so many times the share while they are there: then those that come later on are
/// few enough, and not much later.
const ANSWERS: f64 = 3.0;
/// Credit is good for so much time: what was not lost long ago may not be lost now.
const MEMORY: f64 = 1e9;
/// Of that, what must be left for the ring to be as long as it likes.
const SPARED: f64 = 0.75;
/// Shares of lost time above which guests are hopeless.
const HOPELESS: f64 = 0.75;
/// The first spell with guests, of which nothing is known, and what a later one is to last at least: long, since guests and primary cost each
/// other more in its first milliseconds, but not where answers are waited for.
const TRIAL: f64 = 5e5;
const SPELL: [f64; 2] = [16e6, 4e6];
const HOLD: [u64; 2] = [50_000_000, 2_000_000_000];

/// What is known of a length is good for so long, and by so many samples.
const KNOWN: (u64, u32) = (4_000_000_000, 2);
/// Another length must promise so many times the work to be taken for what it was when it was seen last.
const WORTH_IT: f64 = 1.5;

/// What rings of about one length cost when there were any last.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    ring: u32,
    samples: u32,
    cost: f64,
    at: u64,
}

impl Known {
    fn is_fresh(&self, now: u64) -> bool {
        self.samples >= KNOWN.1 && now.saturating_sub(self.at) <= KNOWN.0
    }
}

/// What follows from a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Goes,
    /// The credit is used up: guests wait.
    Waits,
    /// Guests cost nearly all the time.
    Hopeless,
}

/// Zero everywhere is a law that has not begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    /// The share of time that may be lost.
    share: f64,
    credit: f64,
    /// What guests cost when they are out again, by what they displaced.
    debt: f64,
    /// No spell is to cost much more than the share, whatever all of them together cost.
    answers: bool,
    pub(crate) ring: u32,
    longest: u32,
    /// Its length when guests were hopeless last.
    before_hopeless: u32,
    /// Of samples at this length: how many, and their mean, the latest counting most.
    samples: u32,
    mean: f64,
    /// By powers of two.
    known: [Known; 8],
    /// What was lost of the time with guests when there were any last; negative: not known.
    last: f64,
    /// No longer ring before this time; how long the next such hold is.
    short_until: u64,
    short_for: u64,
    /// Nobody aboard before this time.
    home_until: u64,
    home_for: u64,
}

impl Law {
    /// For a slowdown of at most `slowdown`, with rings up to `longest`.
    pub(crate) fn new(slowdown: f64, longest: u32) -> Self {
        let slowdown = SPENT * slowdown;
        let share = slowdown / (1.0 + slowdown);
        Self {
            share,
            credit: 0.0,
            debt: 0.0,
            answers: false,
            ring: longest,
            before_hopeless: longest,
            longest,
            samples: 0,
            mean: 0.0,
            known: [Known::default(); 8],
            last: -1.0,
            short_until: 0,
            short_for: HOLD[0],
            home_until: 0,
            home_for: HOLD[0],
        }
    }

    /// Guests take part in another way from now on: what they cost is to be learnt anew. Credit stays. `answers`: the share is not
    /// exceeded by far for a while to be below it in another; that would do for a pace, but not for response times.
    pub(crate) fn begin_anew(&mut self, answers: bool) {
        *self = Self { share: self.share, credit: self.credit, answers, ..Self::new(0.0, self.longest) };
    }

    /// Guests stay for too long, whatever they cost.
    pub(crate) fn make_shorter(&mut self, now: u64) {
        self.shorten(now, (self.ring / 4).max(1));
    }

    /// The ring may be no longer than this from now on.
    pub(crate) fn limit(&mut self, longest: u32) {
        if longest != self.longest {
            self.longest = longest;
            self.ring = self.ring.min(longest).max(longest.min(1));
        }
    }

    /// Guests may cost what they like: nothing follows from what they do.
    pub(crate) fn allows_all(&self) -> bool {
        self.share > HOPELESS
    }

    /// Time went by.
    pub(crate) fn passes(&mut self, ns: f64) {
        self.credit = (self.credit + self.share * ns).min(self.share * MEMORY);
    }

    /// Whether guests may take part now.
    pub(crate) fn allows(&self, now: u64) -> bool {
        let most = self.share * MEMORY / 2.0;
        let spell = SPELL[usize::from(self.answers)];
        let need =
            if self.last < 0.0 { TRIAL } else { (self.last * spell).max(TRIAL / 4.0) + 2.0 * self.debt };
        self.share > 0.0 && self.ring > 0 && now >= self.home_until && self.credit >= need.min(most)
    }

    /// What was lost of the time with guests when there were any last, if that is known.
    pub(crate) fn last(&self) -> f64 {
        self.last.max(0.0)
    }

    /// Whether guests are to be at home rather than wait.
    pub(crate) fn wants_them_home(&self, now: u64) -> bool {
        now < self.home_until || self.share <= 0.0
    }

    /// Nearly all that might be lost is still to be had: a sample that is dear, or a longer ring that turns out so, will not break
    /// the promise. Without this, a burst of a millisecond now and then keeps rings short for good.
    fn has_spared(&self) -> bool {
        !self.answers && self.credit > SPARED * self.share * MEMORY
    }

    /// Each time guests were there, so much is lost after them: so they come seldom, and for long.
    pub(crate) fn owes(&mut self, ns: f64) {
        self.debt = ns;
    }

    /// Of `ns` with guests a share was lost.
    pub(crate) fn charge(&mut self, ns: f64, lost: f64) {
        self.credit -= ns * lost;
    }

    /// With a ring of this length such a share is lost just now.
    pub(crate) fn sample(&mut self, now: u64, lost: f64) -> Verdict {
        let hopeless = HOPELESS.max(self.share);
        // Once may be an accident, to be looked at again.
        let again = self.last > hopeless;
        self.last = lost;
        self.samples += 1;
        let weight = (1.0 / f64::from(self.samples)).max(0.25);
        self.mean += (lost - self.mean) * weight;
        if lost > hopeless {
            if !again {
                return Verdict::Waits;
            }
            self.before_hopeless = self.ring;
            self.shorten(now, self.ring);
            self.home_until = now + self.home_for;
            self.home_for = (self.home_for * 2).min(HOLD[1]);
            return Verdict::Hopeless;
        }
        let too_dear = self.answers && self.mean > ANSWERS * self.share;
        if self.samples >= 4 && !too_dear {
            self.home_for = HOLD[0];
        }
        self.learn(now, lost);
        if self.credit < 0.0 {
            let by = if lost > 4.0 * self.share { self.ring / 2 } else { self.ring / 8 };
            self.give_way(now, by.max(1));
            return Verdict::Waits;
        }
        if too_dear && self.ring == 1 && self.samples >= 4 {
            // Not even one is cheap enough, for now.
            self.set(1);
            self.home_until = now + self.home_for;
            self.home_for = (self.home_for * 2).min(HOLD[1]);
            return Verdict::Waits;
        }
        let spared = self.has_spared();
        if self.samples >= 4 && self.mean > self.share && !spared {
            let by = (f64::from(self.ring) * (1.0 - self.share / self.mean) / 2.0) as u32;
            self.give_way(now, by.max(1));
        } else if let Some(better) = self.better(now, self.ring, f64::from(self.ring))
            && self.samples >= 4
        {
            self.set(better);
        } else if self.samples >= 4 && self.ring < self.longest && (spared || now >= self.short_until) {
            // What a longer ring would cost is a guess; so it is twice as long only where that leaves much to spare.
            let bound = SPENT * self.share;
            // In a primary's waits the first one costs most.
            let times = |ring: u32| f64::from(ring) / f64::from(self.ring);
            let costs = |ring: u32| {
                self.mean * if self.answers { f64::midpoint(1.0, times(ring)) } else { times(ring) }
            };
            let (twice, longer) = (2 * self.ring, self.ring + (self.ring / 4).max(1));
            if costs(twice) < bound / 2.0 {
                self.set(twice);
            } else if costs(longer) < bound {
                self.set(longer);
            }
        }
        Verdict::Goes
    }

    /// Whoever cost so much is gone: others may be tried at once, as many as before.
    pub(crate) fn try_others(&mut self) {
        self.home_until = 0;
        self.set(self.before_hopeless);
        self.short_until = 0;
        self.short_for = HOLD[0];
        self.last = -1.0;
    }

    fn learn(&mut self, now: u64, lost: f64) {
        let known = &mut self.known[of_length(self.ring)];
        if now.saturating_sub(known.at) > KNOWN.0 {
            known.samples = 0;
        }
        known.samples += 1;
        let weight = (1.0 / f64::from(known.samples)).max(0.125);
        *known =
            Known { ring: self.ring, at: now, cost: known.cost + (lost - known.cost) * weight, ..*known };
    }

    /// How much is got done by so many at such a cost: they are there for as much of the time as it allows.
    fn worth(&self, ring: u32, cost: f64) -> f64 {
        f64::from(ring) * (self.share / cost.max(self.share)).min(1.0)
    }

    /// A length that is known, or expected, to get much more done than this, if it is a longer one.
    fn better(&self, now: u64, than: u32, worth: f64) -> Option<u32> {
        if self.answers {
            return None;
        }
        let (mut best, mut before, mut last) = ((0, 0.0), Known::default(), Known::default());
        for known in self.known.iter().filter(|known| known.is_fresh(now)) {
            best = self.richer(best, known.ring, known.cost);
            (before, last) = (last, *known);
        }
        if last.ring > before.ring {
            // Beyond the longest: by what that cost more than the one before.
            let each = ((last.cost - before.cost) / f64::from(last.ring - before.ring)).max(0.0);
            let twice = (2 * last.ring).min(self.longest);
            let more = (f64::from(twice) - f64::from(last.ring)).max(0.0);
            best = self.richer(best, twice, last.cost + each * more);
        }
        (best.0 > than && best.1 > WORTH_IT * worth).then_some(best.0)
    }

    fn richer(&self, best: (u32, f64), ring: u32, cost: f64) -> (u32, f64) {
        let ring = ring.min(self.longest);
        let worth = self.worth(ring, cost);
        if worth > best.1 { (ring, worth) } else { best }
    }

    /// Guests cost too much: fewer, or as many as before for less of the time.
    fn give_way(&mut self, now: u64, by: u32) {
        let fewer = self.ring.saturating_sub(by).max(1);
        let known = self.known[of_length(fewer)];
        let cost = if known.is_fresh(now) {
            known.cost
        } else {
            self.mean.max(self.share) * f64::from(fewer) / f64::from(self.ring.max(1))
        };
        match self.better(now, fewer, self.worth(fewer, cost)) {
            Some(better) => self.set(better),
            None => self.shorten(now, by),
        }
    }

    fn shorten(&mut self, now: u64, by: u32) {
        if self.ring > 1 {
            self.short_until = now + self.short_for;
            self.short_for = (self.short_for * 2).min(HOLD[1] / 2);
            self.set(self.ring.saturating_sub(by).max(1));
        }
    }

    fn set(&mut self, ring: u32) {
        self.ring = ring.min(self.longest);
        self.samples = 0;
        self.mean = 0.0;
    }
}

fn of_length(ring: u32) -> usize {
    (ring.max(1).ilog2() as usize).min(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::slowdown::samples::Mean;
    use crate::supervisor::slowdown::solo_pace::Reference;

    /// A primary that loses a share of its time by the number of its guests, and the supervisor's way of looking at it: a check
    /// every 5 ms, a time alone of 0.8 ms every 64 ms. Returns by how much it became slower, the mean length of its ring, and the
    /// share of time with guests.
    fn live(slowdown: f64, longest: u32, seconds: f64, cost: impl FnMut(f64, u32) -> f64) -> (f64, f64, f64) {
        live_with([5e5, 5e6, 8e5], slowdown, longest, seconds, cost)
    }

    /// The same where the first look with guests takes so long, each other, and one alone.
    fn live_with(
        looks: [f64; 3],
        slowdown: f64,
        longest: u32,
        seconds: f64,
        mut cost: impl FnMut(f64, u32) -> f64,
    ) -> (f64, f64, f64) {
        let mut law = Law::new(slowdown, longest);
        let (mut lost, mut guests, mut with, mut now) = (0.0, 0.0, 0.0, 0.0);
        let end = seconds * 1e9;
        let mut noise = 1_u64;
        while now < end {
            let mut step = 4e5;
            if law.allows(now as u64) {
                let mut check = looks[0]; // the first comes soon
                let mut spell = 0.0;
                loop {
                    let share = cost(now, law.ring);
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let seen = share + ((noise >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.06;
                    law.passes(check);
                    law.charge(check, seen.clamp(-0.5, 1.0));
                    lost += check * share;
                    guests += check * f64::from(law.ring);
                    with += check;
                    now += check;
                    spell += check;
                    if law.sample(now as u64, seen) != Verdict::Goes || spell > 6.4e7 || now >= end {
                        break;
                    }
                    check = looks[1];
                }
                step = looks[2];
            }
            law.passes(step);
            now += step;
        }
        (lost / (now - lost), guests / with.max(1.0), with / now)
    }

    /// A primary whose looks differ by 8 %, alone and with guests, for no reason of its own; each spell is compared with its pace alone
    /// as far as that is known. Returns by how much it became slower, and how many guests it had, in the mean of all time.
    fn live_in_noise(slowdown: f64, longest: u32, cost: impl Fn(u32) -> f64) -> (f64, f64) {
        let (mut law, mut reference) = (Law::new(slowdown, longest), Reference::default());
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
            if law.allows(now as u64) {
                let own = look(1.0);
                reference.saw(Some(Mean { ticks: [own; 2], error: 0.0 }), false);
                let own = reference.mean().expect("a look").ticks[0];
                let (mut spell, mut step) = (0.0, 5e5);
                loop {
                    let share = cost(law.ring);
                    let seen = 1.0 - own / look(1.0 / (1.0 - share));
                    law.passes(step);
                    law.charge(step, seen);
                    lost += step * share;
                    guests += step * f64::from(law.ring);
                    now += step;
                    spell += step;
                    if law.sample(now as u64, seen) != Verdict::Goes || spell > 6.4e7 {
                        break;
                    }
                    step = if spell < 5e6 { 1e6 } else { 5e6 };
                }
            }
            law.passes(1.5e6);
            now += 1.5e6;
        }
        (lost / (now - lost), guests / now)
    }

    #[test]
    fn where_looks_differ_for_no_reason_the_promise_is_kept_and_used() {
        // What a guest costs beyond the first, and what the first costs more; at best so many could be there in the mean.
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
            assert!(with < 0.02, "hopeless guests are tried seldom: {with}");
        }
    }

    #[test]
    fn the_promise_holds_where_each_look_takes_long() {
        // Of one that sleeps often: from one nap to another.
        let looks = [6e6; 3];
        for slowdown in [0.01, 0.05, 0.2] {
            let (slower, _, with) = live_with(looks, slowdown, 4, 20.0, |_, _| 0.999);
            assert!(slower < slowdown && with < 0.03, "{slower} of {slowdown}: {with}");
            let (slower, ring, with) =
                live_with(looks, slowdown, 8, 20.0, |_, ring| 0.2 * slowdown * f64::from(ring));
            assert!(slower < slowdown, "{slower} of {slowdown}");
            assert!(ring * with > 2.0, "{slowdown}: {ring} {with}");
        }
    }

    #[test]
    fn a_ring_that_is_too_long_is_made_shorter() {
        // Each guest costs a percent: four are what 5 % allow.
        let (slower, ring, with) = live(0.05, 16, 10.0, |_, ring| 0.01 * f64::from(ring));
        assert!(slower < 0.05, "{slower}");
        assert!((2.0..7.0).contains(&ring) && with > 0.8, "{ring} {with}");
    }

    #[test]
    fn one_guest_that_costs_too_much_takes_turns_with_none() {
        let (slower, ring, with) = live(0.05, 1, 10.0, |_, _| 0.3);
        assert!(slower < 0.055, "{slower}");
        assert!(ring < 1.5 && (0.05..0.3).contains(&with), "{ring} {with}");
    }

    #[test]
    fn where_answers_are_waited_for_one_guest_that_costs_far_too_much_is_out_for_longer_and_longer() {
        let mut law = Law::new(0.05, 4);
        law.begin_anew(true);
        law.passes(1e9);
        let mut outs = Vec::new();
        let mut now = 0;
        for _ in 0..60 {
            now += 5_000_000;
            if law.wants_them_home(now) {
                continue;
            }
            // Credit there is enough of: it would pay for all of this.
            if law.sample(now, 0.2) == Verdict::Waits {
                outs.push((law.home_until - now) / 1_000_000);
            }
        }
        assert_eq!(law.ring, 1);
        assert_eq!(outs[..2], [50, 100]);
        // Cheap again, they stay.
        now = law.home_until;
        for _ in 0..40 {
            now += 5_000_000;
            assert_eq!(law.sample(now, 0.01), Verdict::Goes);
        }
        assert!(law.ring > 1);
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
        // Three seconds in which all of them together cost nearly everything, then a thousandth each.
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
}
