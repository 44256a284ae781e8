//! What class a load is of: by what its address hangs on in the innermost loop around it.

use super::place::Place;
use super::reaching::Region;
use super::sources::Sources;
use super::unit::Unit;
use std::collections::{BTreeSet, HashMap};
use units::load::LoadClass;

pub struct Classes<'a> {
    unit: &'a Unit,
    /// The unit calls itself: what it is given hangs on what it loaded.
    calls_itself: bool,
    /// By instruction and loop (its header's block): what the load's base and index hang on.
    known: HashMap<(u32, u32), (Sources, Sources)>,
}

/// In no loop: the region is the whole unit.
const NO_LOOP: u32 = u32::MAX;

impl<'a> Classes<'a> {
    pub fn new(unit: &'a Unit, calls_itself: bool) -> Self {
        Self { unit, calls_itself, known: HashMap::new() }
    }

    /// `None` for loads in no loop whose address nobody loaded, as far as can be told.
    pub fn of(&mut self, at: u32) -> Option<LoadClass> {
        let block = self.unit.cfg.block_of(at as usize);
        let region = self.unit.loops.around(block).map_or(NO_LOOP, |around| around.header);
        let (base, index) = self.sources(at, region);
        if region == NO_LOOP {
            let loaded = !base.loads.is_empty() || !index.loads.is_empty();
            if self.calls_itself && base.outside && !base.mixed {
                return Some(LoadClass::Pointed);
            }
            let from_label = self.unit.has_labels && (base.outside || index.outside);
            return (loaded || from_label).then_some(LoadClass::Loose);
        }
        if base.loads.iter().chain(&index.loads).any(|&load| self.feeds_itself(load, region)) {
            return Some(LoadClass::Chased);
        }
        Some(if base.mixed || index.mixed {
            LoadClass::Scattered
        } else if !index.loads.is_empty() {
            LoadClass::Gathered
        } else if !base.loads.is_empty() {
            if base.outside || base.steps { LoadClass::Gathered } else { LoadClass::Pointed }
        } else if base.unknown || index.unknown {
            LoadClass::Unknown
        } else if base.steps || index.steps {
            LoadClass::Strided
        } else {
            LoadClass::Fixed
        })
    }

    /// Whether the value of a load gets into its own address, directly or by other loads.
    fn feeds_itself(&mut self, load: u32, region: u32) -> bool {
        self.hangs_on(load, region).contains(&load)
    }

    /// The loads whose values get into the address of one, directly or by other loads.
    fn hangs_on(&mut self, load: u32, region: u32) -> BTreeSet<u32> {
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        let mut work = vec![load];
        while let Some(at) = work.pop() {
            let (base, index) = self.sources(at, region);
            work.extend(base.loads.into_iter().chain(index.loads).filter(|&next| seen.insert(next)));
        }
        seen
    }

    /// The first of the circle of loads that a load is one of, each of which waits for the one
    /// before; itself if it is part of none.
    pub fn circle(&mut self, at: u32) -> u32 {
        let block = self.unit.cfg.block_of(at as usize);
        let region = self.unit.loops.around(block).map_or(NO_LOOP, |around| around.header);
        let on = self.hangs_on(at, region);
        on.into_iter().find(|&other| self.hangs_on(other, region).contains(&at)).unwrap_or(at)
    }

    fn sources(&mut self, at: u32, region: u32) -> (Sources, Sources) {
        if let Some(known) = self.known.get(&(at, region)) {
            return known.clone();
        }
        let found = self.find(at, region);
        self.known.insert((at, region), found.clone());
        found
    }

    fn find(&self, at: u32, region: u32) -> (Sources, Sources) {
        let unit = self.unit;
        let around = unit.loops.all.iter().find(|l| l.header == region);
        let within = Region { unit, around };
        let instruction = &unit.instructions[at as usize];
        let of = |register| {
            Place::of(register)
                .map_or_else(|| Sources { outside: true, ..Sources::default() }, |place| within.of(place, at))
        };
        let (mut base, mut index) = (of(instruction.memory_base()), of(instruction.memory_index()));
        // In `[rax + rbx]` either may be the pointer: the one that does not change is.
        if instruction.memory_index_scale() == 1 && base.steps && index.outside && index.loads.is_empty() {
            std::mem::swap(&mut base, &mut index);
        }
        (base, index)
    }
}
