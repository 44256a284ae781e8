//! Functions that may run before the runtime has given its thread an area: a primary yields in none of them.
//!
//! The loader asks resolvers of indirect functions while it relocates, before any constructor has run. A main program's
//! own constructors run after those of preloaded libraries, a library's may run before; a library's other functions can
//! be called by constructors of others, which whoever chooses what to rewrite has to think of.

use image::imports::Import;
use image::{Module, abi};
use units::Svma;

/// For each unit, whether it may run early: what is entered early, and what that calls or jumps to.
pub(crate) fn early(module: &Module<'_>) -> Vec<bool> {
    let mut early = vec![false; module.units.len()];
    let mut work: Vec<usize> =
        entered_early(module).into_iter().filter_map(|address| module.unit_at(address)).collect();
    while let Some(unit) = work.pop() {
        if std::mem::replace(&mut early[unit], true) {
            continue;
        }
        let decoded = &module.decoded[unit];
        for &target in decoded.calls.iter().chain(&decoded.jumps_out) {
            work.extend(module.unit_at(target));
            if let Some(Import::Named(name)) = module.imports.stub(target) {
                work.extend(defined(module, name).filter_map(|address| module.unit_at(address)));
            }
        }
    }
    early
}

fn entered_early(module: &Module<'_>) -> Vec<Svma> {
    let image = &module.image;
    let mut found: Vec<Svma> = module
        .symbols
        .all()
        .iter()
        .filter(|symbol| symbol.is_resolver)
        .map(|symbol| symbol.address)
        .collect();
    let relocations = &module.relocations;
    found.extend(relocations.iter().filter(|r| r.kind == abi::R_X86_64_IRELATIVE).map(|r| Svma(r.addend)));
    let mut array = |at: u64, size: u64| {
        let (Some(at), Some(size)) = (image.dynamic_value(at), image.dynamic_value(size)) else { return };
        let places = (at..at.saturating_add(size)).step_by(8);
        found.extend(places.clone().filter_map(|place| image.read_u64(Svma(place))).map(Svma));
        found
            .extend(relocations.iter().filter(|r| r.place.0.wrapping_sub(at) < size).map(|r| Svma(r.addend)));
    };
    array(abi::DT_PREINIT_ARRAY, abi::DT_PREINIT_ARRAYSZ);
    let is_program = image.segments().iter().any(|segment| segment.kind == abi::PT_INTERP);
    if !is_program {
        array(abi::DT_INIT_ARRAY, abi::DT_INIT_ARRAYSZ);
        found.extend(image.dynamic_value(abi::DT_INIT).map(Svma));
    }
    found
}

/// Functions of this name in the module itself: a call of them by way of the linkage table comes back, most often.
fn defined<'a>(module: &'a Module<'_>, name: &'a [u8]) -> impl Iterator<Item = Svma> + 'a {
    let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    module.symbols.all().iter().filter(move |symbol| symbol.name == name).map(|symbol| symbol.address)
}
