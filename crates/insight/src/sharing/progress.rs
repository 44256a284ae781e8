//! How much slower threads get on while they share lines, by what they get done.
//!
//! A loop counts somewhere: rounds that are left, an index, where it reads. Such a register goes
//! one way from sample to sample, and samples are as far apart in CPU time whatever else runs. So
//! how far it goes from one to the next tells the speed, together with other threads and alone:
//!
//! ```text
//!   register   4000   3996   3992      3981   3970   3959
//!              together: 4 a sample    alone: 11 a sample
//! ```
//!
//! Then 7 of 11 parts of the time together are what sharing costs, wherever its samples land.

use super::access::Moment;
use units::Estimate;

/// Steps of a register that go one way, of all, before it counts as progress.
const STEADY: f64 = 0.95;
/// Steps alone, and together, that tell a speed.
const LEAST_STEPS: usize = 12;
/// A step takes this many times the usual distance of samples at most: else the thread was
/// elsewhere.
const MOST_APART: u64 = 16;

/// Steps of one register.
#[derive(Clone, Debug, Default)]
struct Steps {
    together: Vec<f64>,
    alone: Vec<f64>,
    up: usize,
    down: usize,
    still: usize,
}

/// The part of the time together that private lines would save. `is_together` says of a moment
/// whether another thread ran beside it.
pub(super) fn saved_together(moments: &[Moment], is_together: impl Fn(&Moment) -> bool) -> Option<Estimate> {
    let mut ordered: Vec<(&Moment, bool)> = moments.iter().map(|m| (m, is_together(m))).collect();
    ordered.sort_by_key(|(moment, _)| (moment.process, moment.thread, moment.time_ns));
    let pairs: Vec<[(&Moment, bool); 2]> = ordered
        .windows(2)
        .filter_map(|pair| <[_; 2]>::try_from(pair).ok())
        .filter(|[(a, _), (b, _)]| (a.process, a.thread) == (b.process, b.thread))
        .collect();
    let usual = usual_distance_ns(moments)?;
    let near = |[(a, _), (b, _)]: &&[(&Moment, bool); 2]| b.time_ns - a.time_ns <= MOST_APART * usual;
    let pairs: Vec<_> = pairs.iter().filter(near).collect();
    (0..16)
        .filter_map(|register| {
            let mut steps = Steps::default();
            for [(a, before), (b, after)] in &pairs {
                let (from, to) = (a.registers?.general[register], b.registers?.general[register]);
                steps.count(to.wrapping_sub(from) as i64, (*before == *after).then_some(*before));
            }
            steps.saved()
        })
        // The one that tells it most sharply.
        .min_by(|a, b| (a.hi - a.lo).total_cmp(&(b.hi - b.lo)))
}

/// The usual time from one sample of a thread to its next.
pub(super) fn usual_distance_ns(moments: &[Moment]) -> Option<u64> {
    let mut times: Vec<(u32, u32, u64)> = moments.iter().map(|m| (m.process, m.thread, m.time_ns)).collect();
    times.sort_unstable();
    let mut apart: Vec<u64> = times
        .windows(2)
        .filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1))
        .map(|pair| pair[1].2 - pair[0].2)
        .collect();
    apart.sort_unstable();
    units::middle_sorted(&apart)
}

impl Steps {
    fn count(&mut self, step: i64, together: Option<bool>) {
        match step.signum() {
            1 => self.up += 1,
            -1 => self.down += 1,
            _ => self.still += 1,
        }
        match together {
            Some(true) => self.together.push(step as f64),
            Some(false) => self.alone.push(step as f64),
            None => {}
        }
    }

    fn saved(&self) -> Option<Estimate> {
        let all = (self.up + self.down + self.still) as f64;
        let way = if self.up > self.down { 1.0 } else { -1.0 };
        if (self.up.max(self.down) as f64) < STEADY * all {
            return None;
        }
        let (together, together_off) = speed(&self.together, way)?;
        let (alone, alone_off) = speed(&self.alone, way)?;
        let ratio = together / alone;
        let off = 1.96 * ratio * together_off.hypot(alone_off);
        let saved = |ratio: f64| (1.0 - ratio).clamp(0.0, 1.0);
        Some(Estimate::new(saved(ratio), saved(ratio + off), saved(ratio - off)))
    }
}

/// The mean of the steps that go this way, and its relative standard error. Where a loop begins
/// anew, it goes back: such steps tell nothing.
fn speed(steps: &[f64], way: f64) -> Option<(f64, f64)> {
    let ahead: Vec<f64> = steps.iter().map(|step| step * way).filter(|&step| step >= 0.0).collect();
    if ahead.len() < LEAST_STEPS {
        return None;
    }
    let count = ahead.len() as f64;
    let mean = ahead.iter().sum::<f64>() / count;
    let variance = ahead.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean > 0.0).then(|| (mean, (variance / count).sqrt() / mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::registers::Registers;

    /// A thread that is sampled each 250 µs; RSI counts down by `speed` a sample, RCX goes round.
    fn run(thread: u32, from: u64, samples: u64, speed: u64) -> Vec<Moment> {
        let moment = |n: u64| {
            let mut registers = Registers::default();
            registers.general[6] = 1_000_000 - (n - from) * speed - (n * 7 % 3);
            registers.general[1] = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            Moment { process: 1, thread, time_ns: n * 250_000, weight: 1.0, registers: Some(registers) }
        };
        (from..from + samples).map(moment).collect()
    }

    #[test]
    fn what_is_done_alone_tells_what_sharing_costs() {
        let together = |moment: &Moment| moment.time_ns < 1000 * 250_000;
        let runs = |slow: u64| {
            let mut moments = run(1, 0, 1000, slow);
            moments.extend(run(2, 0, 1000, slow));
            // It goes on where it was.
            moments.extend(run(1, 1000, 400, 100).into_iter().map(|mut moment| {
                moment.registers.as_mut().unwrap().general[6] -= 1000 * slow;
                moment
            }));
            saved_together(&moments, together)
        };
        let saved = runs(40).unwrap();
        assert!((saved.value - 0.6).abs() < 0.01 && saved.hi - saved.lo < 0.05, "{saved:?}");
        let none = runs(100).unwrap();
        assert!(none.value < 0.01 && none.lo == 0.0, "{none:?}");
        assert_eq!(saved_together(&run(1, 0, 1000, 40), together), None, "never alone");
        let mut still = run(1, 0, 2000, 0);
        for moment in &mut still {
            moment.registers.as_mut().unwrap().general[6] = 5;
        }
        assert_eq!(saved_together(&still, together), None, "nothing counts");
    }
}
