//! Quantities as records hold them: a number with its interval, its unit and how it was come by, or
//! the reason why there is none.

use crate::Estimate;
use serde::{Deserialize, Serialize};

/// How a figure was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Measured on this machine.
    Measured,
    /// Computed from measurements by a model.
    Modelled,
    /// Stated by the hardware, hypervisor or kernel, and not checked.
    Claimed,
}

/// Units that records use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Unit {
    #[serde(rename = "ns")]
    Nanos,
    #[serde(rename = "us")]
    Micros,
    #[serde(rename = "s")]
    Seconds,
    /// Core clock cycles.
    #[serde(rename = "cycles")]
    Cycles,
    /// Time stamp counter ticks.
    #[serde(rename = "ticks")]
    Ticks,
    #[serde(rename = "bytes")]
    Bytes,
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
    #[serde(rename = "Hz")]
    Hertz,
    #[serde(rename = "ppm")]
    PartsPerMillion,
    /// A count of things: entries, buffers, accesses.
    #[serde(rename = "count")]
    Count,
    /// A ratio without a unit.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    /// The unit as JSON and tables spell it.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Micros => "us",
            Self::Seconds => "s",
            Self::Cycles => "cycles",
            Self::Ticks => "ticks",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::Hertz => "Hz",
            Self::PartsPerMillion => "ppm",
            Self::Count => "count",
            Self::Ratio => "ratio",
        }
    }
}

/// What a figure says besides that it lies in its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Only its upper end is known: the value is that end, and the interval begins at zero.
    AtMost,
}

/// A number with its 95% interval, or the reason why it could not be resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Quantity {
    Resolved {
        value: f64,
        lo: f64,
        hi: f64,
        unit: Unit,
        basis: Basis,
        /// Set if other work ran on the machine during every block of this figure: the value on a
        /// quiet machine may lie outside the interval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disturbed: Option<String>,
        /// Set if the value is no estimate but a bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound: Option<Bound>,
    },
    Unresolved {
        unresolved: String,
    },
}

impl Quantity {
    pub fn measured(e: Estimate, unit: Unit) -> Self {
        Self::with_basis(e, unit, Basis::Measured)
    }

    pub fn modelled(e: Estimate, unit: Unit) -> Self {
        Self::with_basis(e, unit, Basis::Modelled)
    }

    /// No more than this; how much less is not known.
    pub fn at_most(most: f64, unit: Unit, basis: Basis) -> Self {
        let mut quantity = Self::with_basis(Estimate::new(most, 0.0, most), unit, basis);
        if let Self::Resolved { bound, .. } = &mut quantity {
            *bound = Some(Bound::AtMost);
        }
        quantity
    }

    pub fn claimed(value: f64, unit: Unit) -> Self {
        Self::with_basis(Estimate::exact(value), unit, Basis::Claimed)
    }

    pub fn unresolved(why: impl Into<String>) -> Self {
        Self::Unresolved { unresolved: why.into() }
    }

    fn with_basis(e: Estimate, unit: Unit, basis: Basis) -> Self {
        // JSON has no infinities and no NaN: a figure that is none says so instead.
        if !(e.value.is_finite() && e.lo.is_finite() && e.hi.is_finite()) {
            return Self::unresolved("the measurement gave no finite number");
        }
        Self::Resolved { value: e.value, lo: e.lo, hi: e.hi, unit, basis, disturbed: None, bound: None }
    }

    /// The same figure, marked as measured in company.
    #[must_use]
    pub fn disturbed_by(mut self, what: Option<String>) -> Self {
        if let Self::Resolved { disturbed, .. } = &mut self {
            *disturbed = what;
        }
        self
    }

    pub fn estimate(&self) -> Option<Estimate> {
        match *self {
            Self::Resolved { value, lo, hi, .. } => Some(Estimate { value, lo, hi }),
            Self::Unresolved { .. } => None,
        }
    }

    pub fn value(&self) -> Option<f64> {
        self.estimate().map(|e| e.value)
    }
}

/// One latency in the three units that people compare: time, core cycles and time stamp ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    pub ns: Quantity,
    pub cycles: Quantity,
    pub ticks: Quantity,
}

impl Latency {
    pub fn unresolved(why: impl Into<String>) -> Self {
        let q = Quantity::unresolved(why);
        Self { ns: q.clone(), cycles: q.clone(), ticks: q }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_promised_one() {
        let q = Quantity::measured(Estimate::new(4.0, 3.9, 4.1), Unit::Cycles);
        let text = serde_json::to_string(&q).unwrap();
        assert_eq!(text, r#"{"value":4.0,"lo":3.9,"hi":4.1,"unit":"cycles","basis":"measured"}"#);
        assert_eq!(serde_json::from_str::<Quantity>(&text).unwrap(), q);
        let most = Quantity::at_most(17.0, Unit::Nanos, Basis::Measured);
        let text = serde_json::to_string(&most).unwrap();
        assert_eq!(
            text,
            r#"{"value":17.0,"lo":0.0,"hi":17.0,"unit":"ns","basis":"measured","bound":"at_most"}"#
        );
        assert_eq!(serde_json::from_str::<Quantity>(&text).unwrap(), most);
        let u = Quantity::unresolved("too noisy");
        let text = serde_json::to_string(&u).unwrap();
        assert_eq!(text, r#"{"unresolved":"too noisy"}"#);
        assert_eq!(serde_json::from_str::<Quantity>(&text).unwrap(), u);
    }

    #[test]
    fn no_infinity_reaches_a_record() {
        let q = Quantity::measured(Estimate { value: f64::NAN, lo: 0.0, hi: 1.0 }, Unit::Ratio);
        assert!(matches!(q, Quantity::Unresolved { .. }));
    }
}
