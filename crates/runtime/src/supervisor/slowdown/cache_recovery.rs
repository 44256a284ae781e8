//! What guests displaced from the shared caches comes back slowly: a primary that is looked at alone a moment after them is still slower
//! than it would be without them. So now and then it has a *rest*: guests wait until it has its caches again, and how much faster it is
//! then tells which share of its pace it *keeps* where it is looked at alone otherwise. Pure: time and paces in, that share out.
//!
//! Paces differ by some percent from one look to the next, so a share counts as far as all rests together show it: what may as well
//! be chance is not held against guests.

/// How long a rest is, and after how much of it the primary is looked at, again and again.
const REST: u64 = 100_000_000;
pub(crate) const STEP: u64 = 4_000_000;
/// The first one comes so soon; then after twice as long each time, up to what makes them a fortieth of the time.
const EVERY: [u64; 2] = [250_000_000, 4_000_000_000];
/// So many times as long where nothing hangs on them but what the run record tells.
const IDLY: u64 = 32;
/// After guests the primary is taken to be short of its caches for so long.
pub(crate) const TAIL: u64 = REST / 2;
/// Looks that are needed after that, and looks at the beginning of spells. Of one that naps each takes ten milliseconds or more.
const LEAST: u32 = 3;
const BEFORE: u32 = 4;
/// Beyond this the program has come to other work meanwhile.
const SAME: [f64; 2] = [0.4, 1.2];
/// The latest rests count most: of so many.
const REMEMBERED: f64 = 8.0;

/// Zero is one that has not begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rest {
    due: u64,
    every: u64,
    longest: u64,
    began: u64,
    /// Of looks at the beginning of spells: how many, and their mean, the latest counting most.
    spells: u32,
    before: f64,
    /// Of looks in this rest once it has its caches again: how many, and their sum.
    looks: u32,
    sum: f64,
    /// Of rests: how many, the mean of what was kept, and the mean square of how far each was from it.
    rests: f64,
    mean: f64,
    square: f64,
}

impl Rest {
    /// Guests come for the first time, or the primary does other work from now on. `idly`: they may cost what they like.
    pub(crate) fn begin_anew(now: u64, idly: bool) -> Self {
        let [every, longest] = EVERY.map(|time| if idly { IDLY * time } else { time });
        Self { due: now + every, every, longest, ..Self::default() }
    }

    /// At the beginning of a spell it takes so long for a yield, alone.
    pub(crate) fn saw(&mut self, ticks: f64) {
        self.spells += 1;
        self.before += (ticks - self.before) * (1.0 / f64::from(self.spells)).max(1.0 / REMEMBERED);
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.every > 0 && now >= self.due && self.spells >= BEFORE
    }

    pub(crate) fn begin(&mut self, now: u64) {
        (self.began, self.looks, self.sum) = (now, 0, 0.0);
    }

    /// It was looked at in its rest (`None`: that told nothing). Whether the rest is over.
    pub(crate) fn look(&mut self, now: u64, ticks: Option<f64>) -> bool {
        if let Some(ticks) = ticks.filter(|_| now >= self.began + TAIL) {
            self.sum += ticks;
            self.looks += 1;
        }
        if now < self.began + REST {
            return false;
        }
        if self.looks >= LEAST {
            self.learn(self.sum / f64::from(self.looks) / self.before);
        }
        self.put_off(now);
        true
    }

    /// It slept, which tells nothing: guests are not to wait again at once for that.
    pub(crate) fn put_off(&mut self, now: u64) {
        self.every = (2 * self.every).min(self.longest);
        self.due = now + self.every;
    }

    fn learn(&mut self, kept: f64) {
        if !(SAME[0]..SAME[1]).contains(&kept) {
            // Other work: what is known is of the work before.
            (self.spells, self.before) = (0, 0.0);
            return;
        }
        self.rests += 1.0;
        let weight = (1.0 / self.rests).max(1.0 / REMEMBERED);
        let away = kept - self.mean;
        self.mean += away * weight;
        self.square += (away * away * (1.0 - weight) - self.square) * weight;
    }

    /// The share of its pace that the primary keeps alone a moment after guests, 1 where nothing else is certain.
    pub(crate) fn kept(&self) -> f64 {
        /// Where there was one rest only, it is known to so much.
        const UNKNOWN: f64 = 0.1;
        if self.rests < 1.0 {
            return 1.0;
        }
        let many = self.rests.min(REMEMBERED);
        let error = if many < 2.0 { UNKNOWN } else { root(self.square / (many - 1.0)) };
        (self.mean + error).clamp(SAME[0], 1.0)
    }
}

