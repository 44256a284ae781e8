//! How many guests a primary's thread may have, and when, so that it becomes slower by no more than
//! `--max-slowdown`, whatever the primary and its guests do. Pure: time and samples in, decisions
//! out.
//!
//! A *credit* of lost time keeps the promise. It grows by the share of time that may be lost; what
//! guests cost, as it is measured, is taken from it. Without credit guests wait. So the sum is
//! right even where nothing else helps, and the length of the ring only decides how much work is
//! done for it:
//!
//! - the ring gets shorter while each sample costs more than the share, longer where that would
//!   still cost less;
//! - where many guests cost hardly more than few, since the first ones displace what the others
//!   would, it does not get shorter: many guests for a part of the time get more done than few all
//!   the time;
//! - where guests cost nearly all the time, they go home for a time that doubles with each such
//!   case.
//!
//! Example, with 5 % allowed: the share is 0.9 * 0.05 / (1 + 0.9 * 0.05) = 4.3 %, so 12 ms without
//! guests give credit for the first trial of 0.5 ms. Guests that cost 8.6 % while they are aboard
//! are aboard half of the time.
//!
//! To change the rules: here, and in the simulated worlds of the tests below, in which they must
//! hold.

/// Of the slowdown that was asked for, this part is used; the rest is for what is not measured.
const USED_PART: f64 = 0.9;
/// Where response times matter, guests may cost this many times the share while they are aboard:
/// then the requests that are answered later are few enough, and not much later.
const RESPONSE_TIME_FACTOR: f64 = 3.0;
/// Credit is limited to what this time gives: what was not lost long ago may not be lost now.
const CREDIT_NS: f64 = 1e9;
/// While this part of the full credit is left, a dear sample shortens nothing.
const SPARED_PART: f64 = 0.75;
/// Guests that cost a larger share of the time are hopeless.
const HOPELESS_SHARE: f64 = 0.75;
/// The first guest phase, of which nothing is known.
const TRIAL_NS: f64 = 5e5;
/// What the credit for a later guest phase pays for at least: long, since guests and primary cost
/// each other more in the first milliseconds.
const PHASE_LEAST_NS: f64 = 16e6;
/// The same where response times matter: shorter, so that fewer requests in a row are answered
/// later.
const PHASE_LEAST_RESPONSE_NS: f64 = 4e6;
/// Hopeless guests stay at home this long at first.
const HOLD_NS: u64 = 50_000_000;
/// The longest such time; for a ring that was made shorter, half of it.
const HOLD_MOST_NS: u64 = 2_000_000_000;
/// The cost of a ring's length is known for this long after its last sample.
const COST_KNOWN_NS: u64 = 4_000_000_000;
/// The cost of a ring's length is known by this many samples.
const COST_KNOWN_SAMPLES: u32 = 2;
/// Another length must promise this many times the work before its remembered cost is trusted.
const WORTH_IT: f64 = 1.5;
/// Samples at one length before it is changed for its mean cost.
const SAMPLES_LEAST: u32 = 4;

/// The cost of rings of about one length when there was one last.
#[derive(Clone, Copy, Debug, Default)]
struct KnownCost {
    ring: u32,
    samples: u32,
    cost: f64,
    at: u64,
}

impl KnownCost {
    fn is_fresh(&self, now: u64) -> bool {
        self.samples >= COST_KNOWN_SAMPLES && now.saturating_sub(self.at) <= COST_KNOWN_NS
    }
}

/// What follows from a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleVerdict {
    /// Guests go on.
    GoOn,
    /// The credit is used up: guests wait.
    Wait,
    /// Guests cost nearly all the time.
    Hopeless,
}

/// What guests cost, beside what they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Costs {
    /// Nearly the full credit is left.
    Little,
    Enough,
    /// More than may be lost, at this length of the ring.
    TooMuch,
}

/// Zero everywhere is a controller that has not begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowdownController {
    /// The share of time that may be lost.
    share: f64,
    credit: f64,
    /// What guests cost after they left, by the cache contents that they displaced.
    debt: f64,
    /// Response times matter: no guest phase may cost much more than the share, whatever all of
    /// them cost together.
    answers: bool,
    pub(crate) ring: u32,
    longest: u32,
    /// Its length before guests were hopeless last.
    before_hopeless: u32,
    /// Samples at this length: how many, and their mean, the latest counting most.
    samples: u32,
    mean: f64,
    /// By the length as a power of two.
    known: [KnownCost; 8],
    /// The share lost in the last sample with guests; negative: not known.
    last: f64,
    /// The ring does not get longer before this time; and the length of the next such hold.
    short_until: u64,
    short_for: u64,
    /// No guest is aboard before this time; and the length of the next such hold.
    home_until: u64,
    home_for: u64,
}

