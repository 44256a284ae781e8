//! Loads and stores that the hardware sampled, counted by the place of their instruction.
//!
//! A clock's sample lands *behind* the load that the core waits for and shows stall. A hardware
//! sample *is* a load: it has the load's own instruction, its address, how long it took and what
//! served it. So these samples are counted apart from a clock's, and become other figures.
//!
//! Each sample stands for as many accesses as its period says. Of each place some samples are kept
//! whole, chosen evenly over the run.

use crate::samples::address_space::Place;
use crate::samples::heap::AllNear;
use records::profile::Level;
use std::collections::{BTreeMap, HashMap};
use units::random::Xorshift;
use units::{Avma, Estimate};

/// One load or store that the hardware sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub process: u32,
    pub thread: u32,
    /// On the clock of the samples, in nanoseconds.
    pub time_ns: u64,
    /// Of the load or store itself.
    pub ip: Avma,
    pub in_kernel: bool,
    /// The address of its data, where it is told.
    pub address: Option<Avma>,
    pub kind: AccessKind,
    /// Cycles; what they are the backend says. `None` where none was measured.
    pub latency: Option<u32>,
    pub level: Level,
    pub translation: Translation,
    pub is_locked: bool,
    /// How many accesses this sample stands for.
    pub period: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Load,
    Store,
    /// One instruction that does both.
    Both,
}

/// How an address was translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// By a TLB of any level.
    Tlb,
    /// By a walk of the page tables.
    Walk,
    Unknown,
}

/// A sum of weighted figures, as far as a mean and its error need it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighted {
    pub samples: u64,
    weights: f64,
    weights_squared: f64,
    sum: f64,
    /// Of the squares of `weight * value`.
    parts_squared: f64,
    /// Of `weight² * value`.
    squared_sum: f64,
}

impl Weighted {
    fn add(&mut self, weight: f64, value: f64) {
        self.samples += 1;
        self.weights += weight;
        self.weights_squared += weight * weight;
        self.sum += weight * value;
        self.parts_squared += (weight * value).powi(2);
        self.squared_sum += weight * weight * value;
    }

    fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.weights += other.weights;
        self.weights_squared += other.weights_squared;
        self.sum += other.sum;
        self.parts_squared += other.parts_squared;
        self.squared_sum += other.squared_sum;
    }

    /// The sum of the values, each as often as its sample stands for.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// How many samples of equal weight would tell the sum as well.
    pub fn worth(&self) -> f64 {
        if self.parts_squared > 0.0 { self.sum * self.sum / self.parts_squared } else { 0.0 }
    }

    /// The mean with its 95% interval; `None` below two samples, whose spread is not known.
    pub fn mean(&self) -> Option<Estimate> {
        if self.samples < 2 || self.weights <= 0.0 {
            return None;
        }
        let mean = self.sum / self.weights;
        // Σ w² (value - mean)², multiplied out.
        let spread = self.parts_squared - 2.0 * mean * self.squared_sum + mean * mean * self.weights_squared;
        let few = self.samples as f64 / (self.samples - 1) as f64;
        let error = (spread.max(0.0) * few).sqrt() / self.weights;
        Some(Estimate::new(mean, (mean - 1.96 * error).max(0.0), mean + 1.96 * error))
    }
}

/// The loads that one level served.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfLevel {
    /// Every load counts one.
    pub loads: Weighted,
    /// The latencies of those that have one.
    pub latency: Weighted,
}

/// A load that is kept whole, with the allocations that it may have read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptAccess {
    pub access: Access,
    pub near: AllNear,
}

/// What was sampled at one place, or at several together.
#[derive(Clone, Debug, Default)]
pub struct AccessTally {
    /// Every load counts one.
    pub loads: Weighted,
    pub latency: Weighted,
    pub by_level: BTreeMap<Level, OfLevel>,
    pub stores: u64,
    /// Loads whose translation is known; of those, with a walk.
    pub translated: u64,
    pub walks: u64,
    pub locked: u64,
    /// Loads that were kept.
    pub kept: Vec<KeptAccess>,
    /// The first stores.
    pub kept_stores: Vec<KeptAccess>,
}

impl AccessTally {
    fn count(&mut self, access: &Access) {
        if access.kind == AccessKind::Store {
            self.stores += 1;
            return;
        }
        let weight = access.period.max(1) as f64;
        let of_level = self.by_level.entry(access.level).or_default();
        self.loads.add(weight, 1.0);
        of_level.loads.add(weight, 1.0);
        if let Some(latency) = access.latency {
            self.latency.add(weight, f64::from(latency));
            of_level.latency.add(weight, f64::from(latency));
        }
        self.translated += u64::from(access.translation != Translation::Unknown);
        self.walks += u64::from(access.translation == Translation::Walk);
        self.locked += u64::from(access.is_locked);
    }

    /// Adds the counts of another place, not what was kept there.
    pub fn merge(&mut self, other: &Self) {
        self.loads.merge(&other.loads);
        self.latency.merge(&other.latency);
        for (level, other) in &other.by_level {
            let of_level = self.by_level.entry(*level).or_default();
            of_level.loads.merge(&other.loads);
            of_level.latency.merge(&other.latency);
        }
        self.stores += other.stores;
        self.translated += other.translated;
        self.walks += other.walks;
        self.locked += other.locked;
    }
}

