//! Load-store balance: where a yield would load much and store little, registers whose slots hold
//! them already are saved again.
//!
//! `docs/harvest-abi.md` says when, and what it gains. Cores have about three places for loads to
//! two for stores; so nearly as many loads as that are evened out with stores.

use image::code::regs::{RSP, RegSet};

/// What one yield does to memory there and back, with the instruction that it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchTraffic {
    pub loads: u32,
    pub stores: u32,
}

impl SwitchTraffic {
    /// Of the registers in `spare`, as many as have to be stored besides; the stack pointer first.
    pub(crate) fn balanced_with(self, spare: RegSet) -> RegSet {
        let least = (2 * self.loads).div_ceil(3);
        let wanted = least.saturating_sub(self.stores) as usize;
        let others = (0..16).filter(|&number| number != RSP);
        std::iter::once(RSP)
            .chain(others)
            .map(RegSet::general)
            .filter(|&register| spare.contains(register))
            .take(wanted)
            .fold(RegSet::EMPTY, |all, register| all | register)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(loads: u32, stores: u32, spare: RegSet) -> RegSet {
        SwitchTraffic { loads, stores }.balanced_with(spare)
    }

    #[test]
    fn two_stores_for_three_loads() {
        let (rbx, rsp) = (RegSet::general(3), RegSet::general(RSP));
        assert_eq!(again(6, 4, RegSet::GENERAL), RegSet::EMPTY);
        assert_eq!(again(7, 4, RegSet::GENERAL), rsp);
        assert_eq!(again(7, 4, rbx), rbx);
        assert_eq!(again(7, 4, RegSet::EMPTY), RegSet::EMPTY);
        // Six are wanted.
        let more = again(9, 3, RegSet::GENERAL - RegSet::general(0));
        assert_eq!(more, rsp | RegSet::general(1) | RegSet::general(2));
    }
}
