//! Which variable, allocation or area an address lies in.

use crate::code::names::demangled;
use crate::data::site_names::SiteNames;
use crate::samples::address_space::AddressSpace;
use crate::samples::heap::{self, Near};
use crate::samples::sites::SiteId;
use crate::samples::tally::{Kept, Mapped, Tally};
use image::Image;
use image::elf::data_symbols::DataSymbols;
use std::collections::HashMap;
use units::{Avma, Svma};

/// An object: what data an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Object {
    pub name: String,
    /// Where it is known.
    pub bytes: Option<u64>,
    /// Objects of one name that are different ones: areas by their start.
    pub which: u64,
    /// Of allocations, the number of their group of sites.
    pub group: Option<usize>,
}

/// What is known of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A variable or an area.
    Object(Object),
    /// An allocation of a kind of which all are known, and the calls that made it, where these are.
    Allocation(Object, Option<SiteId>),
    /// An allocation on a page that was chosen, and stands for others.
    OneOfMany(Object, SiteId),
    /// In this area, on a page that was not chosen: there may be any allocation.
    NotChosen(Option<Object>),
    Nothing,
}

/// What a module says of its variables.
pub(crate) struct Variables<'d> {
    image: &'d Image<'d>,
    symbols: DataSymbols<'d>,
    name: String,
}

impl<'d> Variables<'d> {
    /// `name` is the module's file name.
    pub(crate) fn of(image: &'d Image<'d>, debug: Option<&Image<'d>>, name: &str) -> Self {
        Self { image, symbols: DataSymbols::of(image, debug), name: name.to_owned() }
    }
}

/// The objects of all processes, as far as mappings and symbols tell.
pub(crate) struct Objects<'t, 'd> {
    pub(crate) tally: &'t Tally,
    /// By the number of their mapped file.
    variables: HashMap<u32, Variables<'d>>,
    pub(crate) sites: SiteNames,
}

/// A thread's stack is no larger than this above and below where its stack pointer is.
const NEAR_STACK_POINTER: u64 = 1 << 20;

impl<'t, 'd> Objects<'t, 'd> {
    pub(crate) fn of(tally: &'t Tally, variables: HashMap<u32, Variables<'d>>, sites: SiteNames) -> Self {
        Self { tally, variables, sites }
    }

    /// What holds the address that a sample's load read.
    pub(crate) fn found(&self, kept: &Kept, address: Avma) -> Found {
        const RSP: usize = 4;
        let sample = &kept.sample;
        let stack_pointer = sample.registers.map_or(0, |registers| registers.general[RSP]);
        // A stack may lie in memory that is allocated.
        let holder = heap::holder(&kept.near, address.0)
            .filter(|near| heap::holder(&kept.near, stack_pointer).is_none_or(|stack| stack != *near));
        // A runtime maps its heap itself, and may give parts of it back for allocations.
        if holder.is_none_or(Near::is_area)
            && let Some(object) = self.runtime_heap(sample.process, address)
        {
            return Found::Object(object);
        }
        if let Some(near) = holder {
            let object = self.allocation(near.site());
            let path = near.site();
            // An allocator's arena.
            let heaps = &self.tally.heaps;
            if near.is_area()
                && heaps.had_small(sample.process, near.start(), near.end())
                && heaps.is_unknown(sample.process, address.0, sample.time_ns)
            {
                return Found::NotChosen(Some(object));
            }
            return if near.stands_for_others() {
                Found::OneOfMany(object, path)
            } else {
                Found::Allocation(object, Some(path))
            };
        }
        let object = self.at(sample.process, address, stack_pointer);
        let heap = object.as_ref().and_then(|object| object.heap);
        // What a program maps itself holds no allocations.
        let heap = heap.filter(|(start, end)| !self.tally.heaps.has_no_small(sample.process, start.0, end.0));
        let object = object.map(|found| found.object);
        if let Some((start, end)) = heap
            && self.tally.heaps.is_unknown(sample.process, address.0, sample.time_ns)
        {
            let beside = self.only_maker_beside(sample.process, address.0, start.0, end.0);
            return beside.map_or(Found::NotChosen(object), |(maker, path)| {
                Found::Allocation(self.allocation(maker), path)
            });
        }
        object.map_or(Found::Nothing, Found::Object)
    }

    /// The heap of a runtime that holds an address.
    fn runtime_heap(&self, process: u32, address: Avma) -> Option<Object> {
        let heap = self.tally.processes.get(&process)?.runtime_heap.as_ref()?;
        heap.end_of(address.0)?;
        Some(Object { name: heap.name().to_owned(), bytes: None, which: 0, group: None })
    }