/// All loads and stores that were sampled.
#[derive(Clone, Debug)]
pub struct Accesses {
    pub places: HashMap<Place, AccessTally>,
    /// Loads and stores in the kernel, which are counted nowhere else.
    pub in_kernel: u64,
    /// Those at addresses where nothing is known to be mapped.
    pub nowhere: u64,
    pub samples: u64,
    kept: usize,
    random: Xorshift,
}

/// Samples kept of one place, and of all together: 40 MiB.
const KEPT_OF_PLACE: u64 = 1024;
const KEPT_STORES: u64 = 256;
const KEPT: usize = (40 << 20) / size_of::<KeptAccess>();

impl Default for Accesses {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            in_kernel: 0,
            nowhere: 0,
            samples: 0,
            kept: 0,
            random: Xorshift::new(0x9e37_79b9_7f4a_7c15),
        }
    }
}

impl Accesses {
    /// Whether there are any: then the profile is made of them.
    pub fn any(&self) -> bool {
        self.samples > 0
    }

    /// Counts an access at its place, where that is known.
    pub(crate) fn count(&mut self, access: &Access, place: Option<Place>, near: impl FnOnce() -> AllNear) {
        self.samples += 1;
        if access.in_kernel {
            self.in_kernel += 1;
            return;
        }
        let Some(place) = place else {
            self.nowhere += 1;
            return;
        };
        let tally = self.places.entry(place).or_default();
        tally.count(access);
        if access.kind == AccessKind::Store {
            if tally.stores <= KEPT_STORES && self.kept < KEPT {
                tally.kept_stores.push(KeptAccess { access: *access, near: near() });
                self.kept += 1;
            }
            return;
        }
        let seen = tally.loads.samples;
        if seen <= KEPT_OF_PLACE && self.kept < KEPT {
            tally.kept.push(KeptAccess { access: *access, near: near() });
            self.kept += 1;
        } else if !tally.kept.is_empty() {
            // Each of those seen so far is kept with the same probability.
            if let Some(replaced) = tally.kept.get_mut(self.random.below(seen) as usize) {
                *replaced = KeptAccess { access: *access, near: near() };
            }
        }
    }

    /// The sums over all places.
    pub fn sums(&self) -> AccessTally {
        let mut sums = AccessTally::default();
        // In one order: sums of numbers with fractions depend on it.
        let mut places: Vec<_> = self.places.iter().collect();
        places.sort_unstable_by_key(|(place, _)| **place);
        for (_, tally) in places {
            sums.merge(tally);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::MappedId;
    use units::FileOffset;

    fn load(latency: u32, level: Level, period: u64) -> Access {
        Access {
            process: 1,
            thread: 1,
            time_ns: 0,
            ip: Avma(0x1000),
            in_kernel: false,
            address: Some(Avma(0x8000)),
            kind: AccessKind::Load,
            latency: Some(latency),
            level,
            translation: Translation::Walk,
            is_locked: false,
            period,
        }
    }

    const PLACE: Place = Place { what: MappedId(0), offset: FileOffset(0x10) };

    #[test]
    fn means_are_weighted_by_periods() {
        let mut accesses = Accesses::default();
        for _ in 0..50 {
            accesses.count(&load(300, Level::Dram, 1), Some(PLACE), AllNear::default);
            accesses.count(&load(20, Level::L2, 3), Some(PLACE), AllNear::default);
        }
        let tally = &accesses.places[&PLACE];
        let mean = tally.latency.mean().unwrap();
        assert!((mean.value - 90.0).abs() < 1e-9, "(300 + 3 * 20) / 4: {mean:?}");
        assert!(mean.lo > 60.0 && mean.lo < mean.value && mean.hi < 120.0, "{mean:?}");
        let dram = &tally.by_level[&Level::Dram].latency;
        assert_eq!((dram.samples, dram.sum() / tally.latency.sum()), (50, 300.0 / 360.0));
        assert_eq!(dram.mean().unwrap(), Estimate::exact(300.0), "no spread");
        assert!((tally.loads.worth() - 80.0).abs() < 1e-9, "100 samples of unequal weight");
        assert_eq!((tally.walks, tally.translated), (100, 100));
    }

    #[test]
    fn one_sample_has_no_mean_and_stores_no_latency() {
        let mut accesses = Accesses::default();
        accesses.count(&load(300, Level::Dram, 1), Some(PLACE), AllNear::default);
        accesses.count(
            &Access { kind: AccessKind::Store, ..load(7, Level::L1, 1) },
            Some(PLACE),
            AllNear::default,
        );
        accesses.count(&Access { in_kernel: true, ..load(7, Level::L1, 1) }, Some(PLACE), AllNear::default);
        accesses.count(&load(7, Level::L1, 1), None, AllNear::default);
        let tally = &accesses.places[&PLACE];
        assert_eq!((tally.loads.samples, tally.stores, tally.latency.mean()), (1, 1, None));
        assert_eq!((accesses.samples, accesses.in_kernel, accesses.nowhere), (4, 1, 1));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut accesses = Accesses::default();
        for latency in 0..5000 {
            accesses.count(&load(latency, Level::L1, 1), Some(PLACE), AllNear::default);
        }
        let kept = &accesses.places[&PLACE].kept;
        assert_eq!(kept.len() as u64, KEPT_OF_PLACE);
        let late = kept.iter().filter(|kept| kept.access.latency >= Some(2500)).count();
        assert!((400..=624).contains(&late), "{late} of 1024 are of the second half");
    }
}
