//! Quantities with their uncertainty, and address spaces as types; seeded random numbers,
//! quantiles and medians, and shares of counts, for measurements and models alike;
//! how a run tells how far it has come.
//!
//! To add a unit: a variant of [`Unit`], its spelling in JSON, nothing else. To add an address
//! space: a line of [`address`].
#![forbid(unsafe_code)]

mod address;
mod bootstrap;
mod bytes;
mod display;
mod estimate;
pub mod load;
mod progress;
mod quantile;
mod quantity;
pub mod random;
mod share;
pub mod student;
mod would_help;

pub use address::{Avma, FileOffset, Svma};
pub use bootstrap::median_interval;
pub use bytes::{Bytes, ParseBytesError};
pub use display::figures;
pub use estimate::Estimate;
pub use progress::{Progress, Silent};
pub use quantile::{median, middle_sorted, quantile_sorted};
pub use quantity::{Basis, Bound, Latency, Quantity, Unit};
pub use random::Rng;
pub use share::share;
pub use would_help::WouldHelp;
