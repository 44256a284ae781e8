//! What an Arm core tells of sampled operations: the packets of its statistical profiling
//! extension, taken apart.
//!
//! A record is a run of packets that ends with a time stamp, or with an end packet. The first byte
//! of a packet says what it is and, in two bits, how long its payload is:
//!
//! ```text
//! 00 padding     01 end          71 time stamp
//! 42 52 62 72 events             43 53 63 73 data source
//! 64..67 context 48..4b operation
//! 98..9f counter b0..b7 address  20..23, then one of both: the same with a longer index
//! ```

use insight::samples::{AccessKind, Translation};
use records::profile::Level;

/// A sampled load or store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpeRecord {
    pub ip: u64,
    /// It ran at a higher exception level than programs do.
    pub in_kernel: bool,
    pub address: Option<u64>,
    pub kind: AccessKind,
    /// Cycles from dispatch to completion.
    pub latency: Option<u32>,
    /// What served it; its meaning depends on the core.
    pub source: Option<u64>,
    pub events: u64,
    pub is_locked: bool,
    /// What the kernel wrote into the context register: the thread, where it does.
    pub context: Option<u32>,
    /// Ticks of the core's generic timer.
    pub ticks: Option<u64>,
}

/// The record so far.
#[derive(Default)]
struct Building {
    ip: Option<(u64, bool)>,
    address: Option<u64>,
    operation: Option<(AccessKind, bool)>,
    latency: Option<u32>,
    source: Option<u64>,
    events: u64,
    context: Option<u32>,
}

const PADDING: u8 = 0;
const END: u8 = 1;
const TIME_STAMP: u8 = 0x71;
const EXTENDED: u8 = 0x20;

/// All loads and stores in these bytes. A packet that is not known voids its record: what follows
/// is looked through for the next one.
pub(super) fn records(trace: &[u8]) -> Vec<SpeRecord> {
    let mut found = Vec::new();
    let mut record = Building::default();
    let mut is_void = false;
    let mut at = 0;
    while let Some(&first) = trace.get(at) {
        match first {
            PADDING => {
                at += 1;
                continue;
            }
            END => {
                at += 1;
                found.extend(std::mem::take(&mut record).finish(None).filter(|_| !is_void));
                is_void = false;
                continue;
            }
            _ => {}
        }
        let (header, index_high, behind) = if first & 0xfc == EXTENDED {
            let Some(&second) = trace.get(at + 1) else { break };
            if second == 0 {
                // Padding up to an aligned place, counted from the beginning of the trace.
                at = (at + 1).next_multiple_of(1 << ((first & 3) + 1));
                continue;
            }
            (second, (first & 3) << 3, at + 2)
        } else {
            (first, 0, at + 1)
        };
        let size = 1 << (header >> 4 & 3);
        let Some(payload) = trace.get(behind..behind + size) else { break };
        let payload = payload.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        if header == TIME_STAMP {
            found.extend(std::mem::take(&mut record).finish(Some(payload)).filter(|_| !is_void));
            is_void = false;
        } else if !record.packet(header, index_high, payload) {
            is_void = true;
            at += 1;
            continue;
        }
        at = behind + size;
    }
    found
}

impl Building {
    /// Takes a packet; whether it is known.
    fn packet(&mut self, header: u8, index_high: u8, payload: u64) -> bool {
        let index = index_high | header & 7;
        match header {
            _ if header & 0xcf == 0x42 => self.events = payload,
            _ if header & 0xcf == 0x43 => self.source = Some(payload),
            _ if header & 0xfc == 0x64 => self.context = Some(payload as u32),
            _ if header & 0xfc == 0x48 => self.operation = operation(header & 3, payload).or(self.operation),
            _ if header & 0xf8 == 0x98 => {
                const TOTAL: u8 = 0;
                if index == TOTAL {
                    self.latency = Some(payload as u32);
                }
            }
            _ if header & 0xf8 == 0xb0 => {
                const INSTRUCTION: u8 = 0;
                const DATA: u8 = 2;
                match index {
                    INSTRUCTION => self.ip = Some((address(payload), payload >> 61 & 3 != 0)),
                    DATA => self.address = Some(address(payload)),
                    _ => {}
                }
            }
            _ => return false,
        }
        true
    }

    fn finish(self, ticks: Option<u64>) -> Option<SpeRecord> {
        let (ip, in_kernel) = self.ip?;
        let (kind, is_locked) = self.operation?;
        Some(SpeRecord {
            ip,
            in_kernel,
            address: self.address,
            kind,
            latency: self.latency,
            source: self.source,
            events: self.events,
            is_locked,
            context: self.context,
            ticks,
        })
    }
}

/// The uppermost byte of an address packet is a tag or the mode; that of an address repeats bit 55.
fn address(payload: u64) -> u64 {
    ((payload << 8) as i64 >> 8) as u64
}

