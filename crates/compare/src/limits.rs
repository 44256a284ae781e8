//! Limits that the figures of a fleet probe must keep, for checks before a job:
//!
//! ```text
//! # two sockets of EPYC 7763, eight DIMMs each
//! memory_latency <= 130 ns
//! bandwidth_all >= 280 GB/s
//! prefetch_gain >= 3
//! ```
//!
//! A figure breaks its limit only with its whole interval; where the interval contains the limit,
//! or there is no figure, it is not known.

use records::machine::FleetProbe;
use units::{Quantity, Unit};

/// One line of a file of limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub figure: String,
    pub bound: Bound,
    /// In the figure's own unit.
    pub value: f64,
    /// As it was written.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    AtMost,
    AtLeast,
}

/// What became of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    Kept,
    Broken,
    /// The interval contains the limit, or there is no figure: why.
    NotKnown(String),
}

/// Why a file of limits is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct NoLimit {
    pub line: usize,
    pub why: String,
}

/// The limits in this text.
pub fn limits(text: &str) -> Result<Vec<Limit>, NoLimit> {
    let lines =
        text.lines().enumerate().map(|(at, line)| (at + 1, line.split('#').next().unwrap_or("").trim()));
    let written = lines.filter(|(_, line)| !line.is_empty());
    written.map(|(line, text)| limit(text).map_err(|why| NoLimit { line, why })).collect()
}

fn limit(text: &str) -> Result<Limit, String> {
    let (at, bound) = match (text.find("<="), text.find(">=")) {
        (Some(at), None) => (at, Bound::AtMost),
        (None, Some(at)) => (at, Bound::AtLeast),
        _ => return Err(format!("'{text}' is not FIGURE <= VALUE, nor FIGURE >= VALUE")),
    };
    let (figure, value) = (text[..at].trim(), text[at + 2..].trim());
    let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == figure) else {
        let known: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is no figure '{figure}', but {}", known.join(", ")));
    };
    let end = value.find(|c: char| !(c.is_ascii_digit() || ".eE+-".contains(c))).unwrap_or(value.len());
    let number: f64 = value[..end].parse().map_err(|_| format!("'{value}' is no number"))?;
    let scale = scale(value[end..].trim(), *unit)
        .ok_or_else(|| format!("'{value}': {figure} is in {}", accepted(*unit)))?;
    Ok(Limit { figure: figure.to_owned(), bound, value: number * scale, text: text.to_owned() })
}

/// The figures of [`FleetProbe::figures`] with their units.
const UNITS: [(&str, Unit); 12] = [
    ("core_clock", Unit::Hertz),
    ("cache_latency", Unit::Nanos),
    ("memory_latency", Unit::Nanos),
    ("memory_spread", Unit::Ratio),
    ("small_pages_latency", Unit::Nanos),
    ("huge_pages", Unit::Ratio),
    ("prefetch_gain", Unit::Ratio),
    ("bandwidth_one", Unit::BytesPerSecond),
    ("bandwidth_all", Unit::BytesPerSecond),
    ("copy_all", Unit::BytesPerSecond),
    ("void_share", Unit::Ratio),
    ("node_balance", Unit::Ratio),
];

fn accepted(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanos => "ns",
        Unit::Hertz => "Hz, MHz or GHz",
        Unit::BytesPerSecond => "B/s, MB/s or GB/s",
        _ => "numbers without a unit, or in %",
    }
}

/// What a number in this notation is multiplied by.
fn scale(written: &str, unit: Unit) -> Option<f64> {
    Some(match (unit, written) {
        (Unit::Nanos, "ns") => 1.0,
        (Unit::Hertz, "Hz") | (Unit::BytesPerSecond, "B/s") | (Unit::Ratio, "") => 1.0,
        (Unit::Hertz, "MHz") | (Unit::BytesPerSecond, "MB/s") => 1e6,
        (Unit::Hertz, "GHz") | (Unit::BytesPerSecond, "GB/s") => 1e9,
        (Unit::Ratio, "%") => 0.01,
        _ => return None,
    })
}

