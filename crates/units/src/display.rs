//! Quantities as text: `4.00 cycles [3.98, 4.02] measured`, `at most 17 ns measured`,
//! `not resolved: why`.
//!
//! As many digits as the interval warrants, no more; sizes, rates and long or short times in the
//! unit that people use for them. To give a unit a scale of its own: an arm in [`scale`].

use crate::{Basis, Bound, Estimate, Quantity, Unit};
use std::fmt;

/// Digits of an exact value in a summary.
const BRIEF_DIGITS: i32 = 3;

impl Quantity {
    /// For summaries: without its basis, and an exact value to three digits: `31 ms`, `9.7 ns [8.6,
    /// 10.8]`.
    pub fn brief(&self) -> String {
        match self {
            Self::Resolved { bound: Some(Bound::AtMost), hi, unit, .. } => at_most(*hi, *unit),
            Self::Resolved { value, lo, hi, unit, .. } if lo == hi => {
                let (divisor, symbol) = scale(*unit, *value);
                format!("{}{symbol}", rounded(value / divisor))
            }
            Self::Resolved { value, lo, hi, unit, .. } => interval(*value, *lo, *hi, *unit),
            Self::Unresolved { .. } => self.to_string(),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, lo, hi, unit, basis, disturbed, bound) = match self {
            Self::Unresolved { unresolved } => return f.pad(&format!("not resolved: {unresolved}")),
            Self::Resolved { value, lo, hi, unit, basis, disturbed, bound } => {
                (*value, *lo, *hi, *unit, basis, disturbed, *bound)
            }
        };
        let mut text = match bound {
            Some(Bound::AtMost) => at_most(hi, unit),
            None if lo == hi => {
                let (divisor, symbol) = scale(unit, value);
                exact(value / divisor) + &symbol
            }
            None => interval(value, lo, hi, unit),
        };
        text.push_str(match basis {
            Basis::Measured => " measured",
            Basis::Modelled => " modelled",
            Basis::Claimed => " claimed",
        });
        if let Some(what) = disturbed {
            text.push_str(&format!(" (disturbed: {what})"));
        }
        f.pad(&text)
    }
}

fn at_most(most: f64, unit: Unit) -> String {
    let (divisor, symbol) = scale(unit, most);
    format!("at most {}{symbol}", rounded(most / divisor))
}

fn interval(value: f64, lo: f64, hi: f64, unit: Unit) -> String {
    let (divisor, symbol) = scale(unit, value);
    figures(Estimate::new(value, lo, hi).scaled(1.0 / divisor), &symbol)
}

/// `4.00 GHz [3.98, 4.02]`: all three with the digits that the interval warrants. `unit` stands
/// behind the value, with a space before it if it is to have one. All figures with intervals are
/// written here.
pub fn figures(e: Estimate, unit: &str) -> String {
    let decimals = decimals_for((e.hi - e.lo) / 2.0);
    // A zero that lost its digits must not keep its sign.
    let figure = |x: f64| {
        format!("{:.*}", decimals, if x.abs() < 0.5 * 10f64.powi(-(decimals as i32)) { 0.0 } else { x })
    };
    format!("{}{unit} [{}, {}]", figure(e.value), figure(e.lo), figure(e.hi))
}

/// Times from here on are told in the next larger unit: latencies of memory stay in nanoseconds,
/// whatever they are.
const LONG_NANOS: f64 = 1e4;

/// What to divide by for people, and what to write behind the number.
fn scale(unit: Unit, value: f64) -> (f64, String) {
    let (base, names): (f64, &[&str]) = match unit {
        Unit::Bytes => (1024.0, &["bytes", "KiB", "MiB", "GiB", "TiB"]),
        Unit::BytesPerSecond => (1000.0, &["bytes/s", "KB/s", "MB/s", "GB/s", "TB/s"]),
        Unit::Hertz => (1000.0, &["Hz", "kHz", "MHz", "GHz"]),
        Unit::Nanos if value.abs() >= LONG_NANOS => return time(value, 1.0),
        Unit::Micros => return time(value, 1e3),
        Unit::Seconds => return time(value, 1e9),
        Unit::Count | Unit::Ratio => return (1.0, String::new()),
        _ => return (1.0, format!(" {}", unit.symbol())),
    };
    let mut step = 0;
    while step + 1 < names.len() && value.abs() >= base.powi(step as i32 + 1) {
        step += 1;
    }
    (base.powi(step as i32), format!(" {}", names[step]))
}

/// A time, given in a unit of `nanos` nanoseconds.
fn time(value: f64, nanos: f64) -> (f64, String) {
    let scales = [(1e9, " s"), (1e6, " ms"), (1e3, " us"), (1.0, " ns")];
    let given = || scales.into_iter().find(|(scale, _)| *scale == nanos);
    let fits = |(scale, _): &(f64, &str)| value.abs() * nanos >= *scale;
    let none = value == 0.0 || !value.is_finite();
    let (scale, symbol) = scales.into_iter().find(fits).filter(|_| !none).or_else(given).unwrap_or(scales[3]);
    (scale / nanos, symbol.to_owned())
}

