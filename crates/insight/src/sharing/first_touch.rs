//! Memory that one thread makes and several use, each its own part.
//!
//! A page lies on the node of the thread that touches it first. On one node that costs nothing, so
//! it is predicted: by who took the page faults of an object, and who waits for its data.

use super::access::Access;
use super::gathered::Fault;
use std::collections::BTreeMap;

/// An object that one thread touched first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Touched {
    pub object: u32,
    /// The number of the instruction that took most of the faults.
    pub by: u32,
    /// Threads that use it.
    pub users: usize,
    /// Samples of stall of the other threads.
    pub elsewhere: f64,
}

/// Samples of faults that tell who made an object.
const LEAST_FAULTS: f64 = 8.0;
/// One thread took so much of them.
const ALMOST_ALL: f64 = 0.9;
/// A thread that uses less than this share does not count.
const LEAST_USE: f64 = 0.1;
/// An object that is smaller may be moved at no cost.
const LEAST_BYTES: u64 = 1 << 20;

pub(super) fn touched(faults: &[Fault], accesses: &[Access]) -> Vec<Touched> {
    let mut made: BTreeMap<u32, Vec<&Fault>> = BTreeMap::new();
    for fault in faults {
        made.entry(fault.object).or_default().push(fault);
    }
    let mut used: BTreeMap<u32, BTreeMap<u32, Vec<&Access>>> = BTreeMap::new();
    for access in accesses {
        if let Some(object) = access.object.filter(|object| made.contains_key(object)) {
            used.entry(object).or_default().entry(access.thread).or_default().push(access);
        }
    }
    let mut found: Vec<Touched> = Vec::new();
    for (object, faults) in made {
        let Some((maker, by)) = maker(&faults) else { continue };
        let Some(users) = used.get(&object) else { continue };
        let weight = |accesses: &[&Access]| accesses.iter().map(|access| access.weight).sum::<f64>();
        let all: f64 = users.values().map(|accesses| weight(accesses)).sum();
        let users: Vec<(u32, &Vec<&Access>)> = users
            .iter()
            .filter(|(_, accesses)| weight(accesses) >= LEAST_USE * all)
            .map(|(thread, accesses)| (*thread, accesses))
            .collect();
        let parts: Vec<(u64, u64)> = users.iter().map(|(_, accesses)| middle(accesses)).collect();
        let low = parts.iter().map(|part| part.0).min().unwrap_or(0);
        let high = parts.iter().map(|part| part.1).max().unwrap_or(0);
        if users.len() < 2 || high - low < LEAST_BYTES || !are_apart(parts) {
            continue;
        }
        let others = users.iter().filter(|(thread, _)| *thread != maker);
        let elsewhere = others.map(|(_, accesses)| weight(accesses)).sum();
        found.push(Touched { object, by, users: users.len(), elsewhere });
    }
    found.sort_by(|a, b| b.elsewhere.total_cmp(&a.elsewhere));
    found
}

/// The thread that took nearly all faults, and the instruction of most of them.
fn maker(faults: &[&Fault]) -> Option<(u32, u32)> {
    let mut threads: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let mut places: BTreeMap<u32, f64> = BTreeMap::new();
    for fault in faults {
        *threads.entry((fault.process, fault.thread)).or_default() += fault.weight;
        *places.entry(fault.by).or_default() += fault.weight;
    }
    let all: f64 = threads.values().sum();
    let (&(_, thread), most) = threads.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let (&by, _) = places.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (all >= LEAST_FAULTS && *most >= ALMOST_ALL * all).then_some((thread, by))
}

/// Where the middle four fifths of these addresses lie.
fn middle(accesses: &[&Access]) -> (u64, u64) {
    let mut addresses: Vec<u64> = accesses.iter().map(|access| access.address).collect();
    addresses.sort_unstable();
    let tenth = addresses.len() / 10;
    (addresses[tenth], addresses[addresses.len() - 1 - tenth])
}

/// Whether these parts hardly overlap.
fn are_apart(mut parts: Vec<(u64, u64)>) -> bool {
    parts.sort_unstable();
    parts.windows(2).all(|pair| {
        let overlap = pair[0].1.min(pair[1].1).saturating_sub(pair[1].0);
        let least = (pair[0].1 - pair[0].0).min(pair[1].1 - pair[1].0).max(1);
        overlap as f64 <= 0.2 * least as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn faults(threads: &[u32]) -> Vec<Fault> {
        let fault = |&thread| Fault { process: 1, thread, object: 0, by: 7, weight: 1.0 };
        threads.iter().map(fault).collect()
    }

    fn uses(thread: u32, from: u64, bytes: u64) -> Vec<Access> {
        let access = |n: u64| Access {
            process: 1,
            thread,
            time_ns: n,
            address: from + n * bytes / 100,
            shared: None,
            bytes: 8,
            writes: false,
            weight: 1.0,
            by: 3,
            object: Some(0),
        };
        (0..100).map(access).collect()
    }

    #[test]
    fn one_thread_makes_what_several_use_apart() {
        let apart = [uses(1, 0, 32 * MIB), uses(2, 32 * MIB, 32 * MIB)].concat();
        let found = touched(&faults(&[1; 20]), &apart);
        assert_eq!(found, [Touched { object: 0, by: 7, users: 2, elsewhere: 100.0 }]);
        assert_eq!(touched(&faults(&[1, 2].repeat(10)), &apart), [], "each its own");
        assert_eq!(touched(&faults(&[1; 5]), &apart), [], "too few to tell");
        let same = [uses(1, 0, 64 * MIB), uses(2, 0, 64 * MIB)].concat();
        assert_eq!(touched(&faults(&[1; 20]), &same), [], "all use all of it");
        assert_eq!(touched(&faults(&[1; 20]), &uses(1, 0, 64 * MIB)), [], "one thread's");
        let small = [uses(1, 0, MIB / 8), uses(2, MIB / 8, MIB / 8)].concat();
        assert_eq!(touched(&faults(&[1; 20]), &small), []);
    }
}
