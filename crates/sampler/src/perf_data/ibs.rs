//! What an AMD core tells of a sampled operation: the registers of instruction-based sampling, as
//! samples of `ibs_op` hold them in their raw part.
//!
//! ```text
//! u32 capabilities, then 8 bytes each:
//! control  instruction  data  data2  data3  linear address  physical address  …
//! ```

use image::elf::cursor::Cursor;
use insight::samples::{AccessKind, Translation};
use records::profile::Level;

/// An operation that accessed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IbsOp {
    pub kind: AccessKind,
    pub level: Level,
    /// From the miss in L1 on; hits have none.
    pub latency: Option<u32>,
    pub translation: Translation,
    pub is_locked: bool,
    pub address: Option<u64>,
}

/// Of the capabilities: data2 has the longer list of sources.
const ZEN4: u32 = 1 << 11;

impl IbsOp {
    /// `None` if the registers are cut off, or the operation did not access memory.
    pub(super) fn parse(raw: &[u8]) -> Option<Self> {
        let mut at = Cursor::new(raw, 0);
        let capabilities = at.u32()?;
        let (_control, _instruction, _data) = (at.u64()?, at.u64()?, at.u64()?);
        let (data2, data3) = (at.u64()?, at.u64()?);
        let linear = at.u64()?;
        let is = |bit: u32| data3 >> bit & 1 == 1;
        let kind = match (is(0), is(1)) {
            (true, true) => AccessKind::Both,
            (true, false) => AccessKind::Load,
            (false, true) => AccessKind::Store,
            (false, false) => return None,
        };
        let (missed_tlb, missed_second_tlb, has_address) = (is(2), is(3), is(17));
        let missed = is(7);
        let latency = (data3 >> 32 & 0xffff) as u32;
        Some(Self {
            kind,
            level: level(data2, data3, capabilities & ZEN4 != 0),
            latency: (missed && latency > 0).then_some(latency),
            translation: match (has_address, missed_tlb && missed_second_tlb) {
                (false, _) => Translation::Unknown,
                (true, true) => Translation::Walk,
                (true, false) => Translation::Tlb,
            },
            is_locked: is(15),
            address: has_address.then_some(linear),
        })
    }
}

fn level(data2: u64, data3: u64, is_zen4: bool) -> Level {
    const MISSED_L1: u64 = 1 << 7;
    const FOUND_UNDER_WAY: u64 = 1 << 16;
    const MISSED_L2: u64 = 1 << 20;
    const REMOTE_NODE: u64 = 1 << 4;
    if data3 & MISSED_L1 == 0 {
        return Level::L1;
    }
    if data3 & FOUND_UNDER_WAY != 0 {
        return Level::InFlight;
    }
    if data3 & MISSED_L2 == 0 {
        return Level::L2;
    }
    let is_remote = data2 & REMOTE_NODE != 0;
    let (low, high) = (data2 & 7, data2 >> 6 & 3);
    let source = if is_zen4 { low | high << 3 } else { low };
    match (is_zen4, source) {
        (true, 1) | (false, 2) => Level::L3,
        // Caches of other groups of cores.
        (true, 2 | 5) | (false, 4) => Level::Remote,
        // RAM, persistent memory.
        (true, 3 | 6) | (false, 3) => {
            if is_remote {
                Level::Remote
            } else {
                Level::Dram
            }
        }
        // Memory behind a link or of another agent.
        (true, 8 | 12) => Level::Remote,
        _ => Level::Unresolved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::perf_data::ibs_raw;

    /// Load, missed L1 and L2, address valid; 11 misses under way; a latency of 400.
    const MISS: u64 = 1 | 1 << 7 | 1 << 17 | 1 << 20 | 11 << 26 | 400 << 32;

    #[test]
    fn registers_tell_level_and_latency() {
        let parse = |data2, data3| IbsOp::parse(&ibs_raw(ZEN4, data2, data3, 0x8000)).unwrap();
        let dram = parse(3, MISS);
        assert_eq!((dram.level, dram.latency, dram.address), (Level::Dram, Some(400), Some(0x8000)));
        assert_eq!(
            (dram.kind, dram.translation, dram.is_locked),
            (AccessKind::Load, Translation::Tlb, false)
        );
        assert_eq!(parse(3 | 1 << 4, MISS).level, Level::Remote);
        assert_eq!(parse(1, MISS).level, Level::L3);
        assert_eq!(parse(2, MISS).level, Level::Remote);
        assert_eq!(parse(1, MISS & !(1 << 20)).level, Level::L2);
        assert_eq!(parse(1, MISS | 1 << 16).level, Level::InFlight);
        let hit = parse(0, 1 | 1 << 17 | 77 << 32);
        assert_eq!((hit.level, hit.latency), (Level::L1, None), "a hit has no latency of a miss");
        assert_eq!(parse(0, 2 | 1 << 2 | 1 << 3 | 1 << 17).translation, Translation::Walk);
        assert!(parse(3, MISS | 1 << 15).is_locked);
        let zen3 = IbsOp::parse(&ibs_raw(0, 2, MISS, 0)).unwrap();
        assert_eq!(zen3.level, Level::L3);
    }

    #[test]
    fn what_is_no_access_or_cut_off_is_none() {
        assert_eq!(IbsOp::parse(&ibs_raw(0, 3, MISS & !1, 0)), None);
        let whole = ibs_raw(0, 3, MISS, 0);
        for length in 0..4 + 6 * 8 {
            assert_eq!(IbsOp::parse(&whole[..length]), None);
        }
    }
}
