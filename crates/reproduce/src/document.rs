//! One document of the ledger.

use crate::claim::Claim;
use crate::evidence::Evidence;
use crate::missing::Missing;
use crate::programs::Programs;
use records::reproduction::ClaimCurves;

/// Makes one figure of the document, with the evidence beside it.
pub(crate) type DrawnFigure = fn(&Evidence<'_>) -> Result<ClaimCurves, Missing>;

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
}

/// Of areas that no cache holds.
pub(crate) const BEYOND_CACHES: &str = "8 times the last cache (5 with --quick)";
