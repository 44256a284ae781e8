//! What can be wrong with a file: one clear line each.

/// Why a file could not be read as an x86-64 ELF module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error("not an ELF file")]
    NotElf,
    #[error("a 32-bit ELF file; only 64-bit x86-64 is supported")]
    Not64Bit,
    #[error("a big-endian ELF file; only x86-64 is supported")]
    BigEndian,
    #[error("an ELF file for machine {0}; only x86-64 (62) is supported")]
    WrongMachine(u16),
    #[error("an ELF file of type {0}; only executables and shared objects are supported")]
    NotLoadable(u16),
    #[error("truncated: {0} reach beyond the end of the file")]
    Truncated(&'static str),
    #[error("malformed: {0}")]
    Malformed(&'static str),
}
