//! What guests displaced from the shared caches, measured.
//!
//! Cache contents come back slowly: a primary sampled a moment after its guests left is still
//! slower than it would be without them. So now and then guests wait for a *cache recovery*, a
//! pause long enough for the primary's cache contents to come back. How much faster the primary is
//! at its end tells which share of its pace it *keeps* in ordinary solo samples. Pure: time and
//! paces in, that share out.
//!
//! Paces differ by some percent from one sample to the next, so a share counts only as far as all
//! recoveries together show it: what may as well be chance is not held against guests.

use crate::supervisor::figures::{
    CACHES_SHORT_NS, CERTAINLY_LOST, ERROR_OF_ONE_RECOVERY, RECOVERIES_REMEMBERED, RECOVERY_FIRST_NS,
    RECOVERY_INTERVAL_MOST_NS, RECOVERY_NS, RECOVERY_SAMPLES_LEAST, RECOVERY_SOLO_SAMPLES_LEAST,
    SAME_WORK_LEAST, SAME_WORK_MOST, UNBOUNDED_RECOVERIES_FACTOR,
};

/// Zero is one that has not begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheRecovery {
    due: u64,
    every: u64,
    /// From when on a slow sample is worth a recovery, and the pause after the last such one.
    asks_from: u64,
    asks_every: u64,
    longest: u64,
    began: u64,
    /// Solo samples at the beginning of guest phases: how many, and their mean, the latest counting
    /// most.
    solo_samples: u32,
    before: f64,
    /// Samples in this recovery once the caches are back: how many, and their sum.
    samples: u32,
    sum: f64,
    /// Recoveries: how many, the mean of the kept share, and the mean square of the distances from
    /// it.
    recoveries: f64,
    mean: f64,
    square: f64,
}

impl CacheRecovery {
    /// Guests come for the first time, or the primary turns to other work. `unbounded`: they may
    /// cost what they like.
    pub(crate) fn begin_anew(now: u64, unbounded: bool) -> Self {
        let factor = if unbounded { UNBOUNDED_RECOVERIES_FACTOR } else { 1 };
        let (every, longest) = (factor * RECOVERY_FIRST_NS, factor * RECOVERY_INTERVAL_MOST_NS);
        Self { due: now + every, every, longest, ..Self::default() }
    }

    /// Adds a solo sample at the beginning of a guest phase: ticks for a yield.
    pub(crate) fn add_solo_sample(&mut self, ticks: f64) {
        self.solo_samples += 1;
        self.before +=
            (ticks - self.before) * (1.0 / f64::from(self.solo_samples)).max(1.0 / RECOVERIES_REMEMBERED);
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.every > 0 && now >= self.due && self.solo_samples >= RECOVERY_SOLO_SAMPLES_LEAST
    }

    /// A solo sample is much slower than those before, of `ticks` for a yield: a recovery tells
    /// whether the primary turned to other work, or lost its cache contents to guests.
    /// Returns whether it is worth one: samples also differ for no reason of the primary's, and the
    /// more often that was it, the rarer these recoveries are.
    pub(crate) fn ask(&mut self, now: u64, ticks: f64) -> bool {
        let may = now >= self.asks_from;
        if may {
            (self.solo_samples, self.before) = (RECOVERY_SOLO_SAMPLES_LEAST, ticks);
            self.asks_every = (2 * self.asks_every).clamp(RECOVERY_FIRST_NS, RECOVERY_INTERVAL_MOST_NS);
            self.asks_from = now + self.asks_every;
        }
        may
    }

    pub(crate) fn begin(&mut self, now: u64) {
        (self.began, self.samples, self.sum) = (now, 0, 0.0);
    }

    /// Adds a sample in a recovery (`None`: it tells nothing). Returns whether the recovery is
    /// over.
    pub(crate) fn add_sample(&mut self, now: u64, ticks: Option<f64>) -> bool {
        if let Some(ticks) = ticks.filter(|_| now >= self.began + CACHES_SHORT_NS) {
            self.sum += ticks;
            self.samples += 1;
        }
        if now < self.began + RECOVERY_NS {
            return false;
        }
        if self.samples >= RECOVERY_SAMPLES_LEAST {
            self.learn(self.sum / f64::from(self.samples) / self.before);
        }
        self.put_off(now);
        true
    }

    /// The primary slept, which tells nothing; guests shall not wait again at once.
    pub(crate) fn put_off(&mut self, now: u64) {
        self.every = (4 * self.every).min(self.longest);
        self.due = now + self.every;
    }

    fn learn(&mut self, kept: f64) {
        if !(SAME_WORK_LEAST..SAME_WORK_MOST).contains(&kept) {
            // Other work: what is known belongs to the work before.
            (self.solo_samples, self.before) = (0, 0.0);
            return;
        }
        if kept < CERTAINLY_LOST {
            (self.asks_from, self.asks_every) = (0, 0);
        }
        self.recoveries += 1.0;
        let weight = (1.0 / self.recoveries).max(1.0 / RECOVERIES_REMEMBERED);
        let away = kept - self.mean;
        self.mean += away * weight;
        self.square += (away * away * (1.0 - weight) - self.square) * weight;
    }

    /// The share of its pace that the primary keeps in solo samples a moment after guests; 1 where
    /// nothing else is certain.
    pub(crate) fn kept(&self) -> f64 {
        if self.recoveries < 1.0 {
            return 1.0;
        }
        let many = self.recoveries.min(RECOVERIES_REMEMBERED);
        let error = if many < 2.0 { ERROR_OF_ONE_RECOVERY } else { root(self.square / (many - 1.0)) };
        (self.mean + error).clamp(SAME_WORK_LEAST, 1.0)
    }
}

