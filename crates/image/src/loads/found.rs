//! Definitions that were found in a unit, kept for as long as it is looked at.

use super::place::Place;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// What a place may have been given last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaching {
    /// By these instructions, ascending.
    pub definitions: Vec<u32>,
    /// From outside the region.
    pub from_outside: bool,
}

/// A place, the header of the loop around, and a block.
type Start = (Place, Option<u32>, u32);

/// For each place, the instructions that change it, ascending: found in one go, since a large
/// function has thousands of places. Most instructions change registers, which need no hashing.
#[derive(Default)]
pub(super) struct Definers {
    pub general: [Vec<u32>; 16],
    pub others: HashMap<Place, Vec<u32>>,
}

/// What was found so far.
#[derive(Default)]
pub struct Found {
    pub(super) definers: OnceCell<Definers>,
    pub(super) at_starts: RefCell<HashMap<Start, Rc<Reaching>>>,
}