/// What became of this limit.
pub fn kept(limit: &Limit, probe: &FleetProbe) -> Kept {
    let figures = probe.figures();
    let Some((_, quantity)) = figures.iter().find(|(name, _)| *name == limit.figure) else {
        return Kept::NotKnown("the record has no such figure".to_owned());
    };
    let Some(e) = quantity.estimate() else {
        let why = if let Quantity::Unresolved { unresolved } = quantity { unresolved.as_str() } else { "" };
        return Kept::NotKnown(format!("not resolved: {why}"));
    };
    let (broken, kept) = match limit.bound {
        Bound::AtMost => (e.lo > limit.value, e.hi <= limit.value),
        Bound::AtLeast => (e.hi < limit.value, e.lo >= limit.value),
    };
    match (broken, kept) {
        (true, _) => Kept::Broken,
        (_, true) => Kept::Kept,
        _ => Kept::NotKnown("the interval contains the limit".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::machine::PageSupply;
    use units::{Bytes, Estimate, Latency};

    fn probe() -> FleetProbe {
        let q = |value: f64, unit| Quantity::measured(Estimate::new(value, value * 0.98, value * 1.02), unit);
        let latency = |ns| Latency { ns: q(ns, Unit::Nanos), ..Latency::unresolved("not here") };
        FleetProbe {
            core_clock: q(3e9, Unit::Hertz),
            cache_latency: latency(15.0),
            cache_area: Bytes::mib(10),
            memory_latency: latency(100.0),
            pages: PageSupply { asked: "thp".to_owned(), share: 1.0 },
            memory_area: Bytes::mib(96),
            memory_spread: q(1.1, Unit::Ratio),
            small_pages_latency: latency(120.0),
            huge_pages: Quantity::measured(Estimate::exact(1.0), Unit::Ratio),
            prefetch_gain: q(10.0, Unit::Ratio),
            bandwidth_one: q(20e9, Unit::BytesPerSecond),
            bandwidth_all: q(40e9, Unit::BytesPerSecond),
            copy_all: q(30e9, Unit::BytesPerSecond),
            threads: 2,
            void_share: q(0.1, Unit::Ratio),
            nodes: Vec::new(),
            node_balance: Quantity::unresolved("this host shows only one NUMA node"),
            notes: Vec::new(),
        }
    }

    #[test]
    fn every_figure_may_have_a_limit_in_its_unit() {
        let probe = probe();
        for ((name, quantity), (known, unit)) in probe.figures().into_iter().zip(UNITS) {
            assert_eq!(name, known);
            if let Quantity::Resolved { unit: measured, .. } = quantity {
                assert_eq!(*measured, unit, "{name}");
            }
        }
    }

    #[test]
    fn a_limit_is_broken_only_by_a_whole_interval() {
        let outcome = |text: &str| kept(&limits(text).unwrap()[0], &probe());
        for (text, expected) in [
            ("memory_latency <= 103 ns", Kept::Kept),
            ("memory_latency<=97ns # as delivered", Kept::Broken),
            ("bandwidth_all >= 39 GB/s", Kept::Kept),
            ("bandwidth_all >= 41000MB/s", Kept::Broken),
            ("void_share <= 20%", Kept::Kept),
            ("core_clock >= 3.1 GHz", Kept::Broken),
            ("huge_pages >= 1", Kept::Kept),
        ] {
            assert_eq!(outcome(text), expected, "{text}");
        }
        let contained = Kept::NotKnown("the interval contains the limit".to_owned());
        assert_eq!(outcome("memory_latency <= 101 ns"), contained);
        assert!(
            matches!(outcome("node_balance >= 0.9"), Kept::NotKnown(why) if why.contains("one NUMA node"))
        );
    }

    #[test]
    fn what_is_no_limit_is_told_with_its_line() {
        let why = |text: &str| limits(text).unwrap_err().to_string();
        assert_eq!(why("\nlatency <= 5 ns").split(',').next(), Some("line 2: there is no figure 'latency'"));
        assert_eq!(why("memory_latency <= x"), "line 1: 'x' is no number");
        assert_eq!(why("memory_latency <= 1 us"), "line 1: '1 us': memory_latency is in ns");
        assert!(why("memory_latency = 5").contains("FIGURE <= VALUE"));
        assert_eq!(limits("# nothing\n\n").unwrap(), []);
    }
}
