//! A value and the interval in which it lies with 95% confidence.

/// A value with its 95% interval. `lo <= value <= hi` always holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub lo: f64,
    pub hi: f64,
}

impl Estimate {
    /// An estimate; the interval is widened, if need be, to hold the value.
    pub fn new(value: f64, lo: f64, hi: f64) -> Self {
        Self { value, lo: lo.min(value), hi: hi.max(value) }
    }

    /// A value known exactly: a count, a size that was chosen.
    pub fn exact(value: f64) -> Self {
        Self { value, lo: value, hi: value }
    }

    /// The estimate in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let (a, b) = (self.lo * factor, self.hi * factor);
        Self { value: self.value * factor, lo: a.min(b), hi: a.max(b) }
    }

    /// Difference of two independent estimates: half widths add in quadrature.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let value = self.value - other.value;
        let below = (self.value - self.lo).hypot(other.hi - other.value);
        let above = (self.hi - self.value).hypot(other.value - other.lo);
        Self { value, lo: value - below, hi: value + above }
    }

    /// Quotient of two independent positive estimates.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        let value = self.value / other.value;
        let below = ((self.value - self.lo) / self.value).hypot((other.hi - other.value) / other.value);
        let above = ((self.hi - self.value) / self.value).hypot((other.value - other.lo) / other.value);
        Self::new(value, value * (1.0 - below), value * (1.0 + above))
    }

    pub fn contains(&self, x: f64) -> bool {
        self.lo <= x && x <= self.hi
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }

    /// Half the interval's width over the value: 0.01 is ±1%.
    pub fn relative_half_width(&self) -> f64 {
        if self.value == 0.0 { f64::INFINITY } else { (self.hi - self.lo) / 2.0 / self.value.abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_always_holds_the_value() {
        let e = Estimate::new(5.0, 6.0, 4.0);
        assert!(e.lo <= e.value && e.value <= e.hi);
        assert!(e.contains(5.0) && !e.contains(5.1));
    }

    #[test]
    fn arithmetic_keeps_order() {
        let a = Estimate::new(10.0, 9.0, 12.0);
        let b = Estimate::new(4.0, 3.5, 4.2);
        let d = a.minus(b);
        assert!(d.lo < 6.0 && 6.0 < d.hi && d.value == 6.0);
        let q = a.over(b);
        assert!(q.lo < 2.5 && 2.5 < q.hi);
        let s = a.scaled(-1.0);
        assert_eq!((s.lo, s.hi), (-12.0, -9.0));
    }
}
