//! The verdict on a claim: by its shape and the interval of the figure, and by nothing else.

use crate::claim::{Claim, Held};
use crate::evidence::{Evidence, claimed, quotient};
use crate::missing::Missing;
use records::reproduction::{ClaimOutcome, ClaimVerdict};
use units::{Estimate, Quantity, Unit};

/// Every claim of a document, tested on the evidence.
pub fn judge(claims: &[Claim], evidence: &Evidence<'_>) -> Vec<ClaimOutcome> {
    let stopped = evidence.machine.is_some_and(|machine| machine.run.interrupted);
    let found = |claim: &Claim| match (claim.find)(evidence) {
        Err(Missing::NotRun(why)) if stopped => {
            Err(Missing::NotRun(format!("{why}: the run was stopped before it was complete")))
        }
        found => found,
    };
    claims.iter().map(|claim| outcome(claim, found(claim), evidence)).collect()
}

fn outcome(claim: &Claim, found: Result<Quantity, Missing>, evidence: &Evidence<'_>) -> ClaimOutcome {
    let paper = paper(claim);
    let (verdict, here, why) = match found {
        Ok(here) => {
            let (verdict, why) = verdict(claim, &here, evidence);
            (verdict, here, why)
        }
        Err(missing) => {
            let (verdict, why) = match missing {
                Missing::Hardware(which) => (ClaimVerdict::NeedsOtherHardware, which),
                Missing::NotIdentifiable(why) => (ClaimVerdict::NotIdentifiable, why),
                Missing::NotRun(why) => (ClaimVerdict::NotRun, why),
                Missing::NoTest(why) => (ClaimVerdict::NotRun, format!("no test of this yet: {why}")),
            };
            (verdict, Quantity::unresolved(why.clone()), Some(why))
        }
    };
    ClaimOutcome {
        id: claim.id.to_owned(),
        place: claim.place.to_owned(),
        quote: claim.quote.to_owned(),
        statistic: claim.statistic.to_owned(),
        ratio: over(&here, &paper),
        paper,
        here,
        shape: claim.shape.to_string(),
        verdict,
        why,
        reading: claim.reading.map(str::to_owned),
        command: claim.command.to_owned(),
    }
}

fn verdict(claim: &Claim, here: &Quantity, evidence: &Evidence<'_>) -> (ClaimVerdict, Option<String>) {
    let estimate = match here {
        Quantity::Unresolved { unresolved } => {
            return (ClaimVerdict::NotIdentifiable, Some(unresolved.clone()));
        }
        // On a quiet machine the value may lie outside the interval.
        Quantity::Resolved { disturbed: Some(what), .. } => {
            return (
                ClaimVerdict::NotIdentifiable,
                Some(format!("on a quiet machine it may differ: {what}")),
            );
        }
        Quantity::Resolved { value, lo, hi, .. } => Estimate::new(*value, *lo, *hi),
    };
    match claim.shape.holds(estimate) {
        Held::Wholly => (ClaimVerdict::Reproduced, None),
        Held::Not => (ClaimVerdict::ShapeDiffers, claim.differs.and_then(|reason| reason.told(evidence))),
        Held::InPart => {
            let why = format!("the interval is not wholly {}, and not wholly outside", claim.shape);
            (ClaimVerdict::NotIdentifiable, Some(why))
        }
    }
}

/// The document's figure: it gives a number or a range, and no interval.
fn paper(claim: &Claim) -> Quantity {
    let Some((lo, hi)) = claim.paper else {
        return Quantity::unresolved("the document gives no number");
    };
    claimed(lo, hi, claim.unit)
}

