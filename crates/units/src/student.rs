//! Student's t distribution: few runs give a poor estimate of how much runs differ, and this is by
//! how much wider an interval has to be for that.

/// How likely a value as far from zero as `t` is by chance, with this number of degrees of freedom.
pub fn two_sided(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The `t` that is exceeded, on either side, with this probability.
pub fn beyond(probability: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, degrees) > probability && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, degrees) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The regularised incomplete beta function, by its continued fraction.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly below the mean; above it, by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    front * fraction(x, a, b)
}

/// Lentz's method: numerators and denominators in one pass, none of them zero.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const LEAST: f64 = 1e-300;
    let not_zero = |v: f64| if v.abs() < LEAST { LEAST } else { v };
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut value) = (1.0, d);
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / not_zero(1.0 + term * d);
            c = not_zero(1.0 + term / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function for positive values: Stirling's series, shifted up to where
/// it is exact to twelve digits.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let tail = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5))
        - 1.0 / (1680.0 * x.powi(7));
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree() {
        // Critical values that every textbook prints.
        for (probability, degrees, t) in [
            (0.05, 1.0, 12.706),
            (0.05, 4.0, 2.776),
            (0.01, 4.0, 4.604),
            (0.05, 8.0, 2.306),
            (0.001, 8.0, 5.041),
            (0.05, 1e6, 1.960),
        ] {
            assert!((beyond(probability, degrees) - t).abs() < 6e-4, "{probability} {degrees}");
            assert!((two_sided(t, degrees) / probability - 1.0).abs() < 1e-3, "{probability} {degrees}");
        }
        assert_eq!(two_sided(0.0, 5.0), 1.0);
        assert!(two_sided(f64::INFINITY, 5.0) < 1e-12);
    }
}
