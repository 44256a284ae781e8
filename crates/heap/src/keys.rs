//! Which calls led to an allocation, as one number, and whether the profiler knows them already: a
//! stack is unwound once for each path.
//!
//! A path is the return addresses of the innermost calls ([`crate::calls`]) and the depth of the
//! stack, which tells the calls further out. Depth is measured from the thread pointer, which lies
//! on top of a thread's stack: at the same calls it is the same in all threads. A program that
//! recurses has more paths than are kept; then its nearest calls must do.

use crate::calls::{MOST_FRAMES, Path};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

const SLOTS: usize = 16 << 10;
/// Paths with their depths that are kept.
const MOST: u32 = 4 << 10;
/// And with those that are nearest calls only. Beyond this the profiler must do with return
/// addresses.
const MOST_OF_ALL: u32 = 12 << 10;
const PROBES: usize = 16;
/// The calls that a path is known by once there are too many.
const NEAREST: usize = 8;

pub(crate) struct Keys {
    known: [AtomicU64; SLOTS],
    count: AtomicU32,
}

pub(crate) static KEYS: Keys = Keys { known: [const { AtomicU64::new(0) }; SLOTS], count: AtomicU32::new(0) };

fn mixed(before: u64, word: u64) -> u64 {
    let word = before.rotate_left(5) ^ word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 32)
}

/// Never zero.
fn key(addresses: &[u64], depth: u64) -> u64 {
    addresses.iter().fold(mixed(0, depth), |key, address| mixed(key, *address)) | 1
}

impl Keys {
    /// The key of a path, and whether it should be told of with its stack.
    pub(crate) fn of(&self, path: &Path, depth: u64) -> (u64, bool) {
        self.key(path.addresses(MOST_FRAMES), depth)
    }

    fn key(&self, addresses: &[u64], depth: u64) -> (u64, bool) {
        let whole = key(addresses, depth);
        match self.place(whole) {
            Place::Known => return (whole, false),
            Place::Free if self.count.load(Relaxed) < MOST => return (whole, true),
            _ => {}
        }
        // Where the tables told nothing, only depths tell calls apart.
        let depth = if addresses.len() > 1 { 0 } else { depth };
        let near = key(addresses.get(..NEAREST).unwrap_or(addresses), depth);
        let is_new = matches!(self.place(near), Place::Free) && self.count.load(Relaxed) < MOST_OF_ALL;
        (near, is_new)
    }

    fn place(&self, key: u64) -> Place {
        for probe in 0..PROBES {
            match self.at(key, probe).load(Relaxed) {
                0 => return Place::Free,
                known if known == key => return Place::Known,
                _ => {}
            }
        }
        Place::None
    }

    pub(crate) fn insert(&self, key: u64) {
        for probe in 0..PROBES {
            match self.at(key, probe).compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => {
                    self.count.fetch_add(1, Relaxed);
                    return;
                }
                Err(known) if known == key => return,
                Err(_) => {}
            }
        }
    }

    fn at(&self, key: u64, probe: usize) -> &AtomicU64 {
        &self.known[((key >> 32) as usize + probe) % SLOTS]
    }
}

enum Place {
    Known,
    Free,
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_new_once() {
        static KEYS: Keys = Keys { known: [const { AtomicU64::new(0) }; SLOTS], count: AtomicU32::new(0) };
        let mut told = 0;
        for round in 0..2 {
            for path in 0..10_000_u64 {
                let (key, is_new) = KEYS.key(&[0x40_1000 + 5 * (path / 100), 0x40_2000], 64 * (path % 100));
                if is_new {
                    assert_eq!(round, 0, "all that are told are known");
                    KEYS.insert(key);
                    told += 1;
                }
            }
        }
        // Most with their depths, and then each pair of calls.
        assert!(told > u64::from(MOST) && told <= u64::from(MOST) + 100, "{told}");
    }

    #[test]
    fn any_call_of_a_path_makes_another_one() {
        let path: Vec<u64> = (0..MOST_FRAMES as u64).map(|frame| 0x40_1000 + 16 * frame).collect();
        let all: std::collections::HashSet<u64> = (0..MOST_FRAMES)
            .map(|changed| {
                let mut other = path.clone();
                other[changed] += 5;
                key(&other, 800)
            })
            .chain([key(&path, 800), key(&path, 808), key(&path[..3], 800)])
            .collect();
        assert_eq!(all.len(), MOST_FRAMES + 3);
    }
}