/// The square root of a small number; `core` has none.
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
    use crate::supervisor::figures::RECOVERY_STEP_NS;

    /// Some seconds of a primary that keeps a share of its pace after guests, and whose samples
    /// differ by 4 %. Returns the time spent in recoveries.
    fn live(recovery: &mut CacheRecovery, from: u64, seconds: f64, kept: impl Fn(f64) -> f64) -> u64 {
        let mut noise = from | 1;
        let mut look = |ticks: f64| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ticks * (1.0 + ((noise >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.14)
        };
        let (mut now, end) = (from, from + (seconds * 1e9) as u64);
        let mut recovering = 0;
        while now < end {
            recovery.add_solo_sample(look(100.0));
            if recovery.is_due(now) {
                recovery.begin(now);
                let began = now;
                loop {
                    now += RECOVERY_STEP_NS;
                    let back = (now - began) as f64 / (RECOVERY_NS / 2) as f64;
                    let ticks = 100.0 * (1.0 - (1.0 - kept(now as f64 / 1e9)) * back.min(1.0));
                    if recovery.add_sample(now, Some(look(ticks))) {
                        break;
                    }
                }
                recovering += now - began;
            }
            now += 65_000_000;
        }
        recovering
    }

    #[test]
    fn what_is_displaced_is_found_and_what_is_chance_is_not() {
        for kept in [0.7, 0.88, 0.95] {
            let mut recovery = CacheRecovery::begin_anew(1, false);
            live(&mut recovery, 1, 30.0, |_| kept);
            assert!((kept - 0.015..kept + 0.04).contains(&recovery.kept()), "{} of {kept}", recovery.kept());
        }
        for from in 1..20 {
            let mut recovery = CacheRecovery::begin_anew(from, false);
            live(&mut recovery, from, 30.0, |_| 1.0);
            assert!(recovery.kept() > 0.98, "{}", recovery.kept());
        }
    }

    #[test]
    fn few_looks_that_take_long_tell_as_well() {
        let mut recovery = CacheRecovery::begin_anew(1, false);
        for began in (1..9).map(|recovery| recovery * 1_000_000_000) {
            (0..RECOVERY_SOLO_SAMPLES_LEAST).for_each(|_| recovery.add_solo_sample(125.0));
            recovery.begin(began);
            // As of one that naps.
            let look = |recovery: &mut CacheRecovery, after: u64| {
                recovery.add_sample(began + after, Some(if after < CACHES_SHORT_NS { 125.0 } else { 100.0 }))
            };
            assert!(
                (1..7).all(|at| !look(&mut recovery, at * 15_000_000)) && look(&mut recovery, 105_000_000)
            );
        }
        assert!((recovery.kept() - 0.8).abs() < 1e-6, "{}", recovery.kept());
    }

    #[test]
    fn a_change_is_followed_and_rests_are_rare() {
        let mut recovery = CacheRecovery::begin_anew(1, false);
        let recovering = live(&mut recovery, 1, 60.0, |seconds| if seconds < 30.0 { 0.8 } else { 1.0 });
        assert!(recovery.kept() > 0.95, "{}", recovery.kept());
        assert!(recovering as f64 / 60e9 < 0.035, "{recovering}");
    }

    #[test]
    fn where_nothing_hangs_on_them_rests_are_very_rare() {
        let mut recovery = CacheRecovery::begin_anew(1, true);
        let recovering = live(&mut recovery, 1, 60.0, |_| 0.8);
        assert!(recovering > 0 && (recovering as f64) < 60e9 * 0.01, "{recovering}");
    }

    #[test]
    fn roots_are_roots() {
        for of in [0.0, 1e-6, 2e-4, 0.01, 0.36] {
            assert!((root(of) - f64::sqrt(of)).abs() < 1e-6, "{of}: {}", root(of));
        }
    }

    #[test]
    fn recoveries_put_off_by_sleep_are_as_seldom() {
        let mut recovery = CacheRecovery::begin_anew(1, false);
        (0..RECOVERY_SOLO_SAMPLES_LEAST).for_each(|_| recovery.add_solo_sample(100.0));
        let (mut now, mut recoveries) = (1, 0);
        while now < 10_000_000_000 {
            now += 5_000_000;
            if recovery.is_due(now) {
                recovery.begin(now);
                recovery.put_off(now + RECOVERY_STEP_NS);
                recoveries += 1;
            }
        }
        assert!((3..8).contains(&recoveries) && recovery.kept() >= 1.0, "{recoveries}");
    }

    #[test]
    fn slow_samples_that_were_chance_are_asked_about_less_and_less() {
        let mut recovery = CacheRecovery::begin_anew(1, false);
        let asked = |recovery: &mut CacheRecovery, kept: f64| {
            (0..10_000_u64)
                .filter(|ms| {
                    let asks = recovery.ask(ms * 1_000_000, 100.0);
                    if asks {
                        recovery.learn(kept);
                    }
                    asks
                })
                .count()
        };
        assert!((3..8).contains(&asked(&mut recovery, 1.0)));
        let mut recovery = CacheRecovery::begin_anew(1, false);
        assert_eq!(asked(&mut recovery, 0.3), 10_000, "they are displaced each time");
    }

    #[test]
    fn other_work_tells_nothing() {
        let mut recovery = CacheRecovery::begin_anew(1, false);
        (0..RECOVERY_SOLO_SAMPLES_LEAST).for_each(|_| recovery.add_solo_sample(100.0));
        recovery.begin(1);
        assert!((13..25).all(|at| !recovery.add_sample(at * RECOVERY_STEP_NS, Some(2.0))));
        assert!(recovery.add_sample(1 + RECOVERY_NS, Some(2.0)));
        assert_eq!((recovery.kept(), recovery.is_due(u64::MAX)), (1.0, false));
    }
}
