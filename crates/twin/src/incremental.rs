//! What a rewrite of the same module with other sites can reuse: all units but those whose sites
//! changed.

use crate::modes::mode::Mode;
use crate::select::sites::{Bounds, SiteChoice, Sites};
use image::Module;
use std::collections::BTreeSet;
use units::Svma;

/// What a module was rewritten for.
pub(crate) struct EarlierRewrite {
    sites: Sites,
    bounds: Option<Bounds>,
}

impl EarlierRewrite {
    /// Only rewrites with sites are ever done again.
    pub(crate) fn of(mode: Mode<'_>) -> Option<Self> {
        Some(Self { sites: mode.sites()?.clone(), bounds: mode.bounds() })
    }

    /// Whether units are laid out as they were, as far as they have the same sites.
    pub(crate) fn serves(&self, mode: Mode<'_>) -> bool {
        let Some(sites) = mode.sites() else { return false };
        // Those that hang on places count by unit.
        let Sites { which, width, knowledge, save_all_at: _, optimisations } = sites;
        let same_kind = match (which, &self.sites.which) {
            (SiteChoice::EveryLoad(now), SiteChoice::EveryLoad(then)) => now == then,
            (SiteChoice::Listed(_), SiteChoice::Listed(_)) => true,
            _ => false,
        };
        same_kind
            && self.bounds == mode.bounds()
            && (self.sites.width, self.sites.knowledge, self.sites.optimisations)
                == (*width, *knowledge, *optimisations)
    }

    /// The units in which something is another than it was, ascending.
    pub(crate) fn stale(&self, module: &Module<'_>, mode: Mode<'_>) -> Vec<usize> {
        let Some(sites) = mode.sites() else { return Vec::new() };
        let mut changed: Vec<u64> =
            self.sites.save_all_at.symmetric_difference(&sites.save_all_at).copied().collect();
        if let (SiteChoice::Listed(then), SiteChoice::Listed(now)) = (&self.sites.which, &sites.which) {
            changed.extend(then.iter().filter(|(at, site)| now.get(at) != Some(site)).map(|(&at, _)| at));
            changed.extend(now.keys().filter(|at| !then.contains_key(at)));
        }
        let units: BTreeSet<usize> = changed.into_iter().filter_map(|at| module.unit_at(Svma(at))).collect();
        units.into_iter().collect()
    }
}
