//! Quantities as text: `4.00 cycles [3.98, 4.02] measured`, `not resolved: why`.
//!
//! As many digits as the interval warrants, no more; sizes and rates in the unit that people use
//! for them. To give a unit a scale of its own: an arm in [`scale`].

use crate::{Basis, Quantity, Unit};
use std::fmt;

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, lo, hi, unit, basis, disturbed) = match self {
            Self::Unresolved { unresolved } => return f.pad(&format!("not resolved: {unresolved}")),
            Self::Resolved { value, lo, hi, unit, basis, disturbed } => {
                (*value, *lo, *hi, *unit, basis, disturbed)
            }
        };
        let (divisor, symbol) = scale(unit, value);
        let (value, lo, hi) = (value / divisor, lo / divisor, hi / divisor);
        let mut text = if lo == hi {
            exact(value)
        } else {
            let decimals = decimals_for((hi - lo) / 2.0);
            // A zero that lost its digits must not keep its sign.
            let figure = |x: f64| {
                format!(
                    "{:.*}",
                    decimals,
                    if x.abs() < 0.5 * 10f64.powi(-(decimals as i32)) { 0.0 } else { x }
                )
            };
            format!("{}{symbol} [{}, {}]", figure(value), figure(lo), figure(hi))
        };
        if lo == hi {
            text.push_str(&symbol);
        }
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

/// What to divide by for people, and what to write behind the number.
fn scale(unit: Unit, value: f64) -> (f64, String) {
    let (base, names): (f64, &[&str]) = match unit {
        Unit::Bytes => (1024.0, &["bytes", "KiB", "MiB", "GiB", "TiB"]),
        Unit::BytesPerSecond => (1000.0, &["bytes/s", "KB/s", "MB/s", "GB/s", "TB/s"]),
        Unit::Hertz => (1000.0, &["Hz", "kHz", "MHz", "GHz"]),
        Unit::Count | Unit::Ratio => return (1.0, String::new()),
        _ => return (1.0, format!(" {}", unit.symbol())),
    };
    let mut step = 0;
    while step + 1 < names.len() && value.abs() >= base.powi(step as i32 + 1) {
        step += 1;
    }
    (base.powi(step as i32), format!(" {}", names[step]))
}

/// The decimals with which the half width shows one significant digit, or two where it begins with
/// a 1.
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
    use crate::{Estimate, Quantity, Unit};

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
    fn what_is_missing_says_why() {
        assert_eq!(Quantity::unresolved("too noisy").to_string(), "not resolved: too noisy");
        let q = Quantity::measured(Estimate::exact(7.0), Unit::Ticks).disturbed_by(Some("steal".to_owned()));
        assert_eq!(q.to_string(), "7 ticks measured (disturbed: steal)");
    }
}
