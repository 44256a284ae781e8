//! What the strides reveal. Pure.

use super::plan::PAGE_BYTES;
use crate::prefetch_reach;
use records::machine::{Direction, PairPoint, StrideFollowed, StridePoint};
use units::{Bytes, Estimate, Quantity, Unit};

/// Two words in different lines must cost at least this many times what two in one line cost.
const LEAST_STEP: f64 = 1.2;
/// A random access that costs less than this many times the cheapest one seen comes from the first
/// cache.
const FIRST_CACHE: f64 = 1.5;

/// The smallest distance at which two words are not in one line: there the pair's cost steps up,
/// once.
pub(super) fn line(pairs: &[PairPoint]) -> Quantity {
    let known: Vec<(f64, Estimate)> =
        pairs.iter().filter_map(|p| Some((p.distance.0 as f64, p.latency.cycles.estimate()?))).collect();
    let (Some(first), Some(last)) = (known.first(), known.last()) else {
        return Quantity::unresolved("no pair of words was resolved");
    };
    if last.1.value < first.1.value * LEAST_STEP {
        return Quantity::unresolved("a load of a distant word takes no longer than one of an adjacent word");
    }
    let middle = f64::midpoint(first.1.value, last.1.value);
    let Some(step) = known.iter().position(|k| k.1.value > middle) else {
        return Quantity::unresolved("the cost shows no step");
    };
    let (below, above) = known.split_at(step);
    if below.iter().any(|k| k.1.hi >= middle) || above.iter().any(|k| k.1.lo <= middle) {
        return Quantity::unresolved(
            "at some distance the cost of two words is neither that of one line nor that of two",
        );
    }
    Quantity::measured(Estimate::exact(above[0].0), Unit::Bytes)
}

/// For each size beyond the first cache, how long a stride may be.
pub(super) fn how_far(points: &[StridePoint], line: Bytes) -> Vec<StrideFollowed> {
    let cheapest = points.iter().filter_map(|p| p.latency.cycles.value()).fold(f64::INFINITY, f64::min);
    let mut sizes: Vec<Bytes> = points.iter().map(|p| p.size).collect();
    sizes.dedup();
    sizes
        .into_iter()
        .filter_map(|size| {
            let of = |direction: Direction| -> Vec<(Bytes, Estimate)> {
                points
                    .iter()
                    .filter(|p| p.size == size && p.direction == direction && p.stride >= line)
                    .filter_map(|p| Some((p.stride, p.latency.cycles.estimate()?)))
                    .collect()
            };
            let random = of(Direction::Random).first()?.1;
            if random.value < cheapest * FIRST_CACHE {
                return None;
            }
            let best = of(Direction::Forward).into_iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value));
            Some(StrideFollowed {
                size,
                forward: longest(&of(Direction::Forward), random),
                backward: longest(&of(Direction::Backward), random),
                gain: match best {
                    Some((_, best)) => Quantity::measured(random.over(best), Unit::Ratio),
                    None => Quantity::unresolved("no ascending stride was resolved"),
                },
            })
        })
        .collect()
}

/// The last stride before the first that is not followed.
fn longest(strides: &[(Bytes, Estimate)], random: Estimate) -> Quantity {
    let strides: Vec<(f64, Estimate)> = strides.iter().map(|s| (s.0.0 as f64, s.1)).collect();
    prefetch_reach::last_followed(
        &strides,
        |e| e.over(random).hi < prefetch_reach::FOLLOWED_SHARE,
        Unit::Bytes,
    )
}

/// In the largest area: what a page costs that a stream enters from its neighbour, against one it
/// enters from elsewhere.
pub(super) fn page_boundary(points: &[StridePoint], line: Bytes) -> Quantity {
    let Some(largest) = points.iter().map(|p| p.size).max() else {
        return Quantity::unresolved("not measured");
    };
    let of = |direction: Direction| {
        points
            .iter()
            .find(|p| p.size == largest && p.direction == direction && p.stride == line)
            .and_then(|p| p.latency.ns.estimate())
    };
    match (of(Direction::Pages), of(Direction::Forward)) {
        (Some(anew), Some(on)) => {
            Quantity::measured(anew.minus(on).scaled((PAGE_BYTES / line.0) as f64), Unit::Nanos)
        }
        _ => Quantity::unresolved("the streams through memory were not resolved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Latency;

    fn latency(value: f64) -> Latency {
        let e = Estimate::new(value, value * 0.97, value * 1.03);
        let q = |unit| Quantity::measured(e, unit);
        Latency { ns: q(Unit::Nanos), cycles: q(Unit::Cycles), ticks: q(Unit::Ticks) }
    }

    fn pairs(cost: impl Fn(u64) -> f64) -> Vec<PairPoint> {
        [8, 16, 32, 64, 128, 256, 512]
            .map(|d| PairPoint { distance: Bytes(d), latency: latency(cost(d)) })
            .to_vec()
    }

    fn point(size: u64, stride: u64, direction: Direction, cycles: f64) -> StridePoint {
        let latency = latency(cycles);
        StridePoint { size: Bytes(size), stride: Bytes(stride), direction, latency, blocks: 5, voided: 0 }
    }

    #[test]
    fn lines_of_any_size_are_found() {
        for line in [32, 64, 128, 256] {
            let found = line_of(|d| if d < line { 9.0 } else { 14.0 });
            assert_eq!(found, Some(line as f64));
        }
        assert_eq!(line_of(|_| 4.0), None);
        // Something in between is not a line's end.
        assert_eq!(
            line_of(|d| if d < 64 {
                9.0
            } else if d < 128 {
                11.5
            } else {
                14.0
            }),
            None
        );
        assert!(matches!(line(&[]), Quantity::Unresolved { .. }));
    }

    fn line_of(cost: impl Fn(u64) -> f64) -> Option<f64> {
        line(&pairs(cost)).value()
    }

    #[test]
    fn the_reach_ends_at_the_first_stride_that_is_not_followed() {
        let mut points = vec![point(1 << 14, 64, Direction::Random, 4.0)];
        points.push(point(1 << 26, 64, Direction::Random, 400.0));
        for (stride, cycles) in [(32, 5.0), (64, 12.0), (128, 60.0), (256, 390.0), (512, 40.0)] {
            points.push(point(1 << 26, stride, Direction::Forward, cycles));
        }
        points.push(point(1 << 26, 64, Direction::Backward, 399.0));
        let found = how_far(&points, Bytes(64));
        assert_eq!(found.len(), 1, "the first cache has nothing to prefetch");
        let reach = found[0].forward.estimate().unwrap();
        assert_eq!((reach.value, reach.lo, reach.hi), (128.0, 128.0, 256.0));
        assert!(matches!(found[0].backward, Quantity::Unresolved { .. }));
        assert!((found[0].gain.value().unwrap() - 400.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn a_page_entered_from_its_neighbour_saves_a_start() {
        let points = [
            point(1 << 20, 64, Direction::Forward, 3.0),
            point(1 << 26, 64, Direction::Pages, 12.0),
            point(1 << 26, 64, Direction::Forward, 10.0),
        ];
        assert!((page_boundary(&points, Bytes(64)).value().unwrap() - 128.0).abs() < 1e-9);
        assert!(matches!(page_boundary(&[], Bytes(64)), Quantity::Unresolved { .. }));
    }
}
