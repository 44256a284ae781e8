//! What one rewrite leaves to the next one of the same module, which has other sites: all units but those where these lie.

use crate::modes::mode::Mode;
use crate::select::sites::{Bounds, Sites, Which};
use image::Module;
use std::collections::BTreeSet;
use units::Svma;

/// What a module was rewritten for.
pub(crate) struct Again {
    sites: Sites,
    bounds: Option<Bounds>,
}

impl Again {
    /// Only rewrites with sites are ever done again.
    pub(crate) fn of(mode: Mode<'_>) -> Option<Self> {
        Some(Self { sites: mode.sites()?.clone(), bounds: mode.bounds() })
    }

    /// Whether units are laid out as they were, as far as they have the same sites.
    pub(crate) fn serves(&self, mode: Mode<'_>) -> bool {
        let Some(sites) = mode.sites() else { return false };
        // Those that hang on places count by unit.
        let Sites { which, spins: _, width, knowledge, wary: _, spares } = sites;
        let same_kind = match (which, &self.sites.which) {
            (Which::EveryLoad(now), Which::EveryLoad(then)) => now == then,
            (Which::Listed(_), Which::Listed(_)) => true,
            _ => false,
        };
        same_kind
            && self.bounds == mode.bounds()
            && (self.sites.width, self.sites.knowledge, self.sites.spares) == (*width, *knowledge, *spares)
    }

    /// The units in which something is another than it was, ascending.
    pub(crate) fn stale(&self, module: &Module<'_>, mode: Mode<'_>) -> Vec<usize> {
        let Some(sites) = mode.sites() else { return Vec::new() };
        let mut changed: Vec<u64> = self.sites.wary.symmetric_difference(&sites.wary).copied().collect();
        changed.extend(self.sites.spins.symmetric_difference(&sites.spins));
        if let (Which::Listed(then), Which::Listed(now)) = (&self.sites.which, &sites.which) {
            changed.extend(then.iter().filter(|(at, site)| now.get(at) != Some(site)).map(|(&at, _)| at));
            changed.extend(now.keys().filter(|at| !then.contains_key(at)));
        }
        let units: BTreeSet<usize> = changed.into_iter().filter_map(|at| module.unit_at(Svma(at))).collect();
        units.into_iter().collect()
    }
}
