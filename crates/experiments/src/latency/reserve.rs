//! How much memory the extra curves get, and the huge pages that it needs, reserved for as long as it is measured.

use lab::arena::PageKind;
use lab::settings::{HugePages, reserve_huge_pages};
use units::Bytes;

/// Memory of one kind of page that can be had.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) largest: Bytes,
    _reserved: Option<HugePages>,
}

/// Half of the largest area: what is reserved is taken from everybody, and nobody else may use it meanwhile.
pub(super) fn supply(kind: PageKind, largest: Bytes) -> Result<Supply, String> {
    let half = Bytes(largest.0 / 2);
    let page = kind.page_size();
    if matches!(kind, PageKind::Small | PageKind::Cut | PageKind::Transparent) {
        return Ok(Supply { largest: half, _reserved: None });
    }
    let count = half.0 / page;
    if count == 0 {
        return Err(format!("one such page is more than half of the largest area measured ({largest})"));
    }
    let reserved = reserve_huge_pages(Bytes(page), count).map_err(|e| e.to_string())?;
    Ok(Supply { largest: Bytes(count * page), _reserved: Some(reserved) })
}
