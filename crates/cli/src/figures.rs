//! How a figure is written: in a line of text, in a cell of a table, in comma-separated values.

pub(crate) mod plot;
pub(crate) mod table;

use records::machine::{Outcome, Status};
use units::{Bound, Estimate, Quantity};

/// A figure with its interval, short enough for a table: `4.00 [3.99, 4.02]`; `~` before it where
/// other work on the machine shone through. Claims have no interval.
pub(crate) fn figure(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Resolved { value, lo, hi, disturbed, bound, .. } => {
            let mark = if disturbed.is_some() { "~" } else { "" };
            if *bound == Some(Bound::AtMost) {
                return format!("{mark}at most {}", exact(*hi));
            }
            if lo == hi {
                return format!("{mark}{}", exact(*value));
            }
            format!("{mark}{}", units::figures(Estimate { value: *value, lo: *lo, hi: *hi }, ""))
        }
        Quantity::Unresolved { .. } => "not resolved".to_owned(),
    }
}

/// Why there is no figure; nothing where there is one.
pub(crate) fn why(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Unresolved { unresolved } => unresolved.clone(),
        Quantity::Resolved { .. } => String::new(),
    }
}

/// What has no interval: a count, or what was asked for.
fn exact(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// `value,lo,hi` of a quantity; three empty cells where it was not resolved.
pub(crate) fn cells(quantity: &Quantity) -> String {
    quantity.estimate().map_or(",,".to_owned(), |e| format!("{},{},{}", e.value, e.lo, e.hi))
}

/// Shares as people say them. What was measured has its interval; what was asked for is exact.
pub(crate) fn percent(share: &Quantity) -> String {
    match share {
        Quantity::Resolved { value, lo, hi, .. } if lo == hi => format!("{}%", (1e6 * value).round() / 1e4),
        Quantity::Resolved { value, lo, hi, .. } => {
            units::figures(Estimate { value: *value, lo: *lo, hi: *hi }.scaled(100.0), "%")
        }
        unresolved @ Quantity::Unresolved { .. } => unresolved.to_string(),
    }
}

/// One line for an experiment that gave nothing, or not all of it.
pub(crate) fn trouble<T>(name: &str, outcome: Option<&Outcome<T>>) -> Option<String> {
    let outcome = outcome?;
    let what = match outcome.status {
        Status::Done => return None,
        Status::Interrupted => "stopped early",
        Status::NotPossible => "not possible here",
        Status::Failed => "failed",
    };
    let why = outcome.why.as_deref().unwrap_or("no reason given");
    let help = outcome.would_help.as_deref().map(|h| format!("; would help: {h}")).unwrap_or_default();
    Some(format!("{name}: {what}: {why}{help}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Unit;

    #[test]
    fn figures_show_what_is_known_and_no_more() {
        let q = |v, lo, hi| Quantity::measured(Estimate::new(v, lo, hi), Unit::Cycles);
        assert_eq!(figure(&q(4.0004, 3.991, 4.019)), "4.000 [3.991, 4.019]");
        assert_eq!(figure(&q(4.0, 3.95, 4.05)), "4.00 [3.95, 4.05]");
        assert_eq!(figure(&q(512.3, 498.0, 530.9)), "512 [498, 531]");
        assert_eq!(figure(&q(26.0, 26.0, 26.0)), "26");
        assert_eq!(figure(&q(14.0, 13.0, 15.0).disturbed_by(Some("x".into()))), "~14.0 [13.0, 15.0]");
        assert_eq!(figure(&Quantity::unresolved("why")), "not resolved");
    }

    #[test]
    fn shares_are_said_in_percent() {
        let measured =
            |value, lo, hi| percent(&Quantity::measured(Estimate::new(value, lo, hi), Unit::Ratio));
        assert_eq!(measured(0.0214, 0.015, 0.0273), "2.1% [1.5, 2.7]");
        assert_eq!(measured(0.0018, 0.0017, 0.0019), "0.180% [0.170, 0.190]");
        assert_eq!(measured(0.07, 0.07, 0.07), "7%");
        assert_eq!(percent(&Quantity::unresolved("it slept")), "not resolved: it slept");
    }
}
