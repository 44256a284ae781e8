//! Quantities with their uncertainty, and address spaces as types; seeded random numbers and
//! quantiles, for measurements and models alike.
//!
//! To add a unit: a variant of [`Unit`], its spelling in JSON, nothing else. To add an address
//! space: a line of [`address`].
#![forbid(unsafe_code)]

mod address;
mod bytes;
mod display;
mod estimate;
mod quantile;
mod quantity;
pub mod random;

pub use address::{Avma, FileOffset, Svma};
pub use bytes::{Bytes, ParseBytesError};
pub use estimate::Estimate;
pub use quantile::quantile_sorted;
pub use quantity::{Basis, Latency, Quantity, Unit};
pub use random::Rng;
