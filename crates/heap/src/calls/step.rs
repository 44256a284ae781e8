//! From a frame to its caller's, at one address, and the same as one word.

/// What the caller's frame is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Sp,
    Bp,
}

/// Where the caller's RBP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    Same,
    /// Behind the beginning of the caller's frame.
    At(i64),
    Lost,
}

/// The caller's frame begins at `base + offset`; its return address lies right below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) base: Base,
    pub(super) offset: i64,
    pub(super) bp: Saved,
}

/// In the upper half of a word, where no offset is.
const SAME: i32 = i32::MAX;
const LOST: i32 = i32::MIN;
/// In its lowest bits: frames' sizes are multiples of eight.
const BY_BP: u64 = 1;
const IS_STEP: u64 = 2;
/// Nothing is known but that there is no step.
pub(super) const NONE: u64 = 4;

impl Step {
    pub(super) fn packed(self) -> Option<u64> {
        let offset = u32::from_ne_bytes(i32::try_from(self.offset).ok()?.to_ne_bytes());
        let bp = match self.bp {
            Saved::Same => SAME,
            Saved::At(offset) => {
                i32::try_from(offset).ok().filter(|offset| ![SAME, LOST].contains(offset))?
            }
            Saved::Lost => LOST,
        };
        let base = if self.base == Base::Bp { BY_BP } else { 0 };
        let is_whole = offset % 8 == 0;
        is_whole.then_some(u64::from(bp.cast_unsigned()) << 32 | u64::from(offset) | base | IS_STEP)
    }

    pub(super) fn unpacked(word: u64) -> Option<Self> {
        if word & IS_STEP == 0 {
            return None;
        }
        let offset = i64::from((word as u32 & !7).cast_signed());
        let bp = match ((word >> 32) as u32).cast_signed() {
            SAME => Saved::Same,
            LOST => Saved::Lost,
            offset => Saved::At(i64::from(offset)),
        };
        Some(Self { base: if word & BY_BP == 0 { Base::Sp } else { Base::Bp }, offset, bp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_kept_as_they_are() {
        for base in [Base::Sp, Base::Bp] {
            for offset in [8, 16, 4096, -8, 1 << 30] {
                for bp in [Saved::Same, Saved::At(-16), Saved::At(-2048), Saved::Lost] {
                    let step = Step { base, offset, bp };
                    assert_eq!(step.packed().and_then(Step::unpacked), Some(step));
                }
            }
        }
        assert_eq!(Step { base: Base::Sp, offset: 1 << 40, bp: Saved::Same }.packed(), None);
        assert_eq!(Step::unpacked(NONE), None);
    }
}
