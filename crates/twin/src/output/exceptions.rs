//! The exception table of a twin: the same actions and types for call sites at the twin's places.
//! Landing pads are the twin's where it has them, else the original's: the frame is the same.

use crate::error::TwinError;
use crate::layout::emit::Twins;
use crate::output::encoder::{Encoder, uleb_size};
use image::elf::cursor::ENCODED_OMIT;
use image::unwind::lsda::Lsda;

/// Type entries are re-encoded; 4 and 8 byte ones can be.
pub(crate) fn is_portable(lsda: &Lsda<'_>) -> bool {
    lsda.types.is_empty()
        || (lsda.type_encoding & 0x70 <= 0x10
            && matches!(lsda.type_encoding & 0x0f, 0x00 | 0x03 | 0x04 | 0x0b | 0x0c))
}

/// The size of a twin's table. It hangs on nothing but the layout of units, so it is known before
/// anything has a place.
pub(crate) fn size(twins: &Twins<'_, '_>, unit: usize, lsda: &Lsda<'_>) -> usize {
    let sites = sites(twins, unit, lsda);
    let types = lsda.types.len() * type_size(lsda);
    // Header: landing pad base, encoding of types, distance to the end of types, encoding and size
    // of call sites.
    let base = if lands_within(twins, unit, lsda) { 1 } else { 1 + 4 };
    let to_types = if lsda.type_encoding == ENCODED_OMIT { 0 } else { DISTANCE_SIZE };
    let header = base + 1 + to_types + 1 + DISTANCE_SIZE;
    header + sites_size(&sites) + lsda.actions.len() + types + lsda.filters.len()
}

/// A table that lists nothing.
pub(crate) const NOTHING_LISTED: [u8; 4] = [ENCODED_OMIT, ENCODED_OMIT, UDATA4, 0];

/// Distances are written in this number of bytes whatever their value.
const DISTANCE_SIZE: usize = 5;
const PC_RELATIVE_4: u8 = 0x1b;
const UDATA4: u8 = 0x03;

struct Site {
    start: u32,
    length: u32,
    pad: Option<u64>,
    action: u64,
}

fn sites_size(sites: &[Site]) -> usize {
    sites.iter().map(|site| 12 + uleb_size(site.action)).sum()
}

fn type_size(lsda: &Lsda<'_>) -> usize {
    image::elf::cursor::encoded_size(lsda.type_encoding).unwrap_or(0)
}

/// Whether all landing pads lie in the twin, behind its begin: then their distances from there say
/// where, as in tables of compilers. Some personalities (Crystal's, LDC's) know no others.
fn lands_within(twins: &Twins<'_, '_>, unit: usize, lsda: &Lsda<'_>) -> bool {
    let module = twins.module;
    let start = module.units[unit].start;
    lsda.call_sites
        .iter()
        .filter_map(|site| site.landing_pad)
        .all(|pad| pad != start && module.unit_at(pad) == Some(unit) && twins.enterable(pad).is_some())
}

/// Call sites that still hold an instruction, in the twin's offsets; behind them once more, for
/// cold parts.
fn sites(twins: &Twins<'_, '_>, unit: usize, lsda: &Lsda<'_>) -> Vec<Site> {
    let Some(twin) = &twins.twins[unit] else { return Vec::new() };
    let start = twins.module.units[unit].start;
    let insns = &twins.module.decoded[unit].insns;
    let placed = |offset: &dyn Fn(u64) -> u32| -> Vec<Site> {
        let sites = lsda.call_sites.iter().filter_map(|site| {
            let at = site.start.0.wrapping_sub(start.0);
            let (from, to) = (offset(at), offset(at.saturating_add(site.length)));
            let pad = site.landing_pad.map(|pad| twins.enterable(pad).unwrap_or(pad.0));
            (from < to).then_some(Site { start: from, length: to - from, pad, action: site.action })
        });
        sites.collect()
    };
    let mut sites = placed(&|at| twin.layout.offset_of(insns, at));
    // What is inserted may be interrupted, and unwound from there: its cold part as the rest of it.
    if !twin.layout.cold().is_empty() {
        sites.extend(placed(&|at| twin.layout.cold_offset_of(insns, at)));
    }
    sites
}

/// Appends a twin's table to `out`, whose end has the address `place`.
pub(crate) fn write(
    twins: &Twins<'_, '_>,
    unit: usize,
    lsda: &Lsda<'_>,
    out: &mut Vec<u8>,
    place: u64,
) -> Result<(), TwinError> {
    let sites = sites(twins, unit, lsda);
    let mut encoder = Encoder::new(out, place);
    // Pads are given by their distance from a base, and a distance of 0 means none: so the base
    // lies before them all.
    let own = twins.twins[unit].as_ref().filter(|_| lands_within(twins, unit, lsda));
    let base = if let Some(twin) = own {
        encoder.byte(ENCODED_OMIT);
        twin.address
    } else {
        let base = sites.iter().filter_map(|site| site.pad).min().map_or(place, |first| first - 1);
        encoder.byte(PC_RELATIVE_4);
        encoder.pointer(PC_RELATIVE_4, base)?;
        base
    };
    let types = lsda.types.len() * type_size(lsda);
    let sites_size = sites_size(&sites);
    if lsda.type_encoding == ENCODED_OMIT {
        encoder.byte(ENCODED_OMIT);
    } else {
        encoder.byte(lsda.type_encoding);
        let distance = 1 + DISTANCE_SIZE + sites_size + lsda.actions.len() + types;
        encoder.wide_uleb(distance as u64, DISTANCE_SIZE);
    }
    encoder.byte(UDATA4);
    encoder.wide_uleb(sites_size as u64, DISTANCE_SIZE);
    for site in &sites {
        encoder.u32(site.start);
        encoder.u32(site.length);
        let pad = site.pad.map_or(Ok(0), |pad| u32::try_from(pad - base));
        encoder.u32(pad.map_err(|_| TwinError::OutOfReach("a landing pad"))?);
        encoder.uleb(site.action);
    }
    encoder.bytes(lsda.actions);
    for &pointer in lsda.types.iter().rev() {
        encoder.pointer(lsda.type_encoding, pointer)?;
    }
    encoder.bytes(lsda.filters);
    Ok(())
}
