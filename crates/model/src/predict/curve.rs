//! A measured curve over size, read between its points: straight lines in the logarithms.

use super::figure::widened;
use records::machine::{Access, LatencyCurves, Pattern};
use units::Estimate;

#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCurve {
    /// Ascending in size; times are positive.
    points: Vec<(f64, Estimate)>,
}

impl MeasuredCurve {
    /// `None` if there are fewer than two points.
    pub fn new(points: impl IntoIterator<Item = (f64, Estimate)>) -> Option<Self> {
        let mut points: Vec<_> = points.into_iter().filter(|(size, e)| *size > 0.0 && e.lo > 0.0).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 == b.0);
        (points.len() >= 2).then_some(Self { points })
    }

    /// Reads at random in large pages.
    pub fn random_reads(latency: &LatencyCurves) -> Option<Self> {
        let fits = |pattern, access, asked: &str| {
            pattern == Pattern::Random && access == Access::Read && asked == "thp"
        };
        let curve = latency.curves.iter().find(|c| fits(c.pattern, c.access, &c.pages.asked))?;
        let points = curve.points.iter();
        Self::new(points.filter_map(|point| Some((point.size.0 as f64, point.latency.ns.estimate()?))))
    }

    /// The size from which on all values are larger than this; `None` where the last one is not.
    pub fn exceeds_from(&self, value: f64) -> Option<f64> {
        let below = self.points.iter().rposition(|(_, at)| at.value <= value);
        let Some(below) = below else { return Some(self.points[0].0) };
        let ((from, low), (to, high)) = (self.points[below], *self.points.get(below + 1)?);
        let part = (value / low.value).ln() / (high.value / low.value).ln();
        Some(mixed(from, to, part))
    }

    pub(crate) fn largest(&self) -> f64 {
        self.points[self.points.len() - 1].0
    }

    /// The value at this size. Between points, the interval is at least half of what leaving out
    /// either of them would put it off by; half, for that doubles the distance of the points.
    pub fn at(&self, size: f64) -> Estimate {
        let behind = self.points.partition_point(|(at, _)| *at < size);
        if let Some((at, exact)) = self.points.get(behind)
            && (*at == size || behind == 0)
        {
            return *exact;
        }
        if behind == self.points.len() {
            return self.points[behind - 1].1;
        }
        let between = between(self.points[behind - 1], self.points[behind], size);
        let off = [behind - 1, behind].map(|left_out| {
            if left_out == 0 || left_out + 1 == self.points.len() {
                return 0.0;
            }
            let (at, known) = self.points[left_out];
            let guess = between_value(self.points[left_out - 1], self.points[left_out + 1], at);
            (guess / known.value - 1.0).abs()
        });
        widened(between, off[0].max(off[1]) / 2.0)
    }

    /// As [`Self::at`], but beyond the points on either side in proportion to the size.
    pub(crate) fn in_proportion(&self, size: f64) -> Estimate {
        let (first, last) = (self.points[0].0, self.largest());
        let nearest = size.clamp(first, last);
        self.at(nearest).scaled(size / nearest)
    }

    /// The mean over an area that is larger than all measured ones, if what lies behind them is
    /// served as the last half of them is.
    pub(crate) fn beyond(&self, size: f64) -> Estimate {
        let (last, there) = self.points[self.points.len() - 1];
        if size <= last {
            return self.at(size);
        }
        let half = self.at(last / 2.0);
        // t(a) = D - B/a through both points.
        let at = |there: f64, half: f64| {
            let limit = 2.0 * there - half;
            limit - (limit - there) * last / size
        };
        let value = at(there.value, half.value);
        // A curve that falls there does so by chance.
        let value = value.max(there.value);
        Estimate::new(value, at(there.lo, half.hi).min(there.lo), at(there.hi, half.lo))
    }
}

/// How far along a size lies between two others, in the logarithm.
fn place(from: f64, to: f64, size: f64) -> f64 {
    (size / from).ln() / (to / from).ln()
}

fn mixed(a: f64, b: f64, place: f64) -> f64 {
    (a.ln() * (1.0 - place) + b.ln() * place).exp()
}

fn between_value(a: (f64, Estimate), b: (f64, Estimate), size: f64) -> f64 {
    mixed(a.1.value, b.1.value, place(a.0, b.0, size))
}

fn between(a: (f64, Estimate), b: (f64, Estimate), size: f64) -> Estimate {
    let place = place(a.0, b.0, size);
    let mix = |part: fn(&Estimate) -> f64| mixed(part(&a.1), part(&b.1), place);
    Estimate::new(mix(|e| e.value), mix(|e| e.lo), mix(|e| e.hi))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> MeasuredCurve {
        let exact = points.iter().map(|&(size, value)| (size, Estimate::exact(value)));
        MeasuredCurve::new(exact).expect("points")
    }

    #[test]
    fn between_points_the_logarithm_is_straight() {
        let curve = curve(&[(1024.0, 1.0), (4096.0, 4.0), (16384.0, 16.0)]);
        let middle = curve.at(2048.0);
        assert!((middle.value - 2.0).abs() < 1e-9 && middle.relative_half_width() < 1e-9, "{middle:?}");
        assert_eq!((curve.at(1.0).value, curve.at(4096.0).value), (1.0, 4.0));
    }

    #[test]
    fn a_value_is_exceeded_for_good_from_some_size_on() {
        let curve = curve(&[(1024.0, 1.0), (2048.0, 9.0), (4096.0, 2.0), (16384.0, 8.0)]);
        assert!((curve.exceeds_from(4.0).expect("a size") - 8192.0).abs() < 1e-6);
        assert_eq!((curve.exceeds_from(8.0), curve.exceeds_from(0.5)), (None, Some(1024.0)));
    }

    #[test]
    fn a_bend_widens_the_interval() {
        let curve = curve(&[(1024.0, 1.0), (2048.0, 1.0), (4096.0, 4.0), (8192.0, 4.0)]);
        assert!(curve.at(3000.0).relative_half_width() > 0.3, "{:?}", curve.at(3000.0));
    }

    #[test]
    fn behind_the_last_point_the_mean_goes_on() {
        // 100 beyond the first 1024 bytes, and nothing there.
        let mean = |size: f64| 100.0 * (1.0 - 1024.0 / size);
        let curve = curve(&[(2048.0, mean(2048.0)), (4096.0, mean(4096.0)), (8192.0, mean(8192.0))]);
        let far = curve.beyond(65536.0);
        assert!((far.value - mean(65536.0)).abs() < 1e-6, "{far:?}");
    }
}
