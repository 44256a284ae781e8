//! How far a prefetcher follows, in a row of ever harder patterns. Pure.

use units::{Estimate, Quantity, Unit};

/// A pattern counts as prefetched if it costs less than this share of a random access.
pub(crate) const FOLLOWED_SHARE: f64 = 0.8;

/// The last pattern before the first that is not prefetched. Each pattern has a number that says
/// how hard it is. The interval reaches from the last pattern to that first one.
pub(crate) fn last_followed(
    patterns: &[(f64, Estimate)],
    limit: impl Fn(Estimate) -> bool,
    unit: Unit,
) -> Quantity {
    if patterns.is_empty() {
        return Quantity::unresolved("no pattern of this kind was resolved");
    }
    match patterns.iter().take_while(|p| limit(p.1)).count() {
        0 => Quantity::unresolved("not even the first pattern is prefetched"),
        n if n == patterns.len() => {
            let what = if unit == Unit::Count { String::new() } else { format!(" {}", unit.symbol()) };
            Quantity::unresolved(format!(
                "prefetched up to the largest value tried, {}{what}",
                patterns[n - 1].0
            ))
        }
        n => {
            let (last, next) = (patterns[n - 1].0, patterns[n].0);
            Quantity::measured(Estimate::new(last, last, next), unit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_the_first_that_is_not_followed() {
        let row = [(1.0, 2.0), (2.0, 3.0), (4.0, 9.0), (8.0, 1.0)].map(|(n, v)| (n, Estimate::exact(v)));
        let found = |limit: f64| last_followed(&row, |e| e.value < limit, Unit::Count);
        assert_eq!(found(5.0).estimate(), Some(Estimate::new(2.0, 2.0, 4.0)));
        for (limit, word) in [(1.0, "not even the first"), (10.0, "up to the largest value tried, 8")] {
            let Quantity::Unresolved { unresolved } = found(limit) else { panic!("{limit}") };
            assert!(
                unresolved.ends_with(word) || limit == 1.0 && unresolved.starts_with(word),
                "{unresolved}"
            );
        }
        assert!(last_followed(&[], |_| true, Unit::Count).value().is_none());
    }
}
