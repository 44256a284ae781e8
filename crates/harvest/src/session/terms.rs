//! What all files are planned with.

use crate::plan::{ProfiledRates, Wishes};
use records::plan::Prices;
use std::time::Duration;
use store::cache::Cache;

#[derive(Clone, Copy)]
pub(super) struct Terms<'t> {
    pub(super) prices: &'t Prices,
    pub(super) rates: &'t ProfiledRates,
    pub(super) wishes: &'t Wishes,
    pub(super) cache: &'t Cache,
    /// How long libraries of scavengers may take; `None`: as long as they take.
    pub(super) library_time: Option<Duration>,
    /// The same of a program's own file.
    pub(super) program_time: Option<Duration>,
}
