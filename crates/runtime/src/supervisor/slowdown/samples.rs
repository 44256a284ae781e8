//! Samples of the primary's pace, put together.

use super::sampler::Step;
use crate::counting::count;
use core::sync::atomic::Ordering::Relaxed;

/// What samples say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mean {
    /// Ticks for a yield: of all samples, and of the lower three quarters.
    pub(crate) ticks: [f64; 2],
    /// By how far the earlier samples differ from all, by their medians.
    pub(crate) error: f64,
}

/// Where the mean of all is so many times that of the lower three quarters, the rest of them may be idle time; and where it is so many
/// times that, it is.
const IDLE: [f64; 2] = [1.2, 1.5];

impl Mean {
    /// How likely it is that idle times are in it. Samples that differ for other reasons have a tail, too, but a shorter one.
    pub(crate) fn idles(&self) -> f64 {
        ((self.ticks[0] / self.ticks[1] - IDLE[0]) / (IDLE[1] - IDLE[0])).clamp(0.0, 1.0)
    }
}

impl Step {
    /// Of a row of samples of so many yields, without those that only an interruption explains.
    pub(crate) fn mean(&self, row: usize, lap: i32) -> Option<Mean> {
        let mut sorted = [0_u32; count::SAMPLES];
        let mut many = 0;
        for sample in self.area.samples(row) {
            let sample = sample.load(Relaxed);
            if sample != 0 {
                sorted[many] = sample;
                many += 1;
            }
        }
        let sorted = &mut sorted[..many];
        sorted.sort_unstable();
        let middle = f64::from(*sorted.get(many / 2)?);
        let longest =
            (4.0 * self.area.absence_ticks.load(Relaxed) as f64 * f64::from(count::FEW)).max(8.0 * middle);
        let mean = |of: &[u32]| of.iter().map(|ticks| f64::from(*ticks)).sum::<f64>() / of.len() as f64;
        let kept = sorted.iter().filter(|ticks| f64::from(**ticks) <= longest).count().max(1);
        let most = (kept * 3).div_ceil(4);
        let lap = f64::from(lap);
        let all = mean(&sorted[..kept]);
        let mut early = [0_u32; count::SAMPLES / 2];
        let early = &mut early[..many / 2];
        for (to, from) in early.iter_mut().zip(self.area.samples(row)) {
            *to = from.load(Relaxed);
        }
        early.sort_unstable();
        let error = early.get(early.len() / 2).map_or(middle, |ticks| (f64::from(*ticks) - middle).abs());
        Some(Mean { ticks: [all / lap, mean(&sorted[..most]) / lap], error: error / lap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_times_are_told_from_a_tail() {
        let idles = |all, most| Mean { ticks: [all, most], error: 0.0 }.idles();
        // As a chase has it in a guest of a guest; and a program that waits for a third of its time.
        assert_eq!((idles(349.0, 301.0), idles(450.0, 300.0)), (0.0, 1.0));
        assert!((0.2..0.8).contains(&idles(405.0, 300.0)));
    }
}
