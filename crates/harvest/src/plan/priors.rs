//! How often a load misses: what is assumed of its class, as long as no profile of the program is
//! there.
//!
//! What profiles saw goes before it: `profiled.rs`.

use super::subject::{Candidate, Subject};
use records::plan::{LoadClass, Origin};
use units::Estimate;

/// Where probabilities come from.
pub trait MissRates {
    /// How often this load of a file misses, and how that is known.
    fn rate(&self, subject: &Subject, candidate: &Candidate) -> (Estimate, Origin);
}

/// A loop of so few instructions does nothing but chase: programs hardly spend time there where it
/// hits. Those that do (hash chains of a compressor, lists of an allocator) have yields there that
/// are switched off where they do not pay.
const TIGHT: u32 = 8;

/// What is assumed of a class. The intervals hold for any program: a chase through a small list
/// never misses, one through a large list always.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priors;

impl MissRates for Priors {
    fn rate(&self, _: &Subject, candidate: &Candidate) -> (Estimate, Origin) {
        let tight = candidate.loop_size.is_some_and(|size| size <= TIGHT);
        let (value, lo, hi) = match candidate.class {
            LoadClass::Chased if tight => (0.70, 0.0, 1.0),
            LoadClass::Chased => (0.50, 0.0, 1.0),
            LoadClass::Gathered | LoadClass::Scattered => (0.30, 0.0, 1.0),
            LoadClass::Pointed => (0.20, 0.0, 1.0),
            LoadClass::Loose => (0.05, 0.0, 1.0),
            LoadClass::Unknown => (0.03, 0.0, 1.0),
            LoadClass::Strided => (0.01, 0.0, 0.125), // a line serves eight words, and prefetchers run ahead
            LoadClass::Fixed => (0.001, 0.0, 0.1),
        };
        (Estimate::new(value, lo, hi), Origin::Prior)
    }
}
