//! Rule R2: entry patches, and the bytes that nothing may refer to because of them.

use crate::container::elf::Elf;
use crate::container::mapping::{Mapping, TRACE};
use crate::rule::{Findings, Rule};
use units::Svma;

/// How long an entry patch is: `jmp rel32`.
pub(crate) const PATCH: u64 = 5;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// The bytes behind the first of each patch, as a bit for each byte of code: looked at for every
/// branch there is.
#[derive(Default)]
pub(crate) struct Patched {
    spans: Vec<Span>,
}

struct Span {
    start: u64,
    size: u64,
    bits: Vec<u64>,
}

impl Patched {
    pub(crate) fn of(original: &Elf<'_>, mapping: &Mapping<'_>) -> Self {
        let code = original.loads().iter().filter(|load| load.is_executable());
        let span = |load: &crate::container::elf::Segment| Span {
            start: load.address,
            size: load.file_size,
            bits: vec![0; (load.file_size / 64 + 1) as usize],
        };
        let mut patched = Self { spans: code.map(span).collect() };
        for unit in &mapping.units {
            let Some(offset) = unit.patch else { continue };
            for address in (1..PATCH).map(|byte| (unit.start + u64::from(offset)).wrapping_add(byte)) {
                if let Some((span, at)) =
                    patched.spans.iter_mut().find_map(|span| span.at(address).map(|at| (span, at)))
                {
                    span.bits[at / 64] |= 1 << (at % 64);
                }
            }
        }
        patched
    }
    /// Whether a branch to this address would meet the inside of a patch.
    pub(crate) fn holds(&self, address: u64) -> bool {
        let bit = |span: &Span| span.at(address).map(|at| span.bits[at / 64] >> (at % 64) & 1 == 1);
        self.spans.iter().find_map(bit).unwrap_or(false)
    }
    /// The first byte of any patch, its own first one included, among that number of bytes from an
    /// address on.
    pub(crate) fn first_among(&self, address: u64, size: u64) -> Option<u64> {
        let end = address.saturating_add(size);
        if !self.spans.iter().any(|span| address < span.start + span.size && span.start < end) {
            return None;
        }
        (address..end).find(|&byte| self.holds(byte) || self.holds(byte.wrapping_add(1)))
    }
}

impl Span {
    fn at(&self, address: u64) -> Option<usize> {
        Some(address.wrapping_sub(self.start)).filter(|&at| at < self.size).map(|at| at as usize)
    }
}

/// Where patches lie in the file: offset and size, ascending. What is wrong with them alone is said
/// here; what refers into them is found where references are looked at.
pub(crate) fn places(
    original: &Elf<'_>,
    mapping: &Mapping<'_>,
    mode: u32,
    findings: &Findings,
) -> Vec<(u64, u64)> {
    let mut places = Vec::new();
    for unit in &mapping.units {
        let Some(offset) = unit.patch else { continue };
        let guarded = unit.code.starts_with(&ENDBR64);
        let address = unit.start + u64::from(offset);
        if u64::from(offset) + PATCH > unit.code.len() as u64 {
            findings.at(Rule::Entry, address, "a patch reaches beyond its unit");
            continue;
        }
        let begin = if guarded { 4 } else { 0 };
        // That control gets there from the entry is seen where instructions are known.
        if offset != begin && (mode != TRACE || offset < begin) {
            findings.at(Rule::Entry, address, "a patch that is not at its unit's entry");
            continue;
        }
        let Some(place) = original.file_offset(Svma(address)) else { continue };
        places.push((place.0, PATCH));
    }
    // Two segments may show the same bytes of the file at different addresses.
    for load in original.loads() {
        let first = places.partition_point(|&(offset, size)| offset + size <= load.offset);
        if let Some(&(offset, _)) = places.get(first) {
            let shown = offset < load.offset + load.file_size;
            if shown && !load.is_executable() {
                findings.in_file(Rule::Entry, offset, "a patch in bytes that are also loaded as data");
            }
        }
    }
    places.sort_unstable();
    places
}