    /// The site of the small allocations on both sides of an address, if it is one; and the path
    /// that led there, if there is no other: single records of one path say nothing of what lies
    /// between them.
    fn only_maker_beside(
        &self,
        process: u32,
        address: u64,
        start: u64,
        end: u64,
    ) -> Option<(SiteId, Option<SiteId>)> {
        let mut makers = self.tally.heaps.small(process)?.beside(address, start, end)?;
        let first = makers.next()?;
        let group = self.sites.group(first);
        let has_one = self.sites.groups[group].paths == 1;
        makers.all(|other| self.sites.group(other) == group).then_some((first, has_one.then_some(first)))
    }

    fn allocation(&self, site: SiteId) -> Object {
        let group = self.sites.group(site);
        let name = self.sites.groups[group].name.clone();
        Object { name, bytes: None, which: 0, group: Some(group) }
    }

    /// The object that holds `address` in a process, for a thread whose stack pointer this is.
    fn at(&self, process: u32, address: Avma, stack_pointer: u64) -> Option<Placed> {
        let space = &self.tally.processes.get(&process)?.space;
        if let Some(variable) = self.variable(space, address) {
            return Some(Placed::variable(variable));
        }
        let mapping = space.at(address);
        let mapped = mapping.map(|mapping| (mapping, self.tally.mapped(mapping.what)));
        let is_stack = mapped.is_some_and(|(_, mapped)| mapped.name.starts_with(b"[stack"));
        let is_near = address.0.abs_diff(stack_pointer) < NEAR_STACK_POINTER;
        if is_stack && !is_near && stack_pointer != 0 {
            let name = "stack of main".to_owned();
            return Some(Placed::variable(Object { name, bytes: None, which: 0, group: None }));
        }
        if is_stack || is_near {
            let name = "stack".to_owned();
            return Some(Placed::variable(Object { name, bytes: None, which: 0, group: None }));
        }
        let (mapping, mapped) = mapped?;
        let is_heap = matches!(&mapped.name[..], b"[heap]" | b"//anon" | b"");
        let heap = is_heap.then_some((mapping.start, mapping.end));
        Some(Placed { object: area(mapped, mapping.end.0 - mapping.start.0), heap })
    }

    /// The variable there, if the address lies in a module's memory.
    fn variable(&self, space: &AddressSpace, address: Avma) -> Option<Object> {
        for mapping in space.all() {
            let Some(module) = self.variables.get(&mapping.what.0) else { continue };
            let Some(stated) = module.image.address_of(mapping.offset) else { continue };
            let bias = mapping.start.0.wrapping_sub(stated.0);
            let (low, high) = module.image.span();
            let at = address.0.wrapping_sub(bias);
            if at < low || at >= high {
                continue;
            }
            if let Some(symbol) = module.symbols.at(Svma(at)) {
                let name = demangled(&String::from_utf8_lossy(symbol.name));
                return Some(Object {
                    name: format!("{name} ({})", module.name),
                    bytes: Some(symbol.size),
                    which: symbol.address.0,
                    group: None,
                });
            }
            return Some(Object {
                name: format!("data of {}", module.name),
                bytes: None,
                which: 0,
                group: None,
            });
        }
        None
    }
}

/// An object by symbols and mappings.
struct Placed {
    object: Object,
    /// From where to where it lies, if it is memory that allocators may hand out.
    heap: Option<(Avma, Avma)>,
}

impl Placed {
    fn variable(object: Object) -> Self {
        Self { object, heap: None }
    }
}

fn area(mapped: &Mapped, bytes: u64) -> Object {
    let name = String::from_utf8_lossy(&mapped.name).into_owned();
    let start = mapped.area.map_or(0, |area| area.start);
    match &*name {
        "[heap]" => Object { name: "heap (brk)".to_owned(), bytes: None, which: 0, group: None },
        "//anon" | "" => Object {
            name: "anonymous memory (mmap)".to_owned(),
            bytes: Some(bytes),
            which: start,
            group: None,
        },
        // What the preloaded library tells the profiler: `heap::layout::MEMORY_NAME`.
        _ if name.starts_with("/memfd:gleaner-heap") => Object {
            name: "records of the profiler itself".to_owned(),
            bytes: Some(bytes),
            which: 0,
            group: None,
        },
        // What the kernel calls memory that a process shares with those that it makes.
        "/dev/zero (deleted)" => Object {
            name: "shared memory (mmap)".to_owned(),
            bytes: Some(bytes),
            which: mapped.inode,
            group: None,
        },
        _ => Object { name: format!("file {name}"), bytes: Some(bytes), which: 0, group: None },
    }
}
