//! Libraries that may run before the runtime's constructor, since other code that runs so early may
//! call them. They are not rewritten: a thread has no area yet at that time, and hoisted saves
//! would write to it.
//!
//! Such code: resolvers of indirect functions, constructors of a library marked `DF_1_INITFIRST`,
//! and audit libraries.

use crate::find::library::LinkedLibrary;
use image::Image;
use image::elf::abi;
use image::elf::relocations::dynamic_relocations;
use image::elf::symbols::Symbols;
use image::libraries::needed_by;
use std::ffi::OsString;

/// What libraries with indirect functions need, and of each, whose need it is: resolvers are asked
/// while files are relocated, before any constructor, the runtime's too.
pub(crate) fn behind_resolvers(linked: &[LinkedLibrary]) -> Vec<(OsString, String)> {
    let mut found: Vec<(OsString, String)> = Vec::new();
    for library in linked.iter().filter(|library| !library.is_libcs()) {
        let whose = library.name.to_string_lossy().into_owned();
        let needed = library.read(|image| if asks_resolvers(image) { needed_by(image) } else { Vec::new() });
        let mut work = needed.unwrap_or_default();
        while let Some(name) = work.pop() {
            let other = linked.iter().find(|other| other.name == name.as_str());
            let Some(other) = other.filter(|other| found.iter().all(|(known, _)| *known != other.name))
            else {
                continue;
            };
            found.push((other.name.clone(), whose.clone()));
            work.extend(other.read(needed_by).unwrap_or_default());
        }
    }
    found
}

fn asks_resolvers(image: &Image<'_>) -> bool {
    Symbols::of(image, None).all().iter().any(|symbol| symbol.is_resolver)
        || dynamic_relocations(image).iter().any(|relocation| relocation.kind == abi::R_X86_64_IRELATIVE)
}

/// Whether its constructors run before all others, where they may be those of a library that calls
/// others in turn. Of several such files the loader heeds the last, so that the runtime is not the
/// first.
pub(crate) fn is_first(image: &Image<'_>) -> bool {
    const DT_FLAGS_1: u64 = 0x6fff_fffb;
    const DF_1_INITFIRST: u64 = 0x20;
    image.dynamic_value(DT_FLAGS_1).is_some_and(|flags| flags & DF_1_INITFIRST != 0)
}

/// Whether other files are loaded, and run, before this one's.
pub(crate) fn is_audited(image: &Image<'_>) -> bool {
    const DT_DEPAUDIT: u64 = 0x6fff_fefb;
    const DT_AUDIT: u64 = 0x6fff_fefc;
    let by_itself = [DT_AUDIT, DT_DEPAUDIT].into_iter().any(|tag| image.dynamic_value(tag).is_some());
    by_itself || std::env::var_os("LD_AUDIT").is_some_and(|names| !names.is_empty())
}
