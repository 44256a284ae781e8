//! `PERF_SAMPLE_DATA_SRC`: what an access was, and what served it, as the kernel says for all PMUs.

use insight::samples::{AccessKind, Translation};
use records::profile::Level;

/// The word that samples hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSource(pub u64);

impl DataSource {
    fn bits(self, from: u32, count: u32) -> u64 {
        self.0 >> from & ((1 << count) - 1)
    }

    /// A load, a store, or both; `None` where the hardware does not tell, or it was neither.
    pub(super) fn kind(self) -> Option<AccessKind> {
        const LOAD: u64 = 1 << 1;
        const STORE: u64 = 1 << 2;
        let operation = self.bits(0, 5);
        match (operation & LOAD != 0, operation & STORE != 0) {
            (true, true) => Some(AccessKind::Both),
            (true, false) => Some(AccessKind::Load),
            (false, true) => Some(AccessKind::Store),
            (false, false) => None,
        }
    }

    /// The level that served it. A cache of another core that had modified the line comes first,
    /// then whether it was far away, then the level itself.
    pub(super) fn level(self) -> Level {
        const SNOOP_MODIFIED: u64 = 1 << 4;
        let (older, snoop) = (self.bits(5, 14), self.bits(19, 5));
        let is_remote = self.bits(37, 1) == 1;
        if snoop & SNOOP_MODIFIED != 0 {
            return Level::Dirty;
        }
        if is_remote || older & OLDER_HIT != 0 && older & OLDER_REMOTE != 0 {
            return Level::Remote;
        }
        // "Missed in L3" is how Intel's cores say that they do not know.
        if older & (OLDER_HIT | OLDER_MISS) == OLDER_MISS {
            return Level::Unresolved;
        }
        match self.bits(33, 4) {
            1 => Level::L1,
            2 => Level::L2,
            3 => Level::L3,
            // Buffers of misses that are under way: of L2, and of L1.
            5 | 12 => Level::InFlight,
            // Memory behind a cache of its own, RAM, persistent memory.
            6 | 13 | 14 => Level::Dram,
            // Memory behind a CXL link.
            9 => Level::Remote,
            // Not told, or by an old kernel.
            0 | 15 => older_level(older),
            _ => Level::Unresolved,
        }
    }

    pub(super) fn translation(self) -> Translation {
        const HIT: u64 = 1 << 1;
        const MISS: u64 = 1 << 2;
        const WALKER: u64 = 1 << 5;
        const FAULT: u64 = 1 << 6;
        let translation = self.bits(26, 7);
        if translation & (MISS | WALKER | FAULT) != 0 {
            Translation::Walk
        } else if translation & HIT != 0 {
            Translation::Tlb
        } else {
            Translation::Unknown
        }
    }

    pub(super) fn is_locked(self) -> bool {
        const LOCKED: u64 = 1 << 1;
        self.bits(24, 2) & LOCKED != 0
    }
}

const OLDER_HIT: u64 = 1 << 1;
const OLDER_MISS: u64 = 1 << 2;
/// RAM one and two hops away, caches one and two hops away.
const OLDER_REMOTE: u64 = 0b1111 << 8;

/// By the field that kernels before 4.14 filled alone: which levels, and hit or miss.
fn older_level(older: u64) -> Level {
    const LEVELS: [(u64, Level); 5] = [
        (1 << 3, Level::L1),
        (1 << 4, Level::InFlight),
        (1 << 5, Level::L2),
        (1 << 6, Level::L3),
        (1 << 7, Level::Dram),
    ];
    if older & OLDER_HIT == 0 {
        return Level::Unresolved;
    }
    LEVELS.iter().find(|(bit, _)| older & bit != 0).map_or(Level::Unresolved, |(_, level)| *level)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: u64 = 1 << 1;
    const HIT: u64 = 1 << 1 << 5;

    fn level_number(number: u64) -> DataSource {
        DataSource(LOAD | number << 33)
    }

    #[test]
    fn levels_are_those_of_the_kernels_header() {
        for (number, level) in [
            (1, Level::L1),
            (2, Level::L2),
            (3, Level::L3),
            (12, Level::InFlight),
            (13, Level::Dram),
            (15, Level::Unresolved),
        ] {
            assert_eq!(level_number(number).level(), level, "{number}");
        }
        // Of a local L3 whose line another core had modified; of remote RAM.
        assert_eq!(DataSource(level_number(3).0 | 0x10 << 19).level(), Level::Dirty);
        assert_eq!(DataSource(level_number(13).0 | 1 << 37).level(), Level::Remote);
        // A miss in L3, and nothing more.
        assert_eq!(DataSource(level_number(3).0 | 1 << (2 + 5)).level(), Level::Unresolved);
    }

    #[test]
    fn older_kernels_are_understood() {
        for (bit, level) in
            [(3, Level::L1), (4, Level::InFlight), (5, Level::L2), (6, Level::L3), (7, Level::Dram)]
        {
            assert_eq!(DataSource(LOAD | HIT | 1 << (bit + 5)).level(), level, "{bit}");
        }
        for bit in 8..12 {
            assert_eq!(DataSource(LOAD | HIT | 1 << (bit + 5)).level(), Level::Remote, "{bit}");
        }
        assert_eq!(DataSource(LOAD | 1 << (6 + 5)).level(), Level::Unresolved, "a miss tells no level");
    }

    #[test]
    fn operations_translations_and_locks() {
        assert_eq!(DataSource(1).kind(), None, "not available: what software events have");
        assert_eq!(DataSource(2).kind(), Some(AccessKind::Load));
        assert_eq!(DataSource(4).kind(), Some(AccessKind::Store));
        let translated = |bits: u64| DataSource(bits << 26).translation();
        assert_eq!(translated(0x02 | 0x08 | 0x10), Translation::Tlb, "hit in L1 or L2");
        assert_eq!(translated(0x04 | 0x10), Translation::Walk, "missed in L2");
        assert_eq!(translated(0x01), Translation::Unknown);
        assert!(DataSource(2 << 24).is_locked() && !DataSource(1 << 24).is_locked());
    }
}
