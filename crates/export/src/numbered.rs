//! Tables of formats that name things by their places in them.

use std::collections::HashMap;
use std::hash::Hash;

/// Things by the order in which they were first met.
pub(crate) struct Numbered<T> {
    numbers: HashMap<T, u64>,
    pub in_order: Vec<T>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    pub(crate) fn new() -> Self {
        Self { numbers: HashMap::new(), in_order: Vec::new() }
    }

    /// Counts from 0.
    pub(crate) fn number(&mut self, thing: T) -> u64 {
        let next = self.in_order.len() as u64;
        let number = *self.numbers.entry(thing.clone()).or_insert(next);
        if number == next {
            self.in_order.push(thing);
        }
        number
    }
}
