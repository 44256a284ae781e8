//! Functions that may run before the runtime has given its thread an area: a primary yields in none
//! of them.
//!
//! The loader asks resolvers of indirect functions while it relocates, before any constructor has
//! run. A main program's own constructors run after those of preloaded libraries, a library's may
//! run before. And libraries call a main program's functions where it has its own `malloc` or
//! `getenv`: those are exported, and nothing else most often is. A library's functions can be
//! called by constructors of others, which is for the launcher to exclude.

use image::Module;
use image::elf::abi;
use image::elf::imports::Import;
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
    found.extend(taking_the_place_of_a_library(module));
    let relocations = &module.relocations;
    found.extend(relocations.iter().filter(|r| r.kind == abi::R_X86_64_IRELATIVE).map(|r| Svma(r.addend)));
    let mut array = |at: u64, size: u64| {
        let (Some(at), Some(size)) = (image.dynamic_value(at), image.dynamic_value(size)) else { return };
        // No more of them than the file has, whatever the header says.
        let words = image.bytes_from(Svma(at)).unwrap_or(&[]).chunks_exact(8).take((size / 8) as usize);
        found.extend(words.filter_map(|word| image::elf::bytes::u64_at(word, 0)).map(Svma));
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

/// Exported functions of a program that libraries may call before anything else runs. A program
/// that exports most of what it has does so for its plugins; then only well-known names count.
fn taking_the_place_of_a_library(module: &Module<'_>) -> Vec<Svma> {
    const MANY: usize = 4;
    const NAMES: &[&[u8]] = &[
        b"malloc",
        b"calloc",
        b"realloc",
        b"free",
        b"cfree",
        b"memalign",
        b"aligned_alloc",
        b"posix_memalign",
        b"valloc",
        b"pvalloc",
        b"reallocarray",
        b"malloc_usable_size",
        b"getenv",
        b"secure_getenv",
        b"setenv",
        b"unsetenv",
        b"putenv",
        b"clearenv",
        b"sbrk",
        b"brk",
        b"mmap",
        b"munmap",
        b"open",
        b"close",
        b"read",
        b"write",
        b"sigaction",
        b"signal",
        b"atexit",
        b"pthread_create",
        b"pthread_once",
        b"dlopen",
        b"dlsym",
        b"clock_gettime",
        b"gettimeofday",
        b"getpagesize",
        b"sysconf",
        b"abort",
        b"exit",
    ];
    let exported: Vec<(Svma, &[u8])> = module
        .symbols
        .all()
        .iter()
        .filter(|symbol| symbol.is_function && symbol.is_exported)
        .map(|symbol| (symbol.address, symbol.name))
        .collect();
    let is_program = module.image.segments().iter().any(|segment| segment.kind == abi::PT_INTERP);
    let few = is_program && exported.len() * MANY < module.units.len();
    let known = |name: &[u8]| {
        // Besides: the operators new and delete, and plain functions of memory and strings.
        NAMES.contains(&name)
            || [&b"_Zn"[..], b"_Zd", b"mem", b"str", b"wmem", b"wcs", b"_dl_", b"__"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
    };
    exported.into_iter().filter(|(_, name)| few || known(name)).map(|(address, _)| address).collect()
}

/// Functions of this name in the module itself: a call of them by way of the linkage table comes
/// back, most often.
fn defined<'a>(module: &'a Module<'_>, name: &'a [u8]) -> impl Iterator<Item = Svma> + 'a {
    let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    module.symbols.all().iter().filter(move |symbol| symbol.name == name).map(|symbol| symbol.address)
}
