//! What was allocated on each path of calls to a site, for compilers.

use crate::data::objects::Objects;
use crate::samples::sites::{Site, SiteId};
use records::profile::AllocationContext;
use units::{Estimate, Quantity, Unit};

/// Objects that the record has contexts of, and contexts of each.
pub(crate) const OBJECTS: usize = 50;
const MOST: usize = 8;

/// The contexts of an object whose share of the CPU time this is, most stall first: by path, the
/// weight that it has in that share.
pub(crate) fn contexts(
    objects: &Objects<'_, '_>,
    paths: &[(SiteId, f64)],
    stall: &Quantity,
) -> Vec<AllocationContext> {
    let all: f64 = paths.iter().map(|(_, weight)| weight).sum();
    let of = |&(path, weight): &(SiteId, f64)| {
        let site = objects.tally.heaps.sites.get(path);
        let calls = objects.sites.compiled(site);
        let is_whole = calls.last().is_some_and(|call| !call.is_inlined);
        is_whole.then(|| AllocationContext {
            calls,
            allocations: counted(site, site.allocations, Unit::Count),
            bytes: counted(site, site.total_bytes, Unit::Bytes),
            lifetime: lifetime(site),
            stall: part(stall, weight / all),
        })
    };
    paths.iter().take(MOST).filter_map(of).collect()
}

/// A sum over the site's allocations: exact where each is known, else as uncertain as their number.
fn counted(site: &Site, sum: f64, unit: Unit) -> Quantity {
    if site.allocations < 1.001 * site.records as f64 {
        return Quantity::measured(Estimate::exact(sum.round()), unit);
    }
    let off = (2.0 * site.squares.sqrt() / site.allocations.max(1.0)).min(1.0);
    Quantity::modelled(Estimate::new(sum, sum * (1.0 - off), sum * (1.0 + off)), unit)
}

fn lifetime(site: &Site) -> Quantity {
    if site.lived <= 0.0 {
        return Quantity::unresolved("none of them is known to have ended");
    }
    Quantity::measured(Estimate::exact(site.lifetimes_ns / site.lived * 1e-9), Unit::Seconds)
}

fn part(share: &Quantity, part: f64) -> Quantity {
    match share.estimate() {
        Some(all) => {
            let part = Estimate::new(all.value * part, all.lo * part, all.hi * part);
            Quantity::modelled(part, Unit::Ratio)
        }
        None => share.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_each_is_exact() {
        let mut site =
            Site { allocations: 4.0, squares: 4.0, records: 4, total_bytes: 256.0, ..Site::default() };
        assert_eq!(counted(&site, 256.0, Unit::Bytes).estimate(), Some(Estimate::exact(256.0)));
        assert_eq!(lifetime(&site).value(), None);
        (site.allocations, site.squares) = (64.0, 1024.0);
        let estimate = counted(&site, 64.0, Unit::Count).estimate().unwrap();
        assert!(estimate.lo < 10.0 && estimate.hi > 120.0, "{estimate:?}");
        (site.lived, site.lifetimes_ns) = (2.0, 4e9);
        assert_eq!(lifetime(&site).value(), Some(2.0));
    }
}