impl SlowdownController {
    /// For a slowdown of at most `slowdown`, with rings up to `longest`.
    pub(crate) fn new(slowdown: f64, longest: u32) -> Self {
        let slowdown = USED_PART * slowdown;
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
            known: [KnownCost::default(); 8],
            last: -1.0,
            short_until: 0,
            short_for: HOLD_NS,
            home_until: 0,
            home_for: HOLD_NS,
        }
    }

    /// Guests take part in another way from now on: their cost is learnt anew, the credit stays.
    /// `answers`: response times matter, so the share is not exceeded by far for a while to be kept
    /// on average, as would do for a pace.
    pub(crate) fn begin_anew(&mut self, answers: bool) {
        *self = Self { share: self.share, credit: self.credit, answers, ..Self::new(0.0, self.longest) };
    }

    /// Guests stay aboard too long, whatever they cost.
    pub(crate) fn make_shorter(&mut self, now: u64) {
        self.shorten(now, (self.ring / 4).max(1));
    }

    /// Sets the longest ring.
    pub(crate) fn limit(&mut self, longest: u32) {
        if longest != self.longest {
            self.longest = longest;
            self.ring = self.ring.min(longest).max(longest.min(1));
        }
    }

    /// Whether guests may cost what they like, so that nothing follows from samples.
    pub(crate) fn allows_all(&self) -> bool {
        self.share > HOPELESS_SHARE
    }

    /// Time passed: credit grows.
    pub(crate) fn passes(&mut self, ns: f64) {
        self.credit = (self.credit + self.share * ns).min(self.share * CREDIT_NS);
    }

    /// Whether guests may take part now.
    pub(crate) fn allows(&self, now: u64) -> bool {
        self.share > 0.0 && self.ring > 0 && now >= self.home_until && self.credit >= self.phase_need()
    }

    /// The credit with which a guest phase may begin.
    fn phase_need(&self) -> f64 {
        let most = self.share * CREDIT_NS / 2.0;
        let phase = if self.answers { PHASE_LEAST_RESPONSE_NS } else { PHASE_LEAST_NS };
        let need = if self.last < 0.0 {
            TRIAL_NS
        } else {
            (self.last * phase).max(TRIAL_NS / 4.0) + 2.0 * self.debt
        };
        need.min(most)
    }

    /// Credit that loans to scavengers at home may use up: what the next guest phase does not need;
    /// where no guest is aboard, half of it, so that those that come aboard have some for visits.
    /// Where response times matter, nothing is lent.
    pub(crate) fn spared(&self, guests: u32) -> f64 {
        let need = if self.ring > 0 { self.phase_need() } else { 0.0 };
        let part = if guests == 0 { 0.5 } else { 1.0 };
        if self.answers || self.share <= 0.0 { 0.0 } else { (part * (self.credit - need)).max(0.0) }
    }

    /// The share lost in the last sample with guests; 0 where none is known.
    pub(crate) fn last(&self) -> f64 {
        self.last.max(0.0)
    }

    /// Whether guests are to be at home rather than wait.
    pub(crate) fn wants_them_home(&self, now: u64) -> bool {
        now < self.home_until || self.share <= 0.0
    }

    /// Nearly the full credit is left, so a dear sample, or a longer ring that turns out dear, does
    /// not break the promise. Without this a burst of a millisecond now and then would keep rings
    /// short for good.
    fn has_spared(&self) -> bool {
        !self.answers && self.credit > SPARED_PART * self.share * CREDIT_NS
    }

    /// What guests cost at this length of the ring.
    pub(crate) fn costs(&self) -> Costs {
        if self.has_spared() {
            Costs::Little
        } else if self.samples >= SAMPLES_LEAST && self.mean > self.share {
            Costs::TooMuch
        } else {
            Costs::Enough
        }
    }

    /// Sets what is lost after each guest phase: the more, the rarer and longer phases are.
    pub(crate) fn owes(&mut self, ns: f64) {
        self.debt = ns;
    }

    /// Of `ns` with guests the share `lost` was lost.
    pub(crate) fn charge(&mut self, ns: f64, lost: f64) {
        self.credit -= ns * lost;
    }

    /// Adds a sample: with a ring of this length the share `lost` is lost now.
    pub(crate) fn sample(&mut self, now: u64, lost: f64) -> SampleVerdict {
        let hopeless = HOPELESS_SHARE.max(self.share);
        // Once may be an accident: a second sample decides.
        let again = self.last > hopeless;
        self.last = lost;
        self.samples += 1;
        let weight = (1.0 / f64::from(self.samples)).max(0.25);
        self.mean += (lost - self.mean) * weight;
        if lost > hopeless {
            if !again {
                return SampleVerdict::Wait;
            }
            self.before_hopeless = self.ring;
            self.shorten(now, self.ring);
            self.home_until = now + self.home_for;
            self.home_for = (self.home_for * 2).min(HOLD_MOST_NS);
            return SampleVerdict::Hopeless;
        }
        let too_dear = self.answers && self.mean > RESPONSE_TIME_FACTOR * self.share;
        if self.samples >= SAMPLES_LEAST && !too_dear {
            self.home_for = HOLD_NS;
        }
        self.learn(now, lost);
        if self.credit < 0.0 {
            let by = if lost > 4.0 * self.share { self.ring / 2 } else { self.ring / 8 };
            self.give_way(now, by.max(1));
            return SampleVerdict::Wait;
        }
        if too_dear && self.ring == 1 && self.samples >= SAMPLES_LEAST {
            // Not even one guest is cheap enough for now.
            self.set(1);
            self.home_until = now + self.home_for;
            self.home_for = (self.home_for * 2).min(HOLD_MOST_NS);
            return SampleVerdict::Wait;
        }
        let spared = self.has_spared();
        if self.samples >= SAMPLES_LEAST && self.mean > self.share && !spared {
            let by = (f64::from(self.ring) * (1.0 - self.share / self.mean) / 2.0) as u32;
            self.give_way(now, by.max(1));
        } else if let Some(better) = self.better(now, self.ring, f64::from(self.ring))
            && self.samples >= SAMPLES_LEAST
        {
            self.set(better);
        } else if self.samples >= SAMPLES_LEAST
            && self.ring < self.longest
            && (spared || now >= self.short_until)
        {
            // The cost of a longer ring is a guess, so it doubles only where that leaves much to
            // spare.
            let bound = USED_PART * self.share;
            // Where guests run in a primary's waits, the first one costs most.
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
        SampleVerdict::GoOn
    }

    /// The guest that cost so much is gone: others may be tried at once, as many as before.
    pub(crate) fn try_others(&mut self) {
        self.home_until = 0;
        self.set(self.before_hopeless);
        self.short_until = 0;
        self.short_for = HOLD_NS;
        self.last = -1.0;
    }

    fn learn(&mut self, now: u64, lost: f64) {
        let known = &mut self.known[of_length(self.ring)];
        if now.saturating_sub(known.at) > COST_KNOWN_NS {
            known.samples = 0;
        }
        known.samples += 1;
        let weight = (1.0 / f64::from(known.samples)).max(0.125);
        *known =
            KnownCost { ring: self.ring, at: now, cost: known.cost + (lost - known.cost) * weight, ..*known };
    }

    /// The work done by a ring of this length at this cost: guests are aboard for as much of the
    /// time as the cost allows.
    fn worth(&self, ring: u32, cost: f64) -> f64 {
        f64::from(ring) * (self.share / cost.max(self.share)).min(1.0)
    }

    /// A longer ring that is known, or expected, to get much more done than `worth`.
    fn better(&self, now: u64, than: u32, worth: f64) -> Option<u32> {
        if self.answers {
            return None;
        }
        let (mut best, mut before, mut last) = ((0, 0.0), KnownCost::default(), KnownCost::default());
        for known in self.known.iter().filter(|known| known.is_fresh(now)) {
            best = self.richer(best, known.ring, known.cost);
            (before, last) = (last, *known);
        }
        if last.ring > before.ring {
            // Beyond the longest known: extrapolated from the last two.
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

    /// Guests cost too much: fewer of them, or as many for less of the time.
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
            self.short_for = (self.short_for * 2).min(HOLD_MOST_NS / 2);
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
mod tests;
