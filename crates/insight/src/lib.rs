//! From samples of a program to the loads that stall and their data. Pure: samples and bytes in, a
//! profile record out.
//!
//! ```text
//! samples   what is counted while the program runs: samples by place, calls, allocations
//! code      which instruction the core waited for, and what it is called
//! probes    loads that are stopped: their addresses, and how long they take
//! data      which data a load read, whose it is, and which level serves it
//! sharing   which cache lines threads share, and what that costs
//! findings  all of it, put together as the record, and what to do about the waiting
//! ```
//!
//! Each folder uses those above it, and all of them `share`: shares of samples, with their
//! intervals.
#![forbid(unsafe_code)]

mod code;
mod data;
mod findings;
pub mod probes;
pub mod samples;
mod share;
mod sharing;

pub use code::landings::{Landing, WaitedFor, landings};
pub use code::made_code::{Made, MadeCode, UNNAMED_FUNCTION, UNNAMED_MODULE, shown_name};
pub use code::made_file::{MadeFunction, put_into_files};
pub use code::names::demangled;
pub use code::source::ModuleFile;
pub use data::level::CacheSizes;
pub use findings::profile::{accesses_profile, profile, profile_and_places};
pub use findings::run::Run;
pub use findings::system::PlaceTold;
pub use findings::weights::Weights;
pub use image::names::{Frame, Line, ToldFrames};
pub use share::measured_share;
