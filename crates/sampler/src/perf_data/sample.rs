//! The body of a sample, taken apart field by field: only what is in bounds is believed.
//!
//! Which fields there are says `sample_type` of the event's attributes; they stand in the order of
//! the kernel's header, which is not that of the bits:
//!
//! ```text
//! identifier ip tid time addr id stream_id cpu period read callchain raw branch_stack
//! regs_user stack_user weight data_src transaction regs_intr phys_addr cgroup
//! data_page_size code_page_size aux
//! ```

use super::attributes::{Attributes, field};
use image::elf::cursor::Cursor;
use insight::samples::Registers;
use units::Avma;

/// What a sample holds, as far as it is used. What its event does not sample is zero or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawSample<'b> {
    pub ip: u64,
    pub process: u32,
    pub thread: u32,
    pub time_ns: u64,
    pub address: u64,
    pub period: Option<u64>,
    /// The innermost first, with markers of where the kernel ends.
    pub chain: Vec<u64>,
    pub raw: &'b [u8],
    pub user: Option<Registers>,
    pub interrupted: Option<Registers>,
    /// From the stack pointer on.
    pub stack: &'b [u8],
    pub weight: u64,
    pub data_source: Option<u64>,
}

impl<'b> RawSample<'b> {
    /// Takes a sample's body apart; `None` if a field is cut off, or unknown ones may be between.
    pub(crate) fn parse(body: &'b [u8], attributes: &Attributes) -> Option<Self> {
        if attributes.sample_type & !field::KNOWN != 0 {
            return None;
        }
        let mut at = Cursor::new(body, 0);
        let holds = |field| attributes.holds(field);
        let mut sample = Self::default();
        let one =
            |field: u64, at: &mut Cursor<'b>| if holds(field) { at.u64().map(Some) } else { Some(None) };
        one(field::IDENTIFIER, &mut at)?;
        sample.ip = one(field::IP, &mut at)?.unwrap_or(0);
        if holds(field::TID) {
            (sample.process, sample.thread) = (at.u32()?, at.u32()?);
        }
        sample.time_ns = one(field::TIME, &mut at)?.unwrap_or(0);
        sample.address = one(field::ADDR, &mut at)?.unwrap_or(0);
        one(field::ID, &mut at)?;
        one(field::STREAM_ID, &mut at)?;
        one(field::CPU, &mut at)?;
        sample.period = one(field::PERIOD, &mut at)?;
        if holds(field::READ) {
            skip_counts(&mut at, attributes.read_format)?;
        }
        if holds(field::CALLCHAIN) {
            sample.chain = words(&mut at)?;
        }
        if holds(field::RAW) {
            let size = at.u32()? as usize;
            sample.raw = at.take(size)?;
            at.take((size + 4).next_multiple_of(8) - (size + 4))?;
        }
        if holds(field::BRANCH_STACK) {
            skip_branches(&mut at, attributes.branch_sample_type)?;
        }
        if holds(field::REGS_USER) {
            sample.user = registers(&mut at, attributes.regs_user)?;
        }
        if holds(field::STACK_USER) {
            sample.stack = stack(&mut at)?;
        }
        if holds(field::WEIGHT) {
            sample.weight = at.u64()?;
        } else if holds(field::WEIGHT_STRUCT) {
            // The first of three parts is what `WEIGHT` was: the latency of the access.
            sample.weight = u64::from(at.u32()?);
            at.take(4)?;
        }
        sample.data_source = one(field::DATA_SRC, &mut at)?;
        one(field::TRANSACTION, &mut at)?;
        if holds(field::REGS_INTR) {
            sample.interrupted = registers(&mut at, attributes.regs_intr)?;
        }
        for field in [field::PHYS_ADDR, field::CGROUP, field::DATA_PAGE_SIZE, field::CODE_PAGE_SIZE] {
            one(field, &mut at)?;
        }
        if holds(field::AUX) {
            let size = usize::try_from(at.u64()?).ok()?;
            at.take(size)?;
        }
        Some(sample)
    }
}

/// A number, and as many words.
fn words(at: &mut Cursor<'_>) -> Option<Vec<u64>> {
    let count = usize::try_from(at.u64()?).ok()?;
    let bytes = at.take(count.checked_mul(8)?)?;
    Some(bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))).collect())
}

/// The counts of an event, or of a group of them.
fn skip_counts(at: &mut Cursor<'_>, read_format: u64) -> Option<()> {
    const TIME_ENABLED: u64 = 1;
    const TIME_RUNNING: u64 = 1 << 1;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let times = (read_format & (TIME_ENABLED | TIME_RUNNING)).count_ones() as usize;
    let each = 1 + (read_format & (ID | LOST)).count_ones() as usize;
    let counts = if read_format & GROUP == 0 { 1 } else { usize::try_from(at.u64()?).ok()? };
    let all = each.checked_mul(counts)?.checked_add(times)?.checked_mul(8)?;
    at.take(all).map(|_| ())
}

fn skip_branches(at: &mut Cursor<'_>, branch_sample_type: u64) -> Option<()> {
    const NEWEST_INDEX: u64 = 1 << 17;
    const COUNTERS: u64 = 1 << 19;
    const ENTRY_BYTES: usize = 24;
    let count = usize::try_from(at.u64()?).ok()?;
    if branch_sample_type & NEWEST_INDEX != 0 {
        at.u64()?;
    }
    let each = ENTRY_BYTES + if branch_sample_type & COUNTERS == 0 { 0 } else { 8 };
    at.take(count.checked_mul(each)?).map(|_| ())
}

