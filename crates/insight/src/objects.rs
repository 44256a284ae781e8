//! Which variable or area an address lies in.

use crate::address_space::AddressSpace;
use crate::names::demangled;
use crate::tally::{Mapped, Tally};
use image::Image;
use image::elf::data_symbols::DataSymbols;
use std::collections::HashMap;
use units::{Avma, Svma};

/// An object: what data an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    pub name: String,
    /// Where it is known.
    pub bytes: Option<u64>,
    /// Objects of one name that are different ones: areas by their start.
    pub which: u64,
}

/// What a module says of its variables.
pub struct Variables<'d> {
    image: &'d Image<'d>,
    symbols: DataSymbols<'d>,
    name: String,
}

impl<'d> Variables<'d> {
    /// `name` is the module's file name.
    pub fn of(image: &'d Image<'d>, debug: Option<&Image<'d>>, name: &str) -> Self {
        Self { image, symbols: DataSymbols::of(image, debug), name: name.to_owned() }
    }
}

/// The objects of all processes, as far as mappings and symbols tell.
pub struct Objects<'t, 'd> {
    tally: &'t Tally,
    /// By the number of their mapped file.
    variables: HashMap<u32, Variables<'d>>,
}

/// A thread's stack is no larger than this above and below where its stack pointer is.
const NEAR_STACK_POINTER: u64 = 1 << 20;

impl<'t, 'd> Objects<'t, 'd> {
    pub fn of(tally: &'t Tally, variables: HashMap<u32, Variables<'d>>) -> Self {
        Self { tally, variables }
    }

    /// The object that holds `address` in a process, for a thread whose stack pointer this is.
    pub fn at(&self, process: u32, address: Avma, stack_pointer: u64) -> Option<Object> {
        let space = &self.tally.processes.get(&process)?.space;
        if let Some(variable) = self.variable(space, address) {
            return Some(variable);
        }
        let mapping = space.at(address);
        let mapped = mapping.map(|mapping| (mapping, self.tally.mapped(mapping.what)));
        let is_stack = mapped.is_some_and(|(_, mapped)| mapped.name.starts_with(b"[stack"));
        if is_stack || address.0.abs_diff(stack_pointer) < NEAR_STACK_POINTER {
            return Some(Object { name: "stack".to_owned(), bytes: None, which: 0 });
        }
        let (mapping, mapped) = mapped?;
        Some(area(mapped, mapping.end.0 - mapping.start.0))
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
                });
            }
            return Some(Object { name: format!("data of {}", module.name), bytes: None, which: 0 });
        }
        None
    }
}

fn area(mapped: &Mapped, bytes: u64) -> Object {
    let name = String::from_utf8_lossy(&mapped.name).into_owned();
    let start = mapped.area.map_or(0, |area| area.start);
    match &*name {
        "[heap]" => Object { name: "heap (brk)".to_owned(), bytes: None, which: 0 },
        "//anon" | "" => {
            Object { name: "anonymous memory (mmap)".to_owned(), bytes: Some(bytes), which: start }
        }
        _ => Object { name: format!("file {name}"), bytes: Some(bytes), which: 0 },
    }
}
