//! Reaches of the TLB's levels, from the tlb experiment: breaks that are no cache's.

use crate::fit::Reach;
use records::machine::Tlb;

/// Of this kind of pages, as far as they are resolved.
pub(crate) fn reaches(tlb: Option<&Tlb>, pages: &str) -> Vec<Reach> {
    let page = match pages {
        "4K" => 4096.0,
        "1G" => 1024.0 * 1024.0 * 1024.0,
        _ => 2.0 * 1024.0 * 1024.0,
    };
    let kinds = tlb.into_iter().flat_map(|tlb| &tlb.kinds).filter(|kind| kind.pages.asked == pages);
    let levels = kinds.flat_map(|kind| &kind.levels);
    levels
        .filter_map(|level| Some(Reach { level: level.level, bytes: level.entries.estimate()?.scaled(page) }))
        .collect()
}
