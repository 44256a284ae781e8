//! What people call a site: the first of its calls that is not part of an allocator.
//!
//! To add an allocator's wrapper that its name does not tell: its name in `WRAPPERS`, or what such
//! names begin with in `BEGINNINGS`.

use crate::code::names::demangled;
use crate::code::source::{NamedFrame, Source};
use crate::samples::address_space::Place;
use crate::samples::sites::{Site, SiteId, Sites};
use image::names::{CompiledFrame, Line};
use records::profile::{CodeAddress, SourceCall};
use std::collections::HashMap;

/// What names of functions begin with that map memory for their callers.
const MAPPING_BEGINNINGS: &[&str] =
    &["mmap", "mremap", "xmmap", "memmap2::", "<memmap2::", "std::", "<std::", "core::", "<core::"];

/// Functions that allocate for their callers and do not say so in their names.
const WRAPPERS: &[&str] = &[
    "memalign",
    "posix_memalign",
    "strdup",
    "__strdup",
    "strndup",
    "__strndup",
    "wcsdup",
    "asprintf",
    "vasprintf",
];

/// What names of such functions begin with.
const BEGINNINGS: &[&str] = &[
    "operator new",
    "xmemdup",
    "xstrdup",
    "xstrndup",
    "g_strdup",
    "g_strndup",
    "g_memdup",
    "PyMem_",
    "_PyMem_",
    "_PyObject_GC_",
    "_PyObject_New",
    "std::",
    "__gnu_cxx::",
    "alloc::",
    "<alloc::",
    "core::",
    "<core::",
    "<std::",
    "__rustc",
    "__rdl_",
    "hashbrown::",
    "<hashbrown::",
];

/// Where compilers and systems keep the sources of their libraries: what is inlined of them names
/// nothing of the program, and has not always its full name.
const LIBRARIES: &[&str] = &["/rustc/", "/usr/include/", "/usr/local/include/", "/usr/lib/"];

/// And of those that a build puts somewhere else.
const LIBRARY_PARTS: &[&str] =
    &["/library/alloc/src/", "/library/core/src/", "/library/std/src/", "/hashbrown-"];

