//! Loads: where their addresses come from, and what that tells about how they miss.
//!
//! ```text
//! place      what holds a value that is followed: a register, a slot of the frame, a fixed address
//! unit       the instructions of a unit, what each writes, and its loops
//! reaching   which definitions of a place may be the last ones before an instruction
//! sources    what an address hangs on, followed back through copies and arithmetic
//! classes    chase, field, gather, hash, stride: the class of a load
//! rounds     whether the iterations of a loop wait for one another
//! ```

mod classes;
mod found;
mod place;
mod reaching;
mod rounds;
mod sources;
mod unit;

pub use classes::Classes;
pub use found::Reaching;
pub use place::{Base, Loaded, Place};
pub use reaching::Region;
pub use rounds::Rounds;
pub use sources::Sources;
pub use unit::{Access, Unit, is_thread_local};
