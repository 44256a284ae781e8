//! From samples of a program to the loads that stall and their data. Pure: samples and bytes in, a
//! profile record out.
//!
//! ```text
//! tally          samples, counted by place while the program runs
//! accesses       loads and stores that the hardware sampled, counted likewise
//! hardware       the figures of a profile that is made of those
//! code           from a sampled instruction to the load that the core waited for
//! data_address   which data that load read, by the registers of a sample
//! footprint      how much memory a load's addresses are spread over
//! weights        the cache sizes, latencies and costs of this machine
//! level          which level serves them, by their footprint and the cache sizes
//! each           how long the core waits each time a load runs
//! probes         loads that are stopped: their addresses, and how long they take
//! dependence     what the code around a load tells of how its misses follow one another
//! pattern        chain, parallel or stream
//! unwind         the calls that led to a sample, by its registers and its stack
//! stacks         all of those calls, as one tree
//! source         a mapped file: its code around what was sampled, and its names
//! calls          the tree of calls with names
//! made_code      code that programs make while they run, and its names
//! areas          memory that a process maps itself, by the call that mapped it
//! heap           which allocation holds an address, at the time of a sample
//! sites          the calls that led to allocations
//! site_names     what people call such a site
//! contexts       what was allocated on each path of calls to a site, for compilers
//! objects        which variable, allocation or area an address lies in
//! object_stalls  how much of the stall each object has
//! sharing        which cache lines threads share, and what that costs
//! findings       what to do about the waiting
//! annotate       the code of functions that took time, with its samples
//! run            what is known of a run beside its samples
//! profile        all of it, put together as the record
//! ```
#![forbid(unsafe_code)]

pub mod accesses;
pub mod address_space;
mod annotate;
mod areas;
mod calls;
pub mod code;
mod contexts;
pub mod data_address;
mod dependence;
pub mod each;
mod findings;
pub mod footprint;
mod hardware;
pub mod heap;
pub mod level;
mod made_code;
mod makers;
mod names;
mod object_stalls;
pub mod objects;
pub mod pattern;
pub mod probes;
pub mod profile;
pub mod registers;
mod run;
pub mod share;
mod sharing;
mod site_names;
pub mod sites;
mod source;
pub mod stacks;
pub mod tally;
pub mod unwind;
pub mod weights;

pub use made_code::MadeCode;
pub use names::demangled;
pub use profile::{accesses_profile, profile};
pub use run::Run;
pub use source::ModuleFile;
