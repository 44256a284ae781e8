//! The data that loads read: where it lies, whose it is, and how far it is from the core.
//!
//! ```text
//! data_address   which data a load read, by the registers of a sample
//! pattern        chain, parallel or stream
//! pace           how long one execution of a stream's load takes
//! footprint      how much memory a load's addresses are spread over
//! reuse          how much of it a load works on at a time
//! level          which level serves them, by both and the cache sizes
//! objects        which variable, allocation or area an address lies in
//! site_names     what people call a site where memory is allocated
//! object_stalls  how much of the stall each object has
//! contexts       what was allocated on each path of calls to a site, for compilers
//! ```
//!
//! Whatever is told by the addresses of one load, or of the objects behind them, belongs here; what
//! several threads do to the same lines is in `sharing`.

pub(crate) mod contexts;
pub(crate) mod data_address;
pub(crate) mod footprint;
pub(crate) mod level;
pub(crate) mod object_stalls;
pub(crate) mod objects;
pub(crate) mod pace;
pub(crate) mod pattern;
pub(crate) mod reuse;
pub(crate) mod site_names;