/// The square root of a small number, as the standard library's is not to be had here.
fn root(of: f64) -> f64 {
    let mut root = of.max(1e-3);
    for _ in 0..12 {
        root = f64::midpoint(root, of / root);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many seconds of a primary that keeps such a share of its pace after guests, whose looks differ by 4 %.
    fn live(rest: &mut Rest, from: u64, seconds: f64, kept: impl Fn(f64) -> f64) -> u64 {
        let mut noise = from | 1;
        let mut look = |ticks: f64| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ticks * (1.0 + ((noise >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.14)
        };
        let (mut now, end) = (from, from + (seconds * 1e9) as u64);
        let mut resting = 0;
        while now < end {
            rest.saw(look(100.0));
            if rest.is_due(now) {
                rest.begin(now);
                let began = now;
                loop {
                    now += STEP;
                    let back = (now - began) as f64 / (REST / 2) as f64;
                    let ticks = 100.0 * (1.0 - (1.0 - kept(now as f64 / 1e9)) * back.min(1.0));
                    if rest.look(now, Some(look(ticks))) {
                        break;
                    }
                }
                resting += now - began;
            }
            now += 65_000_000;
        }
        resting
    }

    #[test]
    fn what_is_displaced_is_found_and_what_is_chance_is_not() {
        for kept in [0.7, 0.88, 0.95] {
            let mut rest = Rest::begin_anew(1, false);
            live(&mut rest, 1, 30.0, |_| kept);
            assert!((kept - 0.015..kept + 0.04).contains(&rest.kept()), "{} of {kept}", rest.kept());
        }
        for from in 1..20 {
            let mut rest = Rest::begin_anew(from, false);
            live(&mut rest, from, 30.0, |_| 1.0);
            assert!(rest.kept() > 0.98, "{}", rest.kept());
        }
    }

    #[test]
    fn few_looks_that_take_long_tell_as_well() {
        let mut rest = Rest::begin_anew(1, false);
        for began in (1..9).map(|rest| rest * 1_000_000_000) {
            (0..BEFORE).for_each(|_| rest.saw(125.0));
            rest.begin(began);
            // As of one that naps.
            let look = |rest: &mut Rest, after: u64| {
                rest.look(began + after, Some(if after < TAIL { 125.0 } else { 100.0 }))
            };
            assert!((1..7).all(|at| !look(&mut rest, at * 15_000_000)) && look(&mut rest, 105_000_000));
        }
        assert!((rest.kept() - 0.8).abs() < 1e-6, "{}", rest.kept());
    }

    #[test]
    fn a_change_is_followed_and_rests_are_rare() {
        let mut rest = Rest::begin_anew(1, false);
        let resting = live(&mut rest, 1, 60.0, |seconds| if seconds < 30.0 { 0.8 } else { 1.0 });
        assert!(rest.kept() > 0.95, "{}", rest.kept());
        assert!(resting as f64 / 60e9 < 0.035, "{resting}");
    }

    #[test]
    fn where_nothing_hangs_on_them_rests_are_very_rare() {
        let mut rest = Rest::begin_anew(1, true);
        let resting = live(&mut rest, 1, 60.0, |_| 0.8);
        assert!(resting > 0 && (resting as f64) < 60e9 * 0.01, "{resting}");
    }

    #[test]
    fn roots_are_roots() {
        for of in [0.0, 1e-6, 2e-4, 0.01, 0.36] {
            assert!((root(of) - f64::sqrt(of)).abs() < 1e-6, "{of}: {}", root(of));
        }
    }

    #[test]
    fn who_sleeps_in_its_rests_has_them_as_seldom() {
        let mut rest = Rest::begin_anew(1, false);
        (0..BEFORE).for_each(|_| rest.saw(100.0));
        let (mut now, mut rests) = (1, 0);
        while now < 10_000_000_000 {
            now += 5_000_000;
            if rest.is_due(now) {
                rest.begin(now);
                rest.put_off(now + STEP);
                rests += 1;
            }
        }
        assert!((3..8).contains(&rests) && rest.kept() >= 1.0, "{rests}");
    }

    #[test]
    fn other_work_tells_nothing() {
        let mut rest = Rest::begin_anew(1, false);
        (0..BEFORE).for_each(|_| rest.saw(100.0));
        rest.begin(1);
        assert!((13..25).all(|at| !rest.look(at * STEP, Some(20.0))));
        assert!(rest.look(1 + REST, Some(20.0)));
        assert_eq!((rest.kept(), rest.is_due(u64::MAX)), (1.0, false));
    }
}
