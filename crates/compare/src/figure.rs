//! A figure of one run: a name that is the same in every run, and a value with the interval of its
//! blocks.

use serde::Serialize;
use units::{Quantity, Unit};

/// Which direction is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Lower,
    Higher,
}

#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) better: Better,
    /// May fail a gate. The others show where a headline figure changed.
    pub(crate) headline: bool,
    pub(crate) quantity: Quantity,
}

/// A value as statistics need it: its logarithm, and what its blocks leave open below and above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) log: f64,
    pub(crate) below: f64,
    pub(crate) above: f64,
}

/// Standard errors in half of a 95% interval.
const HALF_INTERVAL: f64 = 1.96;

impl Figure {
    /// Nothing for what was not resolved or has no logarithm.
    pub(crate) fn value(&self) -> Option<Value> {
        let estimate = self.quantity.estimate().filter(|e| e.value > 0.0 && e.value.is_finite())?;
        // An interval that reaches zero has no logarithm there; its width above stands for both.
        let above = (estimate.hi / estimate.value).ln() / HALF_INTERVAL;
        let below =
            if estimate.lo > 0.0 { (estimate.value / estimate.lo).ln() / HALF_INTERVAL } else { above };
        Some(Value { log: estimate.value.ln(), below, above })
    }

    pub(crate) fn unit(&self) -> Option<Unit> {
        match self.quantity {
            Quantity::Resolved { unit, .. } => Some(unit),
            Quantity::Unresolved { .. } => None,
        }
    }

    pub(crate) fn is_disturbed(&self) -> bool {
        matches!(self.quantity, Quantity::Resolved { disturbed: Some(_), .. })
    }
}

/// The figures of one record, as they are collected.
#[derive(Default)]
pub(crate) struct Figures(pub(crate) Vec<Figure>);

impl Figures {
    pub(crate) fn headline(&mut self, name: impl Into<String>, better: Better, quantity: &Quantity) {
        self.push(name.into(), better, true, quantity);
    }

    pub(crate) fn detail(&mut self, name: impl Into<String>, better: Better, quantity: &Quantity) {
        self.push(name.into(), better, false, quantity);
    }

    fn push(&mut self, name: String, better: Better, headline: bool, quantity: &Quantity) {
        // Two entries of one name cannot be told apart in the other record: the first counts.
        if !self.0.iter().any(|figure| figure.name == name) {
            self.0.push(Figure { name, better, headline, quantity: quantity.clone() });
        }
    }
}
