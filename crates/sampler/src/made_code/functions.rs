//! From pages that were read and names that were told to the functions that were sampled.
//!
//! A function's name tells where it begins and ends. Where there is none, the code around the
//! samples is taken: instructions have several lengths, so a beginning is chosen from which
//! decoding comes to the sampled instructions.

use super::pages::Pages;
use insight::samples::{Place, Tally};
use insight::{MadeCode, MadeFunction};
use std::collections::BTreeMap;

/// Bytes around the samples of code without a name.
const AROUND: u64 = 512;
/// Samples that are farther apart than this are not in one piece of code without a name.
const APART: u64 = 1024;
/// Bytes around a sample that tell whether it is in the same code as another one.
const IN_FRONT: u64 = 64;
const BEHIND: u64 = 32;

/// A sampled place of made code.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    process: u32,
    address: u64,
    version: u32,
    place: Place,
}

/// A piece of code: where it begins, where it ends and what it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    process: u32,
    start: u64,
    end: u64,
    name: Option<(String, String)>,
}

/// The functions that were sampled and read, each with the path that the record has for it.
pub(crate) fn functions(tally: &Tally, names: &MadeCode, pages: &Pages) -> Vec<(String, MadeFunction)> {
    let sampled = MadeCode::read_places(tally);
    let sampled = sampled.into_iter().map(|(process, address, version, place)| Sampled {
        process,
        address,
        version,
        place,
    });
    let mut extents: BTreeMap<Extent, Vec<Sampled>> = BTreeMap::new();
    let mut unnamed: Vec<Sampled> = Vec::new();
    let mut told = BTreeMap::new();
    for sampled in sampled {
        match named(names, pages, &sampled) {
            Some(made) => {
                let name = Some((made.module.clone(), made.name.clone()));
                let end = made.start.saturating_add(made.bytes);
                let extent = Extent { process: sampled.process, start: made.start, end, name };
                told.entry(extent.clone()).or_insert_with(|| made.told.clone());
                extents.entry(extent).or_default().push(sampled);
            }
            None => unnamed.push(sampled),
        }
    }
    for piece in unnamed.chunk_by(|a, b| a.process == b.process && b.address - a.address <= APART) {
        let (first, last) = (piece[0], piece[piece.len() - 1]);
        let start = first.address.saturating_sub(AROUND);
        let extent = Extent { process: first.process, start, end: last.address + AROUND, name: None };
        extents.entry(extent).or_default().extend(piece);
    }
    let mut found = Vec::new();
    for (extent, sampled) in &extents {
        let (path, name) = extent
            .name
            .clone()
            .unwrap_or_else(|| (insight::UNNAMED_MODULE.to_owned(), insight::UNNAMED_FUNCTION.to_owned()));
        let told = told.get(extent).cloned().unwrap_or_default();
        for function in versions(extent, sampled, pages) {
            let (name, told) = (name.clone(), told.clone());
            found.push((path.clone(), MadeFunction { name, told, ..function }));
        }
    }
    found
}

/// The function that was at a sampled address. Where the runtime has dumped code, that which is the
/// same around the sample counts.
fn named<'n>(names: &'n MadeCode, pages: &Pages, sampled: &Sampled) -> Option<&'n insight::Made> {
    let all = names.all_at(sampled.process, sampled.address);
    let last = all.last()?;
    if last.code.is_some()
        && let Some((from, bytes)) = pages.around(sampled.process, sampled.address, sampled.version)
    {
        let is_it = |made: &&std::sync::Arc<insight::Made>| {
            made.code
                .as_ref()
                .is_some_and(|code| is_same_around(sampled.address, (made.start, code), (from, &bytes)))
        };
        return all.iter().rev().find(is_it).map(|made| &**made);
    }
    Some(last)
}

/// The versions of one piece of code. Runtimes write over single calls and jumps in it, too, so
/// samples with the same bytes around them are in one version.
fn versions(extent: &Extent, sampled: &[Sampled], pages: &Pages) -> Vec<MadeFunction> {
    let mut found: Vec<MadeFunction> = Vec::new();
    for one in sampled {
        let Some((from, bytes)) = pages.around(one.process, one.address, one.version) else { continue };
        let to = from + bytes.len() as u64;
        let (start, end) = (extent.start.max(from), extent.end.min(to));
        if !(start..end).contains(&one.address) {
            continue;
        }
        let bytes = &bytes[(start - from) as usize..(end - from) as usize];
        let is_same = |known: &&mut MadeFunction| {
            is_same_around(one.address, (known.start, &known.bytes), (start, bytes))
        };
        if let Some(known) = found.iter_mut().find(is_same) {
            known.sampled.push((one.place, one.address));
        } else {
            let (bytes, sampled) = (bytes.to_vec(), vec![(one.place, one.address)]);
            found.push(MadeFunction { start, bytes, sampled, ..MadeFunction::default() });
        }
    }
    let whole = |function: MadeFunction| {
        let begins = extent.name.is_some() && function.start == extent.start;
        if begins { Some(function) } else { function.aligned() }
    };
    found.into_iter().filter_map(whole).collect()
}

/// Whether two stretches of bytes, each with its first address, are the same around an address.
fn is_same_around(address: u64, one: (u64, &[u8]), other: (u64, &[u8])) -> bool {
    let end = |(start, bytes): (u64, &[u8])| start + bytes.len() as u64;
    let from = address.saturating_sub(IN_FRONT).max(one.0).max(other.0);
    let to = (address + BEHIND).min(end(one)).min(end(other));
    let part = |(start, bytes): (u64, &[u8])| -> Option<Vec<u8>> {
        Some(bytes.get((from.checked_sub(start)?) as usize..(to.checked_sub(start)?) as usize)?.to_vec())
    };
    from <= address && address < to && part(one).is_some_and(|bytes| part(other) == Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_around_an_address() {
        let code: Vec<u8> = (0..200).collect();
        let mut other = code.clone();
        assert!(is_same_around(100, (0, &code), (0, &other)));
        other[10] = 0xcc;
        assert!(is_same_around(100, (0, &code), (0, &other)), "far from it");
        assert!(!is_same_around(40, (0, &code), (0, &other)));
        assert!(is_same_around(150, (0, &code), (100, &code[100..])), "what both have");
        assert!(!is_same_around(90, (0, &code), (100, &code[100..])));
    }
}
