//! The pace of a primary's thread alone, from looks at it. Pure: samples in, a pace out.
//!
//! Looks differ by a tenth for no reason of the thread's: by what the memory does meanwhile, and the host. All looks of a spell with guests are
//! compared with the pace alone, so if that were the last look's, one spell would seem dear and the next one cheap. Cheap ones last
//! longer, so more would be lost than is seen. So many looks count, the latest most, until one differs by far: then the
//! thread does other work.

use super::samples::Mean;

/// Where looks differ by more, the thread does other work now.
const OTHER: f64 = 0.3;
/// What counts of the latest look where they do not.
const LATEST: f64 = 0.25;

/// Zero is one that has not begun.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reference {
    /// None where yields are rare.
    mean: Option<Mean>,
    looks: u32,
}

impl Reference {
    pub(crate) fn mean(&self) -> Option<Mean> {
        self.mean
    }

    /// Of how many looks.
    pub(crate) fn looks(&self) -> u32 {
        self.looks
    }

    /// Its pace alone was such. `single`: by one sample, so that the doubt about it is in how looks differ.
    pub(crate) fn saw(&mut self, new: Option<Mean>, single: bool) {
        let same = |(old, new): &(Mean, Mean)| (new.ticks[0] / old.ticks[0] - 1.0).abs() <= OTHER;
        let Some((old, new)) = self.mean.zip(new).filter(same) else {
            *self = Self { mean: new, looks: u32::from(new.is_some()) };
            return;
        };
        self.looks += 1;
        let weight = (1.0 / f64::from(self.looks)).max(LATEST);
        let ticks = [0, 1].map(|i| old.ticks[i] + (new.ticks[i] - old.ticks[i]) * weight);
        let error = if single { (new.ticks[0] - old.ticks[0]).abs() / 2.0 } else { new.error };
        self.mean = Some(Mean { ticks, error: old.error + (error - old.error) * weight });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(reference: &mut Reference, ticks: f64) {
        reference.saw(Some(Mean { ticks: [ticks; 2], error: 1.0 }), false);
    }

    /// Seventeen looks that differ by 8 % or so.
    const NOISE: [i32; 17] = [3, -9, 11, -2, 8, -14, 6, -7, 1, 12, -5, -11, 9, 4, -8, 13, -10];

    #[test]
    fn looks_that_differ_count_together() {
        let mut reference = Reference::default();
        for (at, noise) in NOISE.iter().enumerate() {
            look(&mut reference, 300.0 * (1.0 + f64::from(*noise) / 100.0));
            let ticks = reference.mean().expect("looks").ticks;
            assert!(at < 4 || (ticks[0] / 300.0 - 1.0).abs() < 0.05, "{at}: {ticks:?}");
        }
        assert_eq!(reference.looks(), 17);
    }

    #[test]
    fn other_work_is_followed_at_once_and_drift_soon() {
        let mut reference = Reference::default();
        (0..10).for_each(|_| look(&mut reference, 300.0));
        look(&mut reference, 500.0);
        assert!(reference.mean().is_some_and(|mean| mean.ticks[0] > 499.0) && reference.looks() == 1);
        (0..10).for_each(|_| look(&mut reference, 500.0));
        (0..10).for_each(|_| look(&mut reference, 550.0));
        assert!(reference.mean().is_some_and(|mean| mean.ticks[0] > 545.0));
        reference.saw(None, false);
        assert!(reference.mean().is_none());
    }
}
