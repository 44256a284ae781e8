//! Axes: where values lie, and the ticks that people expect.

use crate::text::{number, size};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log,
}

/// What numbers on an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    Plain,
    /// Powers of two, written `32K`.
    Bytes,
    /// Counts of things: there is no half of one.
    Whole,
}

/// An axis that maps values to pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) numbers: Numbers,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Pixels of `low` and `high`.
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Axis {
    pub(crate) fn at(&self, value: f64) -> f64 {
        let t = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low * 1e-3) / self.low).log2() / (self.high / self.low).log2(),
        };
        // An axis of absurd values has no places to tell apart.
        let t = if t.is_nan() { 0.0 } else { t };
        self.from + t.clamp(-0.02, 1.02) * (self.to - self.from)
    }

    /// Values with their names, ascending.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let values = match (self.scale, self.numbers) {
            (Scale::Linear, _) => linear(self.low, self.high),
            (Scale::Log, Numbers::Plain | Numbers::Whole) => decades(self.low, self.high),
            (Scale::Log, Numbers::Bytes) => powers(self.low, self.high),
        };
        let name = |v: f64| if self.numbers == Numbers::Bytes { size(v) } else { number(v) };
        let fits = |v: &f64| self.numbers != Numbers::Whole || (v - v.round()).abs() < 1e-6;
        values.into_iter().filter(fits).map(|v| (v, name(v))).collect()
    }
}

/// Between four and ten steps of 1, 2 or 5 times a power of ten.
pub(crate) fn linear(low: f64, high: f64) -> Vec<f64> {
    let raw = (high - low) / 6.0;
    if !(raw.is_finite() && raw > 0.0) {
        return vec![low];
    }
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= raw * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

/// Powers of ten, with 2 and 5 between them where there are few.
pub(crate) fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let few = (high / low).log10() < 3.0;
    let within = |v: &f64| *v >= low * 0.999 && *v <= high * 1.001;
    let steps: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first..=last).flat_map(|n| steps.iter().map(move |m| m * 10f64.powi(n))).filter(within).collect()
}

fn powers(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log2().ceil() as i32, high.log2().floor() as i32);
    let step = ((last - first) / 8 + 1).max(1);
    (first..=last).filter(|n| n % step == 0).map(|n| 2f64.powi(n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        assert_eq!(linear(0.0, 160.0), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!(decades(1.0, 150.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(decades(1.0, 1e4), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(powers(1024.0, 8192.0), [1024.0, 2048.0, 4096.0, 8192.0]);
        assert_eq!(linear(3.0, 3.0), [3.0]);
    }

    #[test]
    fn there_is_no_half_of_a_thread() {
        for (scale, low, high) in
            [(Scale::Linear, 1.0, 2.0), (Scale::Linear, 1.0, 4.0), (Scale::Log, 0.5, 8.0)]
        {
            let axis = Axis { scale, numbers: Numbers::Whole, low, high, from: 0.0, to: 400.0 };
            let ticks = axis.ticks();
            assert!(ticks.len() >= 2 && ticks.iter().all(|(v, _)| v.fract().abs() < 1e-6), "{ticks:?}");
            assert!(ticks.iter().all(|(_, name)| !name.contains('.')), "{ticks:?}");
        }
    }

    #[test]
    fn a_logarithmic_axis_puts_equal_ratios_at_equal_distances() {
        let axis =
            Axis { scale: Scale::Log, numbers: Numbers::Bytes, low: 1.0, high: 16.0, from: 0.0, to: 400.0 };
        assert_eq!([1.0, 2.0, 4.0, 16.0].map(|v| axis.at(v)), [0.0, 100.0, 200.0, 400.0]);
        let linear = Axis { scale: Scale::Linear, high: 5.0, ..axis };
        assert_eq!(linear.at(2.0), 100.0);
    }
}
