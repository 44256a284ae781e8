//! How long a primary's absences are to be: up to the knee.
//!
//! ```text
//!   time from yield        /
//!   to yield              /   each nanosecond of absence makes the primary a nanosecond late
//!        ________________/
//!        its miss        |
//!                        the knee: absences that end here cost nothing, and are longest
//! ```
//!
//! Where the knee is, no price says: the miss of a load in a guest of a hypervisor may be a third
//! longer than the machine's, misses of a hash join overlap, and guests run ahead while a miss is
//! waited for. So it is searched for: samples are taken with absences that are longer and shorter
//! in turns, and what the primary's yields take tells the slope between. Beyond the knee absences
//! go only where the primary loses less than it may: then guests gain at least what it loses.

use crate::supervisor::slowdown::controller::Costs;

/// Absences that are as long as wanted but for this part are left so: a sample is a tenth off
/// itself.
const NEAR: f64 = 0.1;
/// A sample's weight in the mean.
const TIMES_WEIGHT: f64 = 0.25;
/// By how much absences are shorter than what is wanted in every other sample while guests cost too
/// much.
const TRIAL: f64 = 1.4;
/// Two samples whose absences differ by a smaller part do not tell a slope.
const TOLD_APART: f64 = 0.05;
/// Where each nanosecond of absence makes the primary later by more than this many, absences are
/// beyond the knee. Little, since what is beyond it is lost for sure.
const FLAT: f64 = 0.2;
/// By how much the length that is wanted changes after two samples that differ by [`FLAT`]; it
/// changes by twice that at most.
const LENGTH_STEP: f64 = 0.05;
/// By how much it grows after each sample while guests cost little.
const GROWTH: f64 = 1.02;
/// By how much a quantum is changed at most at once.
const STEP: f64 = 1.5;

/// What a sample told, in nanoseconds.
#[derive(Clone, Copy)]
struct Told {
    absence: f64,
    /// From yield to yield.
    each_yield: f64,
    shorter: bool,
}

/// How long a thread's absences are to be. Pure: samples in, a length out. Zero is one that has not
/// begun.
#[derive(Clone, Copy, Default)]
pub(crate) struct AbsenceLength {
    pub(super) wanted_ns: f64,
    before: Option<Told>,
    /// What absences are to take until the next sample, which is shorter than what is wanted or
    /// not.
    trial_ns: f64,
    pub(crate) shorter: bool,
    /// How many times that they took, the mean of the last samples.
    times: f64,
}

impl AbsenceLength {
    /// Begins with this part of a miss.
    pub(super) fn begin(&mut self, ns: f64) {
        if self.wanted_ns <= 0.0 {
            (self.wanted_ns, self.times) = (ns, 1.0);
        }
    }

    /// What absences are to take until the next sample, after one where they took `absence`.
    /// Returns by what quanta are to be multiplied for that.
    pub(super) fn next_trial(&mut self, absence: f64, costs: Costs) -> f64 {
        let before = self.trial_ns;
        self.shorter = matches!(costs, Costs::TooMuch) && !self.shorter;
        self.trial_ns = if self.shorter { self.wanted_ns / TRIAL } else { self.wanted_ns };
        if before <= 0.0 {
            return step(self.trial_ns / absence.max(1.0));
        }
        self.times += (absence / before - self.times) * TIMES_WEIGHT;
        let mut factor = self.trial_ns / before;
        if (self.times - 1.0).abs() > NEAR {
            // What is too large a step is left for later.
            let part = step(self.times);
            factor /= part;
            self.times /= part;
        }
        factor
    }

    /// Takes note of a sample: of absences this long, where a yield took so long.
    pub(super) fn told(&mut self, absence: f64, each_yield: f64, costs: Costs) {
        let now = Told { absence, each_yield, shorter: self.shorter };
        let before = self.before.replace(now);
        if matches!(costs, Costs::Little) {
            self.wanted_ns *= GROWTH;
        }
        let pair = before.filter(|before| before.shorter != now.shorter);
        let (Some(before), Costs::TooMuch) = (pair, costs) else { return };
        let apart = now.absence - before.absence;
        if apart.abs() < TOLD_APART * now.absence.max(before.absence) {
            return; // its guests end their turns by themselves
        }
        let slope = (now.each_yield - before.each_yield) / apart;
        self.wanted_ns *= 1.0 + ((FLAT - slope) / FLAT).clamp(-2.0, 2.0) * LENGTH_STEP;
    }

    pub(super) fn keep_within(&mut self, least: f64, most: f64) {
        self.wanted_ns = self.wanted_ns.clamp(least, most.max(least));
    }
}

fn step(factor: f64) -> f64 {
    factor.clamp(1.0 / STEP, STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a primary whose miss takes 280 ns, all of it or but `overlapped` of it waited
    /// for, and whose guest runs 3 ns for each cycle of its quantum. Returns how long its absences
    /// are in the end.
    fn search(begin: f64, overlapped: f64, costs: Costs) -> f64 {
        let (mut length, mut noise, mut quantum, mut absence) =
            (AbsenceLength::default(), 1_u32, 100.0_f64, 0.0);
        length.begin(begin);
        for _ in 0..600 {
            let mut random = || {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(noise >> 16) / 65536.0 - 0.5
            };
            absence = 3.0 * quantum;
            let takes = (280.0 - overlapped).max(absence) + 20.0;
            let told = absence * (1.0 + 0.1 * random());
            length.told(told, takes * (1.0 + 0.05 * random()), costs);
            length.keep_within(64.0, 1600.0);
            quantum *= length.next_trial(told, costs);
        }
        if length.shorter { absence } else { absence * TRIAL }
    }

    #[test]
    fn the_knee_is_found_from_both_sides() {
        for begin in [80.0, 168.0, 900.0] {
            let found = search(begin, 0.0, Costs::TooMuch);
            assert!((230.0..400.0).contains(&found), "{begin}: {found}");
        }
        let found = search(168.0, 260.0, Costs::TooMuch);
        assert!(found < 110.0, "misses that overlap leave no time: {found}");
    }

    #[test]
    fn absences_are_longer_than_that_only_where_they_cost_little() {
        let longest = search(168.0, 0.0, Costs::Little) / TRIAL;
        assert!((longest / 1600.0 - 1.0).abs() < 0.2, "{longest}");
        let left = search(400.0, 0.0, Costs::Enough) / TRIAL;
        assert!((left / 400.0 - 1.0).abs() < 0.2, "left as they are: {left}");
    }

    #[test]
    fn guests_that_end_their_turns_by_themselves_change_nothing() {
        let mut length = AbsenceLength::default();
        length.begin(168.0);
        for _ in 0..50 {
            length.told(100.0, 300.0, Costs::TooMuch);
            length.next_trial(100.0, Costs::TooMuch);
        }
        assert!((length.wanted_ns - 168.0).abs() < 1e-9);
    }
}
