//! Which calls led to an allocation, as one number, and whether the profiler knows them already.
//!
//! The return address and the depth of the stack together almost always tell one path of calls from
//! all others. So a stack is unwound once for each pair. Depth is measured from the thread pointer,
//! which lies on top of a thread's stack: at the same calls it is the same in all threads.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

const SLOTS: usize = 8 << 10;
/// Beyond this the profiler must do with return addresses: a program that recurses without end, or
/// has thousands of stacks.
const MOST: u32 = 4 << 10;
const PROBES: usize = 16;

pub(crate) struct Keys {
    known: [AtomicU64; SLOTS],
    count: AtomicU32,
}

pub(crate) static KEYS: Keys = Keys { known: [const { AtomicU64::new(0) }; SLOTS], count: AtomicU32::new(0) };

/// Never zero.
pub(crate) fn key(return_address: u64, depth: u64) -> u64 {
    let mixed =
        return_address.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ depth.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 32)) | 1
}

impl Keys {
    /// Whether this key should be told of with its stack.
    pub(crate) fn is_new(&self, key: u64) -> bool {
        for probe in 0..PROBES {
            match self.at(key, probe).load(Relaxed) {
                0 => return self.count.load(Relaxed) < MOST,
                known if known == key => return false,
                _ => {}
            }
        }
        false
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_new_once() {
        static KEYS: Keys = Keys { known: [const { AtomicU64::new(0) }; SLOTS], count: AtomicU32::new(0) };
        let mut told = 0;
        for round in 0..2 {
            for path in 0..10_000_u64 {
                let key = key(0x40_1000 + 5 * (path / 100), 64 * (path % 100));
                if KEYS.is_new(key) {
                    assert_eq!(round, 0, "all that are told are known");
                    KEYS.insert(key);
                    told += 1;
                }
            }
        }
        assert!(told > MOST / 10 * 9 && told <= MOST, "{told}");
    }
}
