//! What decoding a unit needs to know about its module.

use units::Svma;

/// What decoding needs to know about the module.
#[derive(Clone, Copy)]
pub struct Surroundings<'a, 'd> {
    pub image: &'a crate::Image<'d>,
    /// The executable address range, for constants that point into code.
    pub code: (u64, u64),
    /// What of it is data ([`crate::Image::data_among_code`]).
    pub data: &'a [(u64, u64)],
    /// Whether a call to this address never returns.
    pub never_returns: &'a (dyn Fn(Svma) -> bool + Sync),
    /// Whether a call through this slot never returns.
    pub slot_never_returns: &'a (dyn Fn(Svma) -> bool + Sync),
    /// How many entries the jump tables of a unit may have, all in all.
    pub most_entries: usize,
}