fn over(here: &Quantity, paper: &Quantity) -> Quantity {
    match (here.estimate(), paper.estimate()) {
        (Some(here), Some(paper)) if paper.lo > 0.0 && here.value != 0.0 => {
            Quantity::modelled(quotient(here, paper), Unit::Ratio)
        }
        (Some(_), Some(_)) => Quantity::unresolved("a ratio to or of nothing"),
        (Some(_), None) => Quantity::unresolved("the document gives no number"),
        (None, _) => Quantity::unresolved("no figure here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Reason, Shape};

    const CLAIM: Claim = Claim {
        id: "x",
        place: "1",
        quote: "twice",
        statistic: "a over b",
        paper: Some((2.0, 2.0)),
        unit: Unit::Ratio,
        shape: Shape::above(1.5),
        differs: Some(Reason::of("another core")),
        reading: None,
        command: "gleaner measure",
        find: |_| Err(Missing::NotRun(String::new())),
    };

    fn told(found: Result<Quantity, Missing>) -> ClaimOutcome {
        outcome(&CLAIM, found, &Evidence::default())
    }

    fn of(value: f64, lo: f64, hi: f64) -> ClaimOutcome {
        told(Ok(Quantity::measured(Estimate::new(value, lo, hi), Unit::Ratio)))
    }

    #[test]
    fn the_interval_decides() {
        let reproduced = of(1.8, 1.7, 1.9);
        assert_eq!(reproduced.verdict, ClaimVerdict::Reproduced);
        assert_eq!((reproduced.why, reproduced.ratio.value()), (None, Some(0.9)));
        let differs = of(1.1, 1.0, 1.2);
        assert_eq!(differs.verdict, ClaimVerdict::ShapeDiffers);
        assert_eq!(differs.why.as_deref(), Some("a possible reason, not tested: another core"));
        assert_eq!(of(1.6, 1.0, 2.0).verdict, ClaimVerdict::NotIdentifiable);
        let here = Quantity::measured(Estimate::new(1.8, 1.7, 1.9), Unit::Ratio);
        let disturbed = told(Ok(here.disturbed_by(Some("a neighbour".to_owned()))));
        assert_eq!(disturbed.verdict, ClaimVerdict::NotIdentifiable);
        assert!(disturbed.here.value().is_some(), "the figure is shown all the same");
    }

    #[test]
    fn a_reason_about_the_host_is_told_where_the_host_is_so() {
        let about = |is_so| Some(Reason::where_host("this is a guest", is_so));
        let here = Quantity::measured(Estimate::exact(1.0), Unit::Ratio);
        for (is_so, told) in [(true, Some("a possible reason, not tested: this is a guest")), (false, None)] {
            let differs = about(if is_so { |_: &Evidence<'_>| true } else { |_: &Evidence<'_>| false });
            let outcome = outcome(&Claim { differs, ..CLAIM }, Ok(here.clone()), &Evidence::default());
            assert_eq!(outcome.verdict, ClaimVerdict::ShapeDiffers);
            assert_eq!(outcome.why.as_deref(), told);
        }
    }

    #[test]
    fn what_no_one_tries_is_not_laid_on_the_hardware() {
        let outcome = told(Err(Missing::NoTest("this host has a PMU".to_owned())));
        assert_eq!(outcome.verdict, ClaimVerdict::NotRun);
        assert_eq!(outcome.why.as_deref(), Some("no test of this yet: this host has a PMU"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let missing = [
            (Missing::Hardware("a PMU".to_owned()), ClaimVerdict::NeedsOtherHardware),
            (Missing::NotIdentifiable("a PMU".to_owned()), ClaimVerdict::NotIdentifiable),
            (Missing::NotRun("a PMU".to_owned()), ClaimVerdict::NotRun),
        ];
        for (missing, verdict) in missing {
            let outcome = told(Err(missing));
            assert_eq!((outcome.verdict, outcome.why.as_deref()), (verdict, Some("a PMU")));
            assert!(outcome.here.value().is_none() && outcome.ratio.value().is_none());
            assert_eq!(outcome.paper.value(), Some(2.0), "the document's figure stands anyway");
        }
    }

    #[test]
    fn a_range_is_kept() {
        let ranged = Claim { paper: Some((4.0, 5.0)), ..CLAIM };
        assert_eq!(paper(&ranged).estimate(), Some(Estimate::new(4.5, 4.0, 5.0)));
        assert!(paper(&Claim { paper: None, ..CLAIM }).value().is_none());
    }
}
