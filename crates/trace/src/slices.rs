//! The run in slices of a number of accesses: what memory moved in each, and which functions it
//! was in. Slices get their times once it is over, by how long each function takes in all.

use caches::Traffic;
use std::collections::HashMap;

/// With more than this, two become one.
const MOST: usize = 4096;
const ACCESSES: u64 = 1 << 16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// Accesses by function.
    pub accesses: HashMap<u32, u64>,
    /// Lines from memory by function.
    pub lines: HashMap<u32, u64>,
    /// By last level.
    pub traffic: Vec<Traffic>,
}

pub(crate) struct Slices {
    done: Vec<Slice>,
    current: Slice,
    counted: u64,
    length: u64,
    before: Vec<Traffic>,
    /// Of the current slice, by function.
    accesses: Vec<u64>,
    lines: Vec<u64>,
    touched: Vec<u32>,
}

impl Slices {
    pub(crate) fn new(functions: usize) -> Self {
        Self {
            done: Vec::new(),
            current: Slice::default(),
            counted: 0,
            length: ACCESSES,
            before: Vec::new(),
            accesses: vec![0; functions],
            lines: vec![0; functions],
            touched: Vec::new(),
        }
    }

    /// Counts accesses of a function; whether the slice is full.
    #[inline]
    pub(crate) fn count(&mut self, function: u32, accesses: u64, lines: u64) -> bool {
        let counted = &mut self.accesses[function as usize];
        if *counted == 0 {
            self.touched.push(function);
        }
        *counted += accesses;
        self.lines[function as usize] += lines;
        self.counted += accesses;
        self.counted >= self.length
    }

    /// Ends the slice.
    pub(crate) fn end(&mut self, traffic: &[Traffic]) {
        self.before.resize(traffic.len(), Traffic::default());
        for function in self.touched.drain(..) {
            let accesses = std::mem::take(&mut self.accesses[function as usize]);
            let lines = std::mem::take(&mut self.lines[function as usize]);
            self.current.accesses.insert(function, accesses);
            if lines > 0 {
                self.current.lines.insert(function, lines);
            }
        }
        self.current.traffic =
            traffic.iter().zip(&self.before).map(|(now, before)| now.since(before)).collect();
        self.before = traffic.to_vec();
        self.done.push(std::mem::take(&mut self.current));
        self.counted = 0;
        if self.done.len() >= MOST {
            let halves = self.done.chunks(2).map(|pair| pair.iter().fold(Slice::default(), Slice::and));
            self.done = halves.collect();
            self.length *= 2;
        }
    }

    pub(crate) fn finish(mut self, traffic: &[Traffic]) -> Vec<Slice> {
        if self.counted > 0 {
            self.end(traffic);
        }
        self.done
    }
}

impl Slice {
    fn and(mut self, other: &Self) -> Self {
        for (&function, &count) in &other.accesses {
            *self.accesses.entry(function).or_default() += count;
        }
        for (&function, &count) in &other.lines {
            *self.lines.entry(function).or_default() += count;
        }
        self.traffic.resize(other.traffic.len().max(self.traffic.len()), Traffic::default());
        for (own, other) in self.traffic.iter_mut().zip(&other.traffic) {
            own.read += other.read;
            own.written += other.written;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_add_up_however_often_they_are_joined() {
        let mut slices = Slices::new(2);
        let mut traffic = Traffic::default();
        let rounds = 3 * MOST as u64 * ACCESSES / 1000;
        for round in 0..rounds {
            traffic.read += 64;
            if slices.count((round % 2) as u32, 1000, 1) {
                slices.end(&[traffic]);
            }
        }
        let done = slices.finish(&[traffic]);
        assert!(done.len() < MOST, "{}", done.len());
        assert_eq!(done.iter().map(|slice| slice.traffic[0].read).sum::<u64>(), 64 * rounds);
        assert_eq!(done.iter().map(|slice| slice.lines[&1]).sum::<u64>(), rounds / 2);
        let accesses: u64 = done.iter().flat_map(|slice| slice.accesses.values()).sum();
        assert_eq!(accesses, 1000 * rounds);
    }
}
