//! Samples of the primary's pace, put together.

use super::pace::Step;
use crate::count;
use core::sync::atomic::Ordering::Relaxed;

/// What samples say.
#[derive(Clone, Copy)]
pub(super) struct Mean {
    /// Ticks for a yield: of all samples, and of the lower three quarters.
    pub(super) ticks: [f64; 2],
    /// By how far the earlier samples differ from all, by their medians.
    pub(super) error: f64,
}

impl Step {
    /// Of a row of samples of so many yields, without those that only an interruption explains.
    pub(super) fn mean(&self, row: usize, lap: i32) -> Option<Mean> {
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
