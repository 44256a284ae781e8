//! How much memory the extra curves get, and the huge pages that it needs, reserved for as long as
//! it is measured.

use crate::context::Context;
use lab::arena::PageKind;
use lab::settings::{HugePages, reserve_huge_pages};
use records::host::{Fact, HugetlbPool};
use units::Bytes;

/// Memory of one kind of page that can be had.
#[derive(Debug)]
pub(super) struct PageReserve {
    pub(super) largest: Bytes,
    _reserved: Option<HugePages>,
}

/// Half of the largest area: reserved pages are taken from all other processes, and none can use
/// them meanwhile. A single page that is larger still is not reserved for this, but used if one is
/// idle.
pub(super) fn supply(ctx: &Context<'_>, kind: PageKind, largest: Bytes) -> Result<PageReserve, String> {
    let half = Bytes(largest.0 / 2);
    if matches!(kind, PageKind::Small | PageKind::Cut | PageKind::Transparent) {
        return Ok(PageReserve { largest: half, _reserved: None });
    }
    let page = Bytes(kind.page_size());
    let (count, largest) = wanted(half, page, ctx.max_memory, idle(&ctx.host.pages.hugetlb, page))?;
    let reserved = reserve_huge_pages(page, count).map_err(|e| e.to_string())?;
    Ok(PageReserve { largest, _reserved: Some(reserved) })
}

/// How many pages, and how much of them is measured.
fn wanted(half: Bytes, page: Bytes, most: Bytes, idle: u64) -> Result<(u64, Bytes), String> {
    let count = half.0 / page.0;
    if count > 0 {
        Ok((count, Bytes(count * page.0)))
    } else if page > most {
        Err(format!("one page of this size is more than may be used ({most}); see --max-memory"))
    } else if idle > 0 {
        Ok((1, half))
    } else {
        Err(format!("one page of this size is more than the largest area ({half}), and no such page is free"))
    }
}

/// Pages of this size that exist and are not reserved.
fn idle(pools: &[HugetlbPool], page: Bytes) -> u64 {
    let pool = pools.iter().find(|pool| pool.size == page);
    let count = |fact: &Fact<u64>| fact.value().unwrap_or(0);
    pool.map_or(0, |pool| count(&pool.free).saturating_sub(count(&pool.reserved)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_larger_than_what_is_measured_is_used_where_it_lies_idle() {
        let (half, small, large) = (Bytes::mib(128), Bytes::mib(2), Bytes::gib(1));
        let most = Bytes::gib(4);
        assert_eq!(wanted(half, small, most, 0), Ok((64, half)));
        assert_eq!(wanted(half, large, most, 1), Ok((1, half)));
        assert_eq!(wanted(Bytes::mib(2500), large, most, 0), Ok((2, Bytes::gib(2))));
        let why = |most, idle| wanted(half, large, most, idle).unwrap_err();
        assert!(why(most, 0).ends_with("and no such page is free"), "{}", why(most, 0));
        assert!(why(Bytes::mib(512), 1).ends_with("--max-memory"), "{}", why(Bytes::mib(512), 1));
    }

    #[test]
    fn reserved_pages_are_not_idle() {
        let pool = |size, free, reserved| HugetlbPool {
            size,
            total: Fact::Known(4),
            free: Fact::Known(free),
            reserved: Fact::Known(reserved),
            surplus: Fact::Known(0),
            path: String::new(),
        };
        let pools = [pool(Bytes::mib(2), 9, 0), pool(Bytes::gib(1), 3, 1)];
        assert_eq!(idle(&pools, Bytes::gib(1)), 2);
        assert_eq!(idle(&pools[..1], Bytes::gib(1)), 0);
    }
}
