//! `struct perf_event_attr`: what an event samples, and what each of its samples holds.

use image::elf::cursor::Cursor;

/// Bits of `sample_type`, in the order in which samples hold these fields but for the last three.
pub(crate) mod field {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const WEIGHT: u64 = 1 << 14;
    pub(crate) const DATA_SRC: u64 = 1 << 15;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    pub(crate) const TRANSACTION: u64 = 1 << 17;
    pub(crate) const REGS_INTR: u64 = 1 << 18;
    pub(crate) const PHYS_ADDR: u64 = 1 << 19;
    pub(crate) const AUX: u64 = 1 << 20;
    pub(crate) const CGROUP: u64 = 1 << 21;
    pub(crate) const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub(crate) const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub(crate) const WEIGHT_STRUCT: u64 = 1 << 24;
    /// A kernel that knows more fields may put them anywhere.
    pub(crate) const KNOWN: u64 = (1 << 25) - 1;
}

const EXCLUDE_KERNEL: u64 = 1 << 5;
const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// The size of the first version, and of the longest one whose fields are read here.
const FIRST_BYTES: usize = 64;
const READ_BYTES: usize = 112;

/// The part of the attributes that is read here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub kind: u32,
    pub config: u64,
    /// Events a sample, or samples a second.
    pub period: u64,
    pub is_frequency: bool,
    pub sample_type: u64,
    pub read_format: u64,
    pub config1: u64,
    pub branch_sample_type: u64,
    pub regs_user: u64,
    pub regs_intr: u64,
    pub excludes_kernel: bool,
    /// Other records than samples end with the fields that tell their time and event.
    pub sample_id_all: bool,
}

impl Attributes {
    /// Reads attributes that are this long in the file: what an older kernel did not know is zero.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < FIRST_BYTES {
            return None;
        }
        let mut all = [0; READ_BYTES];
        let told = bytes.len().min(READ_BYTES);
        all[..told].copy_from_slice(&bytes[..told]);
        let word = |at: usize| Cursor::new(&all, at).u64();
        let flags = word(40)?;
        Some(Self {
            kind: Cursor::new(&all, 0).u32()?,
            config: word(8)?,
            period: word(16)?,
            is_frequency: flags & FREQUENCY != 0,
            sample_type: word(24)?,
            read_format: word(32)?,
            config1: word(56)?,
            branch_sample_type: word(72)?,
            regs_user: word(80)?,
            regs_intr: word(96)?,
            excludes_kernel: flags & EXCLUDE_KERNEL != 0,
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
        })
    }

    pub(crate) fn holds(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }
}

/// An event that was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DescribedEvent {
    pub attributes: Attributes,
    /// One for each CPU or thread that it was opened for.
    pub ids: Vec<u64>,
    /// As `perf record -e` was told; empty where the file does not say.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_all_sizes_are_read() {
        let mut bytes = vec![0; 136];
        bytes[0] = 4;
        bytes[8..16].copy_from_slice(&0x1cd_u64.to_le_bytes());
        bytes[24..32].copy_from_slice(&(field::IP | field::WEIGHT).to_le_bytes());
        bytes[40..48].copy_from_slice(&(SAMPLE_ID_ALL | FREQUENCY).to_le_bytes());
        bytes[56..64].copy_from_slice(&30_u64.to_le_bytes());
        bytes[80..88].copy_from_slice(&0xff_u64.to_le_bytes());
        let whole = Attributes::parse(&bytes).unwrap();
        assert_eq!((whole.kind, whole.config, whole.config1, whole.regs_user), (4, 0x1cd, 30, 0xff));
        assert!(whole.sample_id_all && whole.is_frequency && !whole.excludes_kernel);
        assert!(whole.holds(field::WEIGHT) && !whole.holds(field::ADDR));
        let first = Attributes::parse(&bytes[..64]).unwrap();
        assert_eq!(first, Attributes { regs_user: 0, ..whole });
        assert_eq!(Attributes::parse(&bytes[..63]), None);
    }
}
