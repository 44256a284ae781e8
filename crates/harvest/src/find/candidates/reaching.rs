//! Which definitions of a place may be the last ones before an instruction. Asked again and again
//! of the same places, so what was found is kept for as long as the unit is looked at.

use super::unit::{Place, Unit};
use image::flow::loops::Loop;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The region in which definitions count: the blocks of a loop, or of the whole unit.
#[derive(Clone, Copy)]
pub(super) struct Region<'a> {
    pub unit: &'a Unit,
    pub around: Option<&'a Loop>,
}

/// What a place may have been given last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reaching {
    /// By these instructions, ascending.
    pub definitions: Vec<u32>,
    /// By code outside the region.
    pub from_outside: bool,
}

/// A place, the header of the loop around, and a block.
type Start = (Place, Option<u32>, u32);

/// What was found so far.
#[derive(Default)]
pub(super) struct Found {
    definers: OnceCell<HashMap<Place, Vec<u32>>>,
    at_starts: RefCell<HashMap<Start, Rc<Reaching>>>,
}

impl Region<'_> {
    /// What reaches an instruction, not counting itself.
    pub(super) fn reaching(&self, place: Place, before: u32) -> Rc<Reaching> {
        let definers = self.definers(place);
        let block = self.unit.cfg.block_of(before as usize) as u32;
        let first = self.unit.cfg.blocks[block as usize].first;
        if let Some(at) = last(definers, first, before) {
            return Rc::new(Reaching { definitions: vec![at], from_outside: false });
        }
        let key = (place, self.around.map(|around| around.header), block);
        let known = self.unit.found.at_starts.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = Rc::new(self.at_start(definers, block));
            self.unit.found.at_starts.borrow_mut().insert(key, Rc::clone(&found));
            found
        })
    }

    fn at_start(&self, definers: &[u32], start: u32) -> Reaching {
        let cfg = &self.unit.cfg;
        let mut found = BTreeSet::new();
        let mut from_outside = false;
        let mut seen = vec![false; cfg.blocks.len()];
        // Those of which the place comes through to where it is asked for.
        let mut open = vec![start];
        while let Some(block) = open.pop() {
            from_outside |= cfg.blocks[block as usize].is_root;
            for edge in cfg.edges_to(block as usize) {
                let before = edge.from as usize;
                if !self.around.is_none_or(|around| around.holds(edge.from)) {
                    from_outside = true;
                } else if !std::mem::replace(&mut seen[before], true) {
                    let bounds = cfg.blocks[before];
                    if let Some(at) = last(definers, bounds.first, bounds.end) {
                        found.insert(at);
                    } else {
                        open.push(edge.from);
                    }
                }
            }
        }
        Reaching { definitions: found.into_iter().collect(), from_outside }
    }

    fn definers(&self, place: Place) -> &[u32] {
        let unit = self.unit;
        unit.found.definers.get_or_init(|| definers(unit)).get(&place).map_or(&[], Vec::as_slice)
    }
}

/// For each place, the instructions that change it, ascending: found in one go, since a large
/// function has thousands of places.
fn definers(unit: &Unit) -> HashMap<Place, Vec<u32>> {
    let mut all: HashMap<Place, Vec<u32>> = HashMap::new();
    for at in 0..unit.instructions.len() as u32 {
        unit.defined_by(at, |place| all.entry(place).or_default().push(at));
    }
    all
}

/// The last one from `first` on and before `end`.
fn last(definers: &[u32], first: u32, end: u32) -> Option<u32> {
    let before = definers.partition_point(|&at| at < end);
    definers[..before].last().copied().filter(|&at| at >= first)
}