/// To three digits, and none that say nothing.
fn rounded(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (BRIEF_DIGITS - 1 - magnitude).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Decimals with which the half width shows one significant digit, or two where it begins with a 1.
fn decimals_for(half_width: f64) -> usize {
    if !(half_width.is_finite() && half_width > 0.0) {
        return 0;
    }
    let exponent = half_width.log10().floor();
    let leading = half_width / 10f64.powf(exponent);
    let decimals = if leading < 1.95 { 1.0 - exponent } else { -exponent };
    decimals.clamp(0.0, 12.0) as usize
}

/// Three digits behind the point at most, and none that say nothing; small numbers as they are.
fn exact(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::figures;
    use crate::{Basis, Estimate, Quantity, Unit};

    fn text(value: f64, lo: f64, hi: f64, unit: Unit) -> String {
        Quantity::measured(Estimate::new(value, lo, hi), unit).to_string()
    }

    #[test]
    fn digits_follow_the_interval() {
        assert_eq!(text(4.0012, 3.98, 4.02, Unit::Cycles), "4.00 cycles [3.98, 4.02] measured");
        assert_eq!(text(4.0012, 3.99, 4.013, Unit::Cycles), "4.001 cycles [3.990, 4.013] measured");
        assert_eq!(text(161.83, 120.2, 180.9, Unit::Nanos), "162 ns [120, 181] measured");
        assert_eq!(text(72.0, 70.0, 74.0, Unit::Count), "72 [70, 74] measured");
        assert_eq!(text(-0.01, -3.0, 3.0, Unit::Ratio), "0 [-3, 3] measured");
    }

    #[test]
    fn no_digit_is_finer_than_the_interval() {
        for (value, wide) in [(3.243_812, 0.02), (3.243_812, 0.004), (158.26, 31.0), (0.012_34, 0.0007)] {
            let text = figures(Estimate::new(value, value - wide, value + wide), "");
            let number = text.split(' ').next().expect("a value");
            let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            // Two digits of the half width at most, and only whole numbers where it is wider.
            assert!(decimals == 0 || 10f64.powi(-(decimals as i32)) > wide / 20.0, "{text}");
        }
        assert_eq!(figures(Estimate::new(3.2438, 3.2251, 3.2601), " GHz"), "3.244 GHz [3.225, 3.260]");
        assert_eq!(figures(Estimate::new(3.2438, 3.2151, 3.2701), " GHz"), "3.24 GHz [3.22, 3.27]");
    }

    #[test]
    fn sizes_and_rates_are_scaled() {
        assert_eq!(text(32768.0, 32768.0, 32768.0, Unit::Bytes), "32 KiB measured");
        assert_eq!(
            text(2.5963e9, 2.5962e9, 2.5965e9, Unit::Hertz),
            "2.59630 GHz [2.59620, 2.59650] measured"
        );
        assert_eq!(text(1.25e10, 1.2e10, 1.3e10, Unit::BytesPerSecond), "12.5 GB/s [12.0, 13.0] measured");
        assert_eq!(Quantity::claimed(1.5e6, Unit::Bytes).to_string(), "1.431 MiB claimed");
    }

    #[test]
    fn times_are_scaled() {
        assert_eq!(text(30_783_631.451, 30_783_631.451, 30_783_631.451, Unit::Nanos), "30.784 ms measured");
        assert_eq!(text(9000.0, 8000.0, 10_000.0, Unit::Nanos), "9000 ns [8000, 10000] measured");
        assert_eq!(text(0.0123, 0.0111, 0.0135, Unit::Seconds), "12.3 ms [11.1, 13.5] measured");
        assert_eq!(Quantity::claimed(10.0, Unit::Micros).to_string(), "10 us claimed");
        assert_eq!(Quantity::claimed(2e6, Unit::Micros).to_string(), "2 s claimed");
        assert_eq!(text(0.0, 0.0, 0.0, Unit::Seconds), "0 s measured");
        assert_eq!(text(250.0, 250.0, 250.0, Unit::Seconds), "250 s measured");
    }

    #[test]
    fn summaries_are_brief() {
        let exact = |value, unit| Quantity::measured(Estimate::exact(value), unit).brief();
        assert_eq!(exact(30_783_631.451, Unit::Nanos), "30.8 ms");
        assert_eq!(exact(540.8123, Unit::Nanos), "541 ns");
        assert_eq!(exact(3.96751, Unit::Seconds), "3.97 s");
        assert_eq!(exact(1234.0, Unit::Seconds), "1234 s");
        assert_eq!(exact(1_234_567.0, Unit::Count), "1234567");
        assert_eq!(exact(0.0, Unit::Seconds), "0 s");
        let interval = Quantity::measured(Estimate::new(9.7, 8.6, 10.8), Unit::Nanos);
        assert_eq!(interval.brief(), "9.7 ns [8.6, 10.8]");
        assert_eq!(Quantity::unresolved("why").brief(), "not resolved: why");
        let most = Quantity::at_most(17.04, Unit::Nanos, Basis::Measured);
        assert_eq!(
            (most.brief(), most.to_string()),
            ("at most 17 ns".into(), "at most 17 ns measured".into())
        );
    }

    #[test]
    fn what_is_missing_says_why() {
        assert_eq!(Quantity::unresolved("too noisy").to_string(), "not resolved: too noisy");
        let q = Quantity::measured(Estimate::exact(7.0), Unit::Ticks).disturbed_by(Some("steal".to_owned()));
        assert_eq!(q.to_string(), "7 ticks measured (disturbed: steal)");
    }
}
