//! What a run has to show, and how figures are taken from it.

use crate::missing::Missing;
use records::machine::{Machine, Outcome, Status};
use records::profile::Profile;
use records::run::Run;
use units::{Estimate, Quantity, Unit};

/// The records of one run, and figures of programs that it ran, by the names that
/// [`crate::programs`] lists.
#[derive(Clone, Debug, Default)]
pub struct Evidence<'a> {
    pub machine: Option<&'a Machine>,
    pub profiles: Vec<(&'static str, Profile)>,
    pub runs: Vec<(&'static str, Run)>,
    pub figures: Vec<(&'static str, Quantity)>,
    /// Why programs were not run, or not all of them.
    pub without: Option<Missing>,
}

pub(crate) type Found = Result<Quantity, Missing>;

impl<'a> Evidence<'a> {
    pub(crate) fn machine(&self) -> Result<&'a Machine, Missing> {
        self.machine.ok_or_else(|| Missing::NotRun("nothing of the machine was measured".to_owned()))
    }

    fn named<'b, T>(&self, all: &'b [(&'static str, T)], name: &str) -> Result<&'b T, Missing> {
        match all.iter().find(|(other, _)| *other == name) {
            Some((_, found)) => Ok(found),
            None => Err(self.without.clone().unwrap_or_else(|| Missing::NotRun(format!("{name}: not run")))),
        }
    }

    pub(crate) fn profile(&self, name: &str) -> Result<&Profile, Missing> {
        self.named(&self.profiles, name)
    }

    pub(crate) fn run(&self, name: &str) -> Result<&Run, Missing> {
        self.named(&self.runs, name)
    }

    pub(crate) fn figure(&self, name: &str) -> Result<&Quantity, Missing> {
        self.named(&self.figures, name)
    }

    /// Whether this is a guest of a hypervisor, as far as it shows.
    pub(crate) fn is_guest(&self) -> Result<bool, Missing> {
        let hypervisor = &self.machine()?.host.virtualization.hypervisor;
        Ok(hypervisor.get().is_some_and(|name| name != "none"))
    }
}

/// The result of an experiment; without one, why there is none.
pub(crate) fn result<'a, T>(name: &str, outcome: Option<&'a Outcome<T>>) -> Result<&'a T, Missing> {
    let Some(outcome) = outcome else {
        return Err(Missing::NotRun(format!("the record has no {name} experiment")));
    };
    outcome.result.as_ref().ok_or_else(|| {
        let why = outcome.why.as_deref().unwrap_or("no reason given");
        match outcome.status {
            Status::NotPossible => Missing::NotIdentifiable(format!("{name}: {why}")),
            _ => Missing::NotRun(format!("{name}: {why}")),
        }
    })
}

/// A figure that may be unresolved.
pub(crate) fn resolved(quantity: &Quantity) -> Result<(Estimate, Option<String>), Missing> {
    match quantity {
        Quantity::Resolved { disturbed, .. } => {
            let estimate = quantity.estimate().unwrap_or_else(|| unreachable!("resolved"));
            Ok((estimate, disturbed.clone()))
        }
        Quantity::Unresolved { unresolved } => Err(Missing::NotIdentifiable(unresolved.clone())),
    }
}

/// One figure over another, both positive. What disturbed either disturbs the ratio.
pub(crate) fn ratio(over: &Quantity, under: &Quantity) -> Found {
    if resolved(under)?.0.lo <= 0.0 {
        return not_identifiable("the figure that is divided by may be nothing");
    }
    combined(over, under, quotient)
}

/// Half widths add in quadrature, which reaches too far where they are wide: no further than the
/// ends of both intervals allow.
pub(crate) fn quotient(over: Estimate, under: Estimate) -> Estimate {
    let found = over.over(under);
    let (least, most) = (over.lo / under.hi, over.hi / under.lo);
    if found.lo.is_finite() && found.hi.is_finite() {
        Estimate::new(found.value, found.lo.max(least), found.hi.min(most))
    } else {
        Estimate::new(found.value, least, most)
    }
}

/// A ratio that two figures make together.
pub(crate) fn combined(a: &Quantity, b: &Quantity, make: fn(Estimate, Estimate) -> Estimate) -> Found {
    let ((a, disturbed_a), (b, disturbed_b)) = (resolved(a)?, resolved(b)?);
    Ok(Quantity::modelled(make(a, b), Unit::Ratio).disturbed_by(disturbed_a.or(disturbed_b)))
}

/// A range that a document states: no interval of confidence.
pub(crate) fn claimed(lo: f64, hi: f64, unit: Unit) -> Quantity {
    match Quantity::claimed(f64::midpoint(lo, hi), unit) {
        Quantity::Resolved { value, unit, basis, disturbed, .. } => {
            Quantity::Resolved { value, lo, hi, unit, basis, disturbed }
        }
        unresolved @ Quantity::Unresolved { .. } => unresolved,
    }
}

/// The claim is about something that this host does not have.
pub(crate) fn needs(hardware: &str) -> Found {
    Err(Missing::Hardware(hardware.to_owned()))
}

pub(crate) fn not_identifiable<T>(why: impl Into<String>) -> Result<T, Missing> {
    Err(Missing::NotIdentifiable(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_wide_intervals_stays_positive() {
        let e = Estimate::new;
        let narrow = quotient(e(20.0, 19.0, 21.0), e(10.0, 9.5, 10.5));
        assert!((1.85..1.95).contains(&narrow.lo) && narrow.hi < 2.2, "{narrow:?}");
        let wide = quotient(e(100.0, 10.0, 500.0), e(10.0, 1.0, 90.0));
        assert!(wide.lo > 0.1 && wide.lo < 0.2 && wide.value == 10.0, "{wide:?}");
        assert!(quotient(e(0.0, 0.0, 1.0), e(2.0, 1.0, 3.0)).hi <= 1.0);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let of = |value, lo, hi| Quantity::measured(Estimate::new(value, lo, hi), Unit::Nanos);
        assert!(ratio(&of(1.0, 0.9, 1.1), &of(0.1, -0.1, 0.3)).is_err());
        assert!(ratio(&of(1.0, 0.9, 1.1), &of(0.5, 0.4, 0.6).disturbed_by(Some("x".to_owned()))).is_ok());
    }
}
