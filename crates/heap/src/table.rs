//! Addresses that are recorded though their page is not chosen. `free` looks here, so it is small
//! and a look is two comparisons: buckets of two addresses, which are told by 32 bits each, the
//! other bits being those of the bucket. An address that finds no space is not recorded.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// Buckets, as a power of two: with the 32 bits of a tag, that is all of an address of 47 bits.
pub(crate) const BUCKET_BITS: u32 = 11;
/// The lowest bits of an address: allocations are aligned to 16 bytes.
pub(crate) const ALIGNMENT_BITS: u32 = 4;
pub(crate) const HASH: u32 = 0x9e37_79b1;

/// Of 8 bytes, aligned: assembly reads it as one word.
#[repr(C, align(8))]
struct Bucket([AtomicU32; 2]);

#[repr(C, align(64))]
pub(crate) struct Table([Bucket; 1 << BUCKET_BITS]);

pub(crate) static TABLE: Table =
    Table([const { Bucket([AtomicU32::new(0), AtomicU32::new(0)]) }; 1 << BUCKET_BITS]);

impl Table {
    /// The bucket of an address and its tag there; `interpose.rs` has the same in assembly.
    fn place(&self, address: u64) -> (&Bucket, u32) {
        let lower = address >> ALIGNMENT_BITS;
        let tag = (lower >> BUCKET_BITS) as u32;
        let index =
            (lower as u32 ^ (tag.wrapping_mul(HASH) >> (32 - BUCKET_BITS))) & ((1 << BUCKET_BITS) - 1);
        (&self.0[index as usize], tag)
    }

    /// Whether there was space.
    pub(crate) fn insert(&self, address: u64) -> bool {
        let (bucket, tag) = self.place(address);
        bucket.0.iter().any(|way| way.compare_exchange(0, tag, Relaxed, Relaxed).is_ok())
    }

    /// Whether it was there.
    pub(crate) fn remove(&self, address: u64) -> bool {
        let (bucket, tag) = self.place(address);
        bucket.0.iter().any(|way| way.compare_exchange(tag, 0, Relaxed, Relaxed).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        static TABLE: Table =
            Table([const { Bucket([AtomicU32::new(0), AtomicU32::new(0)]) }; 1 << BUCKET_BITS]);
        // As glibc maps large blocks.
        let all: Vec<u64> = (0..1000).map(|n| 0x7f00_0000_0010 + n * 0x21000).collect();
        let kept: Vec<u64> = all.iter().copied().filter(|&address| TABLE.insert(address)).collect();
        assert!(kept.len() > 900, "{}", kept.len());
        for address in &kept {
            assert!(!TABLE.remove(address + 16) && TABLE.remove(*address) && !TABLE.remove(*address));
        }
        assert!((0..3).filter(|_| TABLE.insert(0x7f00_0000_0010)).count() == 2, "a full bucket refuses");
    }
}
