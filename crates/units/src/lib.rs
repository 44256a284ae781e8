//! Quantities with their uncertainty, and address spaces as types.
//!
//! To add a unit: a variant of [`Unit`], its spelling in JSON, nothing else. To add an address
//! space: a line of [`address`].
#![forbid(unsafe_code)]

mod address;
mod bytes;
mod display;
mod estimate;
mod quantity;

pub use address::{Avma, FileOffset, Svma};
pub use bytes::{Bytes, ParseBytesError};
pub use estimate::Estimate;
pub use quantity::{Basis, Latency, Quantity, Unit};
