//! What the supervisor orders of a thread, as bits of one word: see [`super::count`].

/// Of an order, in the lowest bit: guests are aside, or take part.
pub(crate) const ALONE: u32 = 0;
pub(crate) const GUESTS: u32 = 1;
/// Of an order: something is to be counted.
pub(crate) const COUNTING: u32 = 2;
/// The bits from here on are the order's number.
pub(crate) const NUMBER: u32 = 4;
