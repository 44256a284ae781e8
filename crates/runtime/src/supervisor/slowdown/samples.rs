//! The samples of one stage of counting, put together into a mean pace.

use crate::counting::count;
use crate::supervisor::figures::{TAIL_IS_IDLE, TAIL_MAY_BE_IDLE};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// The mean of some samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaceMean {
    /// Ticks for a yield: the mean of all samples, and of the lower three quarters.
    pub(crate) ticks: [f64; 2],
    /// The distance between the median of the earlier half and that of all.
    pub(crate) error: f64,
}

impl PaceMean {
    /// How likely it is, from 0 to 1, that idle times are in it: samples that differ for other
    /// reasons have a shorter tail.
    pub(crate) fn idles(&self) -> f64 {
        let tail = self.ticks[0] / self.ticks[1];
        ((tail - TAIL_MAY_BE_IDLE) / (TAIL_IS_IDLE - TAIL_MAY_BE_IDLE)).clamp(0.0, 1.0)
    }
}

/// The mean of a row of samples of `lap` yields each, without those that only an interruption
/// explains.
pub(crate) fn mean_of(
    samples: &[AtomicU32; count::SAMPLES],
    absence_ticks: u64,
    lap: i32,
) -> Option<PaceMean> {
    let mut sorted = [0_u32; count::SAMPLES];
    let mut many = 0;
    for sample in samples {
        let sample = sample.load(Relaxed);
        if sample != 0 {
            sorted[many] = sample;
            many += 1;
        }
    }
    let sorted = &mut sorted[..many];
    sorted.sort_unstable();
    let middle = f64::from(*sorted.get(many / 2)?);
    let longest = (4.0 * absence_ticks as f64 * f64::from(count::FEW)).max(8.0 * middle);
    let mean = |of: &[u32]| of.iter().map(|ticks| f64::from(*ticks)).sum::<f64>() / of.len() as f64;
    let kept = sorted.iter().filter(|ticks| f64::from(**ticks) <= longest).count().max(1);
    let most = (kept * 3).div_ceil(4);
    let lap = f64::from(lap);
    let all = mean(&sorted[..kept]);
    let mut early = [0_u32; count::SAMPLES / 2];
    let early = &mut early[..many / 2];
    for (to, from) in early.iter_mut().zip(samples) {
        *to = from.load(Relaxed);
    }
    early.sort_unstable();
    let error = early.get(early.len() / 2).map_or(middle, |ticks| (f64::from(*ticks) - middle).abs());
    Some(PaceMean { ticks: [all / lap, mean(&sorted[..most]) / lap], error: error / lap })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_times_are_told_from_a_tail() {
        let idles = |all, most| PaceMean { ticks: [all, most], error: 0.0 }.idles();
        // As a chase has it in a guest of a guest; and a program that waits for a third of its
        // time.
        assert_eq!((idles(349.0, 301.0), idles(450.0, 300.0)), (0.0, 1.0));
        assert!((0.2..0.8).contains(&idles(405.0, 300.0)));
    }
}