/// The stack: the bytes reserved for it, these bytes, and how many bytes of it were copied.
fn stack<'b>(at: &mut Cursor<'b>) -> Option<&'b [u8]> {
    let reserved = usize::try_from(at.u64()?).ok()?;
    if reserved == 0 {
        return Some(&[]);
    }
    let bytes = at.take(reserved)?;
    let copied = usize::try_from(at.u64()?).ok()?;
    Some(&bytes[..copied.min(reserved)])
}

/// The registers of a mask. Inner `None`: a sample without them, of another architecture's mode, or
/// without all that addresses are made of.
#[expect(clippy::option_option, reason = "cut off, or there and of no use")]
fn registers(at: &mut Cursor<'_>, mask: u64) -> Option<Option<Registers>> {
    const NONE: u64 = 0;
    const OF_64_BITS: u64 = 2;
    /// The bits of the general registers by their number in instructions: AX, CX, DX, BX, SP, BP,
    /// SI, DI, R8 to R15.
    const BITS: [u32; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23];
    const IP_BIT: u32 = 8;
    let abi = at.u64()?;
    if abi == NONE {
        return Some(None);
    }
    let bytes = at.take(mask.count_ones() as usize * 8)?;
    let value = |bit: u32| {
        let before = (mask & ((1 << bit) - 1)).count_ones() as usize;
        let word = (mask >> bit & 1 == 1).then(|| bytes.get(8 * before..8 * before + 8))??;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    };
    if abi != OF_64_BITS {
        return Some(None);
    }
    let mut general = [0; 16];
    for (register, bit) in general.iter_mut().zip(BITS) {
        let Some(value) = value(bit) else { return Some(None) };
        *register = value;
    }
    Some(value(IP_BIT).map(|ip| Registers { general, ip: Avma(ip) }))
}

/// Values of this size are no addresses but tell which mode those behind them are of.
const MARKERS: u64 = u64::MAX - 4095;
const USER: u64 = -512_i64 as u64;

/// The part of a call chain in user mode, the innermost first.
pub(crate) fn user_part(chain: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let from = chain.iter().position(|&entry| entry == USER).map_or(chain.len(), |at| at + 1);
    chain[from..].iter().copied().take_while(|&entry| entry < MARKERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn every_field_is_found_behind_every_other() {
        let attributes = Attributes {
            sample_type: field::KNOWN & !field::WEIGHT,
            read_format: 1 | 4 | 8,
            branch_sample_type: 1 << 17,
            regs_user: 0x1ff | 0xff << 16,
            regs_intr: 1 << 8,
            ..Attributes::default()
        };
        let mut body = words_of(&[77, 0x40_1000, 5 | 6 << 32, 99, 0x8000, 77, 78, 1, 1000]);
        body.extend(words_of(&[2, 11, 1, 77, 2, 78])); // two counts with ids, one time
        body.extend(words_of(&[2, u64::MAX - 511, 0x40_1000])); // call chain
        body.extend([12, 0, 0, 0]);
        body.extend(*b"twelve bytes");
        body.extend(words_of(&[1, 0, 0x1, 0x2, 0x3])); // one branch, index in front
        body.extend(words_of(&[2]));
        body.extend(words_of(&[10, 13, 11, 12, 16, 17, 15, 14, 0x40_1000, 18, 19, 20, 21, 22, 23, 24, 25]));
        body.extend(words_of(&[16, 0xaa, 0xbb, 8])); // stack
        body.extend(words_of(&[0xfa | 7 << 32 | 9 << 48])); // latency and two more parts
        body.extend(words_of(&[0x1234, 0, 1, 0x99, 0xfff, 3, 4096, 4096, 8, 0xdd]));
        let sample = RawSample::parse(&body, &attributes).unwrap();
        assert_eq!((sample.ip, sample.process, sample.thread, sample.time_ns), (0x40_1000, 5, 6, 99));
        assert_eq!((sample.address, sample.period, sample.weight), (0x8000, Some(1000), 250));
        assert_eq!((sample.raw, sample.stack), (&b"twelve bytes"[..], &words_of(&[0xaa])[..]));
        assert_eq!(sample.chain, [u64::MAX - 511, 0x40_1000]);
        let user = sample.user.unwrap();
        assert_eq!(user.general, std::array::from_fn(|number| number as u64 + 10));
        assert_eq!((user.ip, sample.interrupted), (Avma(0x40_1000), None));
        assert_eq!(sample.data_source, Some(0x1234));
        for length in 0..body.len() {
            assert_eq!(RawSample::parse(&body[..length], &attributes), None, "{length} bytes");
        }
    }

    #[test]
    fn counts_that_lead_beyond_the_end_are_not_believed() {
        for field in
            [field::READ, field::CALLCHAIN, field::RAW, field::BRANCH_STACK, field::STACK_USER, field::AUX]
        {
            let attributes = Attributes { sample_type: field, read_format: 8, ..Attributes::default() };
            for count in [300, u64::MAX, u64::MAX / 8, u64::MAX / 24 + 1, 1 << 61 | 1 << 31] {
                assert_eq!(RawSample::parse(&words_of(&[count, 0]), &attributes), None, "{field:#x} {count}");
            }
        }
        let unknown = Attributes { sample_type: 1 << 40, ..Attributes::default() };
        assert_eq!(RawSample::parse(&[0; 64], &unknown), None);
    }

    #[test]
    fn call_chains_have_a_part_in_user_mode() {
        let chain = [-128_i64 as u64, 0xffff_ffff_8100_0000, USER, 0x40_1000, 0x40_2000];
        assert_eq!(user_part(&chain).collect::<Vec<_>>(), [0x40_1000, 0x40_2000]);
        assert_eq!(user_part(&chain[..2]).next(), None);
        assert_eq!(user_part(&[USER]).next(), None);
        assert_eq!(user_part(&[USER, 0x1000, USER, 0x2000]).collect::<Vec<_>>(), [0x1000]);
    }
}
