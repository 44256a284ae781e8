//! One document of the ledger.

use crate::claim::Claim;
use crate::evidence::Evidence;
use crate::missing::Missing;
use crate::programs::Programs;
use records::machine::Effort;
use records::reproduction::{ClaimCurves, ClaimTable};

/// Makes one figure of the document, with the evidence beside it.
pub(crate) type DrawnFigure = fn(&Evidence<'_>) -> Result<ClaimCurves, Missing>;

/// Makes one table of the document, with the evidence below it.
pub(crate) type PrintedTable = fn(&Evidence<'_>) -> Result<ClaimTable, Missing>;

/// A document, and what a run of its claims needs.
#[derive(Debug)]
pub struct Ledger {
    /// On the command line and in records.
    pub name: &'static str,
    pub title: &'static str,
    /// What its authors measured on.
    pub machine: &'static str,
    /// The experiments of `gleaner measure` that its claims are taken from.
    pub experiments: &'static [&'static str],
    /// What else is run, and the seconds that it takes, without and with `--quick`.
    pub programs: Option<(Programs, f64, f64)>,
    /// What a run takes at most.
    pub memory: &'static str,
    pub claims: &'static [Claim],
    /// Its figures, where its text states points of them.
    pub figures: &'static [DrawnFigure],
    /// Its tables.
    pub tables: &'static [PrintedTable],
}

impl Ledger {
    /// What a run takes: the seconds of its experiments, as `of_experiment` knows them, and of its
    /// programs.
    pub fn seconds(&self, effort: Effort, of_experiment: impl Fn(&str) -> Option<f64>) -> f64 {
        let experiments: f64 = self.experiments.iter().filter_map(|name| of_experiment(name)).sum();
        let programs = match self.programs {
            Some((_, _, quick)) if effort == Effort::Quick => quick,
            Some((_, normal, _)) => normal,
            None => 0.0,
        };
        experiments + programs
    }
}

/// Of areas that no cache holds.
pub(crate) const BEYOND_CACHES: &str = "8 times the last cache (5 with --quick)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{msh, vtune};

    #[test]
    fn a_run_takes_the_time_of_its_experiments_and_programs() {
        let three = |_: &str| Some(3.0);
        let experiments = 3.0 * msh::LEDGER.experiments.len() as f64;
        let (_, normal, quick) = msh::LEDGER.programs.unwrap();
        assert_eq!(msh::LEDGER.seconds(Effort::Normal, three), experiments + normal);
        assert_eq!(msh::LEDGER.seconds(Effort::Quick, three), experiments + quick);
        let (_, normal, _) = vtune::LEDGER.programs.unwrap();
        assert_eq!(vtune::LEDGER.seconds(Effort::Thorough, |_| None), normal);
    }
}
