//! Sides of records against each other: what became slower, what became faster, what is the same,
//! and what these runs cannot tell. Pure: records in, a comparison out, text of it.
//!
//! A side is one or more runs of the same thing. How it is judged, in the order of the files:
//!
//! 1. `figure`, `machine`, `profile`, `harvested`: a record is a list of named figures, each with
//!    the interval of its blocks. Headline figures may fail a gate; the others only show where.
//! 2. `sides`: runs are put together; mixed kinds and the same run twice are refused.
//! 3. `environment`: what else differs between the sides.
//! 4. `spread`: how far apart runs of one side are; the A/A floor.
//! 5. `bootstrap`: the ratio of run-level medians and its standard error, over runs and blocks.
//! 6. `units::student`, `several`: its p-value, and that of many figures judged together.
//! 7. `verdict`: regressed, improved, equivalent, inconclusive.
//!
//! Beside them `limits`: what the figures of a fleet probe must keep.
//!
//! To add a kind of record: a file as `machine.rs`, and a line in `sides.rs`.
#![forbid(unsafe_code)]

mod bootstrap;
mod comparison;
mod environment;
mod figure;
mod harvested;
mod html;
mod judge;
pub mod limits;
mod machine;
mod markdown;
mod profile;
mod random;
mod recipe;
mod several;
mod sides;
mod spread;
mod text;
mod verdict;

pub use comparison::{
    Against, Compared, Comparison, Counts, Gate, GateOutcome, Options, SideSummary, SideValue,
};
pub use environment::Difference;
pub use figure::Better;
pub use html::html;
pub use judge::compare;
pub use markdown::markdown;
pub use sides::{Member, Refused, Side};
pub use text::text;
pub use verdict::Verdict;
