//! Pieces of the result.

/// A piece of the result that is loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub address: u64,
    pub offset: u64,
    pub size: u64,
}
