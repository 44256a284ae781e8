//! Which units may be entered by callers nobody sees: by their address, from other modules, by the loader, from code that
//! was not decoded. Of all others, all callers are known.

use crate::bytes::{u32_at, u64_at};
use crate::code_units::entry_points;
use crate::module::Module;
use rayon::prelude::*;
use units::Svma;

/// How a unit may be entered besides by the calls and jumps of decoded code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// Not at all.
    #[default]
    None,
    /// By callers that know it by its type only.
    Convention,
    /// By a branch in bytes that were not decoded, whose author may have known all about it.
    Anything,
}

/// One for each unit.
pub fn exposures(module: &Module<'_>) -> Vec<Exposure> {
    let mut found = vec![Exposure::None; module.units.len()];
    let mut expose = |address: Svma, how: Exposure| {
        if let Some(unit) = module.unit_at(address) {
            found[unit] = found[unit].max(how);
        }
    };
    for address in entry_points(&module.image, &module.relocations) {
        expose(address, Exposure::Convention);
    }
    for symbol in module.symbols.all().iter().filter(|symbol| symbol.is_exported || symbol.is_resolver) {
        expose(symbol.address, Exposure::Convention);
    }
    for relocation in &module.relocations {
        expose(Svma(relocation.addend), Exposure::Convention);
    }
    for cie in &module.frames.cies {
        if let Some(personality) = &cie.personality {
            expose(Svma(personality.pointer), Exposure::Convention);
        }
    }
    for decoded in &module.decoded {
        // Who calls into the middle of a unit knows it well.
        for &call in &decoded.calls {
            if module.units.binary_search_by_key(&call, |unit| unit.start).is_err() {
                expose(call, Exposure::Anything);
            }
        }
        for &reference in &decoded.code_references {
            expose(reference, Exposure::Convention);
        }
    }
    for address in words(module) {
        expose(address, Exposure::Convention);
    }
    // What leads elsewhere leads to originals, not to twins.
    let starts_unit = |address: &Svma| module.units.binary_search_by_key(address, |unit| unit.start).is_ok();
    for address in module.branches_of_undecoded_code().into_iter().filter(starts_unit) {
        expose(address, Exposure::Anything);
    }
    found
}

/// Numbers in data that are addresses of code.
fn words(module: &Module<'_>) -> Vec<Svma> {
    let image = &module.image;
    let is_start = |address: u64| {
        let unit = module.units.binary_search_by_key(&address, |unit| unit.start.0);
        unit.is_ok().then_some(Svma(address))
    };
    let mut found = Vec::new();
    for load in image.loads().iter().filter(|load| !load.is_executable()) {
        let bytes = image.segment_bytes(load).unwrap_or(&[]);
        let skip = |size: u64| bytes.get((load.address.wrapping_neg() % size) as usize..).unwrap_or(&[]);
        found.par_extend(
            skip(8).par_chunks_exact(8).with_min_len(4096).filter_map(|word| is_start(u64_at(word, 0)?)),
        );
        if !image.is_position_independent() {
            found.par_extend(
                skip(4)
                    .par_chunks_exact(4)
                    .with_min_len(4096)
                    .filter_map(|word| is_start(u64::from(u32_at(word, 0)?))),
            );
        }
    }
    found
}
