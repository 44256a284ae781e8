//! Words of another process's memory. Addresses come from there, too, and may be anything.

use std::fs::File;

/// Reads memory of a process.
pub(crate) type Read<'r> = &'r mut dyn FnMut(u64, &mut [u8]) -> Option<()>;

/// The word at this distance behind an address.
pub(crate) fn word(address: u64, behind: u64, read: Read<'_>) -> Option<u64> {
    let mut bytes = [0; 8];
    read(address.checked_add(behind)?, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

/// Half of one.
pub(crate) fn half(address: u64, behind: u64, read: Read<'_>) -> Option<u32> {
    let mut bytes = [0; 4];
    read(address.checked_add(behind)?, &mut bytes)?;
    Some(u32::from_le_bytes(bytes))
}

/// The words that bytes are, without what is less than one.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + Clone {
    bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
}

/// The memory of a process, opened once.
pub(crate) fn opened(memory: &mut Option<File>, process: u32) -> Option<&File> {
    if memory.is_none() {
        *memory = File::open(format!("/proc/{process}/mem")).ok();
    }
    memory.as_ref()
}
