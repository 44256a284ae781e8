//! Sets of processors, of all that a kernel for x86-64 may have.

use crate::sys;

/// Most processors of a kernel (its MAXSMP).
const MOST: usize = 8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpus([u64; MOST / 64]);

impl Cpus {
    pub(crate) const NONE: Self = Self([0; MOST / 64]);

    /// Those that a thread may use, 0 being the calling one; none where the kernel does not say.
    pub(crate) fn of(tid: i32) -> Self {
        let mut set = Self::NONE;
        sys::affinity(tid, &mut set.0);
        set
    }

    /// The first 64, by a mask.
    pub(crate) fn of_mask(mask: u64) -> Self {
        let mut set = Self::NONE;
        set.0[0] = mask;
        set
    }

    pub(crate) fn add(&mut self, cpu: u32) {
        if let Some(word) = self.0.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    pub(crate) fn holds(&self, cpu: u32) -> bool {
        self.0.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Those that are not in the other set.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut rest = *self;
        for (word, other) in rest.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
        rest
    }

    /// Whether one is in both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The calling thread runs on these only.
    pub(crate) fn keep_to(&self) {
        sys::set_affinity(0, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_beyond_the_first_64_count() {
        let mut set = Cpus::of_mask(0b1000);
        assert_eq!(set.count(), 1);
        for cpu in [3, 64, 70, 8191, 8192, u32::MAX] {
            set.add(cpu);
        }
        assert_eq!(set.count(), 4);
        let rest = set.without(&Cpus::of_mask(0b1111));
        assert!(!rest.is_empty() && rest.count() == 3);
        assert!(set.without(&set).is_empty());
    }

    #[test]
    fn the_kernel_says_where_one_may_run() {
        let (mine, nobodys) = (Cpus::of(0), Cpus::of(-1));
        assert!(!mine.is_empty() && nobodys.is_empty());
        mine.keep_to();
        assert_eq!(Cpus::of(0), mine);
    }
}
