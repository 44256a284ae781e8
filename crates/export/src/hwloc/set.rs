//! Sets of CPUs and nodes as hwloc writes them: words of 32 bits, the highest first.

use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(BTreeSet<u32>);

impl Set {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn includes(&self, other: &Self) -> bool {
        other.0.is_subset(&self.0)
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// Those of it that the other has, too.
    pub(super) fn within(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    pub(super) fn text(&self) -> String {
        let words = self.0.last().map_or(1, |last| last / 32 + 1);
        let word = |nth: u32| {
            let bits = self.0.iter().filter(|member| **member / 32 == nth);
            bits.fold(0_u32, |word, member| word | 1 << (member % 32))
        };
        let words: Vec<String> = (0..words).rev().map(|nth| format!("{:#010x}", word(nth))).collect();
        words.join(",")
    }
}

impl FromIterator<u32> for Set {
    fn from_iter<I: IntoIterator<Item = u32>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_highest_first() {
        let text = |members: &[u32]| members.iter().copied().collect::<Set>().text();
        assert_eq!(text(&[]), "0x00000000");
        assert_eq!(text(&[0, 1]), "0x00000003");
        assert_eq!(text(&[31]), "0x80000000");
        assert_eq!(text(&[0, 33, 64]), "0x00000001,0x00000002,0x00000001");
    }
}
