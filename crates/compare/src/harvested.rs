//! The figures of a run record: what a harvest cost the primary, and what scavengers got.

use crate::figure::{Better, Figure, Figures};
use records::run::Run;
use units::{Estimate, Quantity, Unit};

use Better::{Higher, Lower};

pub(crate) fn figures(run: &Run) -> Vec<Figure> {
    let mut figures = Figures::default();
    figures.headline("elapsed time", Lower, &run.wall);
    figures.headline("primary's time with guests over alone", Lower, &over_alone(&run.slowdown.share));
    figures.headline("absence, 99th percentile", Lower, &run.absences.p99);
    figures.detail("absence, median", Lower, &run.absences.p50);
    figures.detail("absence, longest", Lower, &run.absences.max);
    figures.headline("work of all", Higher, &run.work);
    for scavenger in &run.scavengers {
        let name = format!("scavenger {} ({})", scavenger.copy, scavenger.process.command.join(" "));
        figures.headline(format!("{name}, progress"), Higher, &scavenger.progress);
        figures.detail(format!("{name}, time aboard"), Higher, &scavenger.times.aboard);
        figures.detail(format!("{name}, turns aboard"), Higher, &scavenger.turns);
        figures.detail(format!("{name}, CPU time at home"), Higher, &scavenger.times.running);
    }
    figures.0
}

/// A slowdown is close to zero, where a ratio of two means nothing: one and the slowdown is
/// compared.
fn over_alone(share: &Quantity) -> Quantity {
    match (share, share.estimate()) {
        (_, Some(Estimate { value, lo, hi })) => {
            Quantity::modelled(Estimate::new(1.0 + value, 1.0 + lo, 1.0 + hi), Unit::Ratio)
        }
        (unresolved, None) => unresolved.clone(),
    }
}
