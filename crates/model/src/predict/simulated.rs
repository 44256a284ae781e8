//! What caches hold, as `held.rs` computes it, against caches that are simulated.

use super::held::held;
use super::lines::{self, Lines};
use crate::pattern::{Pattern, parse};
use std::collections::{BTreeMap, HashMap};
use units::Rng;

/// A cache of lines by number, each with the time of its last load.
struct Cache {
    size: usize,
    oldest: bool,
    time: u64,
    loaded: HashMap<u64, u64>,
    by_time: BTreeMap<u64, u64>,
    /// For a cache that replaces any line.
    slots: Vec<u64>,
}

impl Cache {
    fn new(size: usize, oldest: bool) -> Self {
        let (loaded, by_time) = (HashMap::new(), BTreeMap::new());
        Self { size, oldest, time: 0, loaded, by_time, slots: Vec::new() }
    }

    /// Whether the line was there.
    fn load(&mut self, line: u64, random: &mut Rng) -> bool {
        self.time += 1;
        if !self.oldest {
            return self.load_any(line, random);
        }
        let last = self.loaded.insert(line, self.time);
        self.by_time.insert(self.time, line);
        if let Some(last) = last {
            self.by_time.remove(&last);
        } else if self.loaded.len() > self.size {
            let (_, oldest) = self.by_time.pop_first().expect("a full cache");
            self.loaded.remove(&oldest);
        }
        last.is_some()
    }

    fn load_any(&mut self, line: u64, random: &mut Rng) -> bool {
        if self.loaded.contains_key(&line) {
            return true;
        }
        if self.slots.len() < self.size {
            self.slots.push(line);
        } else {
            let slot = random.below(self.size as u64) as usize;
            self.loaded.remove(&self.slots[slot]);
            self.slots[slot] = line;
        }
        self.loaded.insert(line, self.time);
        false
    }
}

/// The share of each kind's loads that a cache serves, by simulation of this many accesses.
fn simulated(all: &[Lines], size: usize, oldest: bool) -> Vec<f64> {
    let mut random = Rng::new(7);
    let mut cache = Cache::new(size, oldest);
    let mut found = vec![(0.0, 0.0); all.len()];
    let mut passed = vec![0.0; all.len()];
    for access in 0..WARM + COUNTED {
        for (kind, lines) in all.iter().enumerate() {
            // As many loads as fall due, for kinds with a part of a load for each access.
            passed[kind] += lines.loads;
            while passed[kind] >= 1.0 {
                passed[kind] -= 1.0;
                let count = lines.count as u64;
                let line = if lines.in_order { found[kind].1 as u64 % count } else { random.below(count) };
                let hit = cache.load(((kind as u64) << 32) | line, &mut random);
                found[kind].1 += 1.0;
                found[kind].0 += f64::from(u8::from(hit && access >= WARM));
            }
        }
    }
    let counted = |lines: &Lines| lines.loads * f64::from(COUNTED);
    all.iter().zip(found).map(|(lines, (hits, _))| hits / counted(lines)).collect()
}

/// Accesses that fill the cache, and those that count.
const WARM: u32 = 20_000;
const COUNTED: u32 = 60_000;

fn lines(text: &str) -> Vec<Lines> {
    let Ok(Pattern::Access(access)) = parse(text) else { panic!("{text}") };
    lines::of(&access, 64)
}

fn agree(all: &[Lines], size: usize) {
    let computed = held(all, size as f64, 0.0);
    for (way, oldest) in [(0, true), (1, false)] {
        for (kind, found) in simulated(all, size, oldest).into_iter().enumerate() {
            // What is passed in order is held for a part of each lap, not found by a part of loads.
            if all[kind].in_order {
                continue;
            }
            let expected = computed[kind][way];
            let told = format!("{:?}, oldest: {oldest}: {expected} for {found}", all[kind]);
            assert!((expected - found).abs() < 0.02, "{told}");
        }
    }
}

#[test]
fn levels_of_a_tree() {
    for size in [64, 512, 2048] {
        agree(&lines("tree(299584, 8, 64)"), size);
    }
}

#[test]
fn steps_of_a_search() {
    agree(&lines("search(1M)")[..14], 1024);
}

#[test]
fn nodes_of_a_pass_among_walks() {
    let mut all = lines("tree(299584, 8, 64)");
    all.extend(lines("seq(1G)"));
    agree(&all, 1024);
}

#[test]
fn a_pass_that_returns_among_loads_at_random() {
    // The pass has 500 lines, each of which returns after 2000 loads of the others.
    let mut all = lines("rand(256K)");
    all.extend(lines("seq(32000)").into_iter().map(|pass| Lines { loads: 0.25, ..pass }));
    agree(&all, 3000);
}

#[test]
fn others_that_load_into_the_same_cache() {
    // Three lines that never return for each load of the access.
    let own = lines("rand(32K)")[0];
    let others = Lines { count: 4e9, loads: 3.0, in_order: false };
    let computed = held(&[own], 2048.0, others.loads);
    for (way, oldest) in [(0, true), (1, false)] {
        let (expected, found) = (computed[0][way], simulated(&[own, others], 2048, oldest)[0]);
        assert!((expected - found).abs() < 0.02, "oldest: {oldest}: {expected} for {found}");
    }
}