fn is_allocator(function: &str) -> bool {
    // Templates and functions that return something: the name without its type.
    let name = function.rsplit_once(") ").map_or(function, |(_, name)| name);
    let name = match name.split_once(' ') {
        Some((before, behind)) if before != "operator" && behind.starts_with("std::") => behind,
        _ => name,
    };
    WRAPPERS.contains(&name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || says_that_it_allocates(&brief(name))
}

/// `xmalloc`, `PyObject_Realloc`, `ggc_internal_alloc`, `Arena::allocate`: each project has its
/// own. What else a function does that says so, its caller's line tells as well.
fn says_that_it_allocates(name: &str) -> bool {
    let own = name.rsplit("::").next().unwrap_or(name);
    let at = own.to_ascii_lowercase();
    at.match_indices("alloc").any(|(at_byte, _)| {
        // "deallocate" and "mallocator" are none.
        let rest = &at[at_byte + "alloc".len()..];
        !at[..at_byte].ends_with("de") && !rest.starts_with("ator")
    })
}

fn is_of_a_library(file: &str) -> bool {
    LIBRARIES.iter().any(|beginning| file.starts_with(beginning))
        || LIBRARY_PARTS.iter().any(|part| file.contains(part))
}

/// A function's name without its parameters and those of its templates.
fn brief(function: &str) -> String {
    const UNNAMED: &str = "(anonymous namespace)";
    let (mut text, mut depth) = (String::new(), 0_usize);
    for (at, letter) in function.char_indices() {
        let is_operator = function[..at].ends_with("operator") || function[..at].ends_with("operator<");
        match letter {
            '<' if !is_operator && at > 0 => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '(' if depth == 0 && at > 0 && !is_operator && !function[at..].starts_with(UNNAMED) => break,
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    text
}

/// A place as an address in its file, if it has one.
fn address(place: Place, sources: &HashMap<u32, Source<'_>>) -> Option<CodeAddress> {
    let source = sources.get(&place.what.0)?;
    let address = source.code.module.image.address_of(place.offset)?.0;
    Some(CodeAddress { module: source.file.path.clone(), address })
}

fn compiled(place: Place, sources: &HashMap<u32, Source<'_>>) -> Vec<SourceCall> {
    let known = || {
        let source = sources.get(&place.what.0)?;
        let address = source.code.module.image.address_of(place.offset)?;
        let mut frames = source.names.compiled_frames(address)?;
        // GCC leaves the linkage names of C++'s static functions to the symbols, which have
        // additions of the compiler's behind a point.
        let symbol = source.symbol(address).and_then(|symbol| symbol.split('.').next().map(str::to_owned));
        if let Some((own, symbol)) = frames.last_mut().zip(symbol.filter(|name| name.starts_with("_Z"))) {
            own.function = symbol;
        }
        Some(frames)
    };
    let call = |frame: CompiledFrame| SourceCall {
        function: frame.function,
        line_offset: frame.line_offset,
        column: frame.column,
        is_inlined: frame.is_inlined,
    };
    known().into_iter().flatten().map(call).collect()
}

/// One call of a path, as people know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Call {
    frame: NamedFrame,
    /// The name of the file that it is in.
    module: String,
    /// Where its function begins, if it has no name.
    start: Option<String>,
}

impl Call {
    fn text(&self) -> String {
        if let (None, Some(start)) = (&self.frame.function, &self.start) {
            return start.clone();
        }
        let function = self.frame.function.as_deref().map_or("?".to_owned(), brief);
        match &self.frame.line {
            Some(line) => format!("{function} ({}:{})", file_name(&line.file), line.line),
            None => format!("{function} ({})", self.module),
        }
    }

    fn is_wrapper(&self) -> bool {
        self.frame.function.as_deref().is_some_and(is_allocator)
            || self.frame.line.as_ref().is_some_and(|line| is_of_a_library(&line.file))
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Sites of one name: different paths may lead to one line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Group {
    /// As in "malloc in main (52)", with the file.
    pub(crate) name: String,
    pub(crate) function: Option<String>,
    pub(crate) line: Option<Line>,
    /// The smallest and the largest allocation.
    pub(crate) bytes: Option<(u64, u64)>,
    pub(crate) allocations: f64,
    pub(crate) squares: f64,
    pub(crate) records: u64,
    /// Paths of calls that lead there.
    pub(crate) paths: usize,
    pub(crate) most: f64,
    /// It maps memory itself.
    pub(crate) maps: bool,
}

/// The names of all sites.
pub(crate) struct SiteNames {
    pub(crate) groups: Vec<Group>,
    of: Vec<usize>,
    stacks: Vec<Vec<String>>,
    calls: Vec<Vec<CodeAddress>>,
    /// What compilers know of a place; none where debug information does not tell.
    compiled: HashMap<Place, Vec<SourceCall>>,
}

impl SiteNames {
    pub(crate) fn of(sites: &Sites, sources: &HashMap<u32, Source<'_>>) -> Self {
        let mut calls: HashMap<Place, Vec<Call>> = HashMap::new();
        let mut names = Self {
            groups: Vec::new(),
            of: Vec::new(),
            stacks: Vec::new(),
            calls: Vec::new(),
            compiled: HashMap::new(),
        };
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for (_, site) in sites.all() {
            let path: Vec<Call> = site
                .calls
                .iter()
                .flat_map(|&place| calls.entry(place).or_insert_with(|| calls_at(place, sources)).clone())
                .collect();
            let named = if site.maps { mapping_group(&path) } else { group(&path) };
            let number = *by_name.entry(named.name.clone()).or_insert_with(|| {
                names.groups.push(named);
                names.groups.len() - 1
            });
            names.groups[number].add(site);
            names.of.push(number);
            names.stacks.push(path.iter().map(Call::text).collect());
            let is_own = |place: &Place| calls[place].iter().any(|call| !call.is_wrapper());
            let own = site.calls.iter().position(is_own).unwrap_or(0);
            // Only allocations can be told apart by them.
            let own = if site.maps { 0 } else { own + 1 };
            let addresses = site.calls.iter().take(own).map(|&place| address(place, sources));
            names.calls.push(addresses.collect::<Option<Vec<_>>>().unwrap_or_default());
        }
        let compiled = calls.keys().map(|&place| (place, compiled(place, sources)));
        names.compiled = compiled.filter(|(_, calls)| !calls.is_empty()).collect();
        names
    }

    /// A site's calls as compilers find them again, the innermost first. Those of the allocating
    /// function itself are none of the program's.
    pub(crate) fn compiled(&self, site: &Site) -> Vec<SourceCall> {
        let all = site.calls.iter().filter_map(|place| self.compiled.get(place)).flatten();
        all.skip_while(|call| demangled(&call.function).starts_with("operator new")).cloned().collect()
    }

    /// The number of a site's group.
    pub(crate) fn group(&self, id: SiteId) -> usize {
        self.of[id.0 as usize]
    }

    /// The calls of a site, the innermost first.
    pub(crate) fn stack(&self, id: SiteId) -> &[String] {
        &self.stacks[id.0 as usize]
    }

    /// The calls from the allocating function's own to the site's; none if one is in no file.
    pub(crate) fn calls(&self, id: SiteId) -> &[CodeAddress] {
        &self.calls[id.0 as usize]
    }
}

impl Group {
    fn add(&mut self, site: &Site) {
        self.bytes = match (self.bytes, site.bytes) {
            (Some((a, b)), Some((x, y))) => Some((a.min(x), b.max(y))),
            (one, other) => one.or(other),
        };
        self.allocations += site.allocations;
        self.squares += site.squares;
        self.records += site.records;
        self.paths += 1;
        self.most += site.most;
    }
}

/// The calls at a place: more than one where functions were inlined.
fn calls_at(place: Place, sources: &HashMap<u32, Source<'_>>) -> Vec<Call> {
    let unnamed = |module: &str| vec![Call { module: module.to_owned(), ..Call::default() }];
    let Some(source) = sources.get(&place.what.0) else { return unnamed("code that no file has") };
    let module = file_name(&source.file.path);
    match source.code.module.image.address_of(place.offset) {
        Some(address) => source
            .frames(address)
            .into_iter()
            .map(|frame| {
                let start = frame.function.is_none().then(|| source.start(address));
                Call { frame, module: module.to_owned(), start }
            })
            .collect(),
        None => unnamed(module),
    }
}

fn group(path: &[Call]) -> Group {
    let first = path.iter().position(|call| !call.is_wrapper()).unwrap_or(0);
    named_by(path, first, "malloc")
}

/// An allocator that maps its arena is named itself: which allocation needed a new one is chance.
fn mapping_group(path: &[Call]) -> Group {
    let maps = |call: &Call| {
        let name = call.frame.function.as_deref().unwrap_or_default();
        MAPPING_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
    };
    let first = path.iter().position(|call| !maps(call)).unwrap_or(0);
    Group { maps: true, ..named_by(path, first, "mmap") }
}

/// A group by its own call, and by the wrapper before that, or what the wrapper would be.
fn named_by(path: &[Call], first: usize, otherwise: &str) -> Group {
    let by = first.checked_sub(1).and_then(|wrapper| path[wrapper].frame.function.as_deref());
    let by = by.map_or(otherwise.to_owned(), brief);
    let own = path.get(first).cloned().unwrap_or_default();
    let name = format!("{by} in {}", own.text());
    Group { name, function: own.frame.function, line: own.frame.line, ..Group::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::MappedId;
    use units::FileOffset;

    fn call(function: &str, line: u32) -> Call {
        let line = Some(Line { file: "/src/graph.c".to_owned(), line });
        let frame = NamedFrame { function: Some(function.to_owned()), line };
        Call { frame, module: "p".to_owned(), start: None }
    }

    #[test]
    fn wrappers_are_passed_over() {
        let path = [call("xmalloc", 3), call("read_graph", 52), call("main", 90)];
        let named = group(&path);
        assert_eq!(named.name, "xmalloc in read_graph (graph.c:52)");
        assert_eq!((named.function.as_deref(), named.line.unwrap().line), (Some("read_graph"), 52));
        assert_eq!(group(&path[1..]).name, "malloc in read_graph (graph.c:52)");
        assert_eq!(group(&path[..1]).name, "malloc in xmalloc (graph.c:3)", "there is nothing else");
        assert_eq!(mapping_group(&path).name, "mmap in xmalloc (graph.c:3)", "an allocator's arena");
        assert_eq!(group(&calls_at(UNKNOWN, &HashMap::new())).name, "malloc in ? (code that no file has)");
    }

    #[test]
    fn what_is_inlined_of_a_library_is_passed_over() {
        let mut inlined = call("spec_from_elem<u64>", 12);
        inlined.frame.line.as_mut().unwrap().file = "/rustc/90b3/library/alloc/src/vec/mod.rs".to_owned();
        let mut list = call("_M_allocate", 12);
        list.frame.line.as_mut().unwrap().file = "/usr/include/c++/12/bits/stl_vector.h".to_owned();
        let named = group(&[list, inlined, call("build", 7), call("main", 9)]);
        assert_eq!(named.name, "spec_from_elem in build (graph.c:7)");
    }

    const UNKNOWN: Place = Place { what: MappedId(0), offset: FileOffset(0) };

    #[test]
    fn names_of_allocators_are_known() {
        for name in [
            "malloc",
            "operator new(unsigned long)",
            "operator new[](unsigned long)",
            "std::vector<int, std::allocator<int> >::reserve(unsigned long)",
            "void std::vector<int>::_M_realloc_insert<int>(int&&)",
            "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
            "alloc::alloc::exchange_malloc",
            "<alloc::vec::Vec<T,A> as core::clone::Clone>::clone",
            "PyMem_RawMalloc",
            "g_malloc0_n",
            "xmalloc",
            "_PyObject_Malloc",
            "ggc_internal_alloc(unsigned long)",
            "sqlite3DbMallocRawNN",
            "Arena::allocate(unsigned long)",
            "pool_alloc<Node>",
        ] {
            assert!(is_allocator(name), "{name}");
        }
        for name in [
            "main",
            "mallocator",
            "deallocate",
            "build<std::vector<int> >(int)",
            "build(Allocation)",
            "stdio_open",
            "operator+(A, B)",
        ] {
            assert!(!is_allocator(name), "{name}");
        }
    }

    #[test]
    fn templates_are_left_out_of_names() {
        assert_eq!(
            brief("std::vector<int, std::allocator<int> >::reserve(unsigned long)"),
            "std::vector::reserve"
        );
        assert_eq!(brief("operator new(unsigned long)"), "operator new");
        assert_eq!(brief("main"), "main");
        assert_eq!(
            brief("v8::internal::(anonymous namespace)::ConstructBuffer(v8::internal::Isolate*)"),
            "v8::internal::(anonymous namespace)::ConstructBuffer"
        );
        assert_eq!(brief("core::fmt::Formatter::pad"), "core::fmt::Formatter::pad");
    }
}