/// Whether an operation loads or stores, and whether it is atomic.
fn operation(class: u8, payload: u64) -> Option<(AccessKind, bool)> {
    const ACCESS: u8 = 1;
    const STORES: u64 = 1;
    const EXTENDED_MASK: u64 = 0xe2;
    const EXTENDED: u64 = 2;
    const ATOMIC: u64 = 1 << 2;
    if class != ACCESS {
        return None;
    }
    if payload & EXTENDED_MASK == EXTENDED && payload & ATOMIC != 0 {
        return Some((AccessKind::Both, true));
    }
    Some((if payload & STORES == 0 { AccessKind::Load } else { AccessKind::Store }, false))
}

impl SpeRecord {
    /// By the source where the core is one whose sources are documented alike (Neoverse N1, N2, V1,
    /// V2), else by the events that are the same on all cores.
    pub(super) fn level(&self, is_neoverse: bool) -> Level {
        const L1_ACCESS: u64 = 1 << 2;
        const L1_REFILL: u64 = 1 << 3;
        const LAST_LEVEL_ACCESS: u64 = 1 << 8;
        const LAST_LEVEL_MISS: u64 = 1 << 9;
        const REMOTE: u64 = 1 << 10;
        if let Some(source) = self.source.filter(|_| is_neoverse && self.kind != AccessKind::Store) {
            return match source {
                0 => Level::L1,
                8 => Level::L2,
                // Another core of the cluster, the cluster's cache, the system's cache.
                9..=11 => Level::L3,
                // Another cluster, another socket.
                12 | 13 => Level::Remote,
                14 => Level::Dram,
                _ => Level::Unresolved,
            };
        }
        let has = |event: u64| self.events & event != 0;
        if has(REMOTE) {
            Level::Remote
        } else if has(LAST_LEVEL_MISS) {
            Level::Dram
        } else if has(LAST_LEVEL_ACCESS) {
            Level::L3
        } else if has(L1_REFILL) {
            Level::L2
        } else if has(L1_ACCESS) {
            Level::L1
        } else {
            Level::Unresolved
        }
    }

    pub(super) fn translation(&self) -> Translation {
        const ACCESS: u64 = 1 << 4;
        const WALK: u64 = 1 << 5;
        if self.events & WALK != 0 {
            Translation::Walk
        } else if self.events & ACCESS != 0 {
            Translation::Tlb
        } else {
            Translation::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a load by thread 42 that takes 321 cycles.
    fn load(ip: u64, address: u64, events: u16, source: u8, ticks: u64) -> Vec<u8> {
        testkit::perf_data::spe_load(ip, address, 42, 321, events, source, ticks)
    }

    const TAG: u64 = 0xb4 << 56;

    #[test]
    fn a_record_is_put_together_from_its_packets() {
        let trace = load(0x40_1000, TAG | 0xffff_8000, 0b1_0011_1110, 14, 777);
        let found = records(&trace);
        let [record] = &found[..] else { panic!("{found:?}") };
        assert_eq!((record.ip, record.in_kernel, record.address), (0x40_1000, false, Some(0xffff_8000)));
        assert_eq!((record.kind, record.latency, record.context), (AccessKind::Load, Some(321), Some(42)));
        assert_eq!((record.ticks, record.translation()), (Some(777), Translation::Walk));
        assert_eq!((record.level(true), record.level(false)), (Level::Dram, Level::L3));
    }

    #[test]
    fn records_follow_one_another_over_padding() {
        let mut trace = vec![0; 3];
        trace.extend(load(0x1000, 0x8000, 0b100, 0, 1));
        trace.extend([EXTENDED | 3, 0]); // up to a multiple of 16
        trace.resize(trace.len().next_multiple_of(16), 0xff);
        let mut without_time = load(0x2000 | 1 << 61, 0x9000, 0b1100, 8, 2);
        without_time.truncate(without_time.len() - 9);
        without_time.push(END);
        trace.extend(without_time);
        trace.extend(load(0x3000, 0x8000, 0b100, 0, 3));
        let found: Vec<_> = records(&trace).iter().map(|r| (r.ip, r.in_kernel, r.ticks)).collect();
        assert_eq!(found, [(0x1000, false, Some(1)), (0x2000, true, None), (0x3000, false, Some(3))]);
    }

    #[test]
    fn what_is_no_access_or_damaged_is_left_out() {
        let whole = load(0x1000, 0x8000, 0b100, 0, 1);
        for length in 0..whole.len() {
            assert_eq!(records(&whole[..length]), []);
        }
        let mut branch = whole.clone();
        branch[14] = 0x4a; // class of the operation
        assert_eq!(records(&branch), []);
        let mut damaged = whole.clone();
        damaged[14] = 0xff;
        damaged.extend(&whole);
        assert_eq!(records(&damaged).len(), 1, "the next record is found");
        let mut atomic = whole;
        atomic[15] = 0b110;
        let found = records(&atomic);
        assert_eq!((found[0].kind, found[0].is_locked), (AccessKind::Both, true));
    }
}
