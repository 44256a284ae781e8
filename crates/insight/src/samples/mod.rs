//! What is counted while the program runs: its samples by place, its calls as a tree, and which
//! memory was whose at the time of each sample.
//!
//! ```text
//! address_space  what is mapped where in a process
//! registers      a thread's general registers at a sample
//! tally          samples, counted by place
//! accesses       loads and stores that the hardware sampled, counted likewise
//! unwind         the calls that led to a sample, by its registers and its stack
//! saved          the registers of callers
//! stacks         all of those calls, as one tree
//! heap           which allocation holds an address, at the time of a sample
//! areas          memory that a process maps itself, by the call that mapped it
//! runtime_heap   memory in which a runtime keeps its objects
//! makers         which sites made the small allocations around an address
//! population     whom samples belong to, where all processes are sampled
//! sites          the calls that led to allocations
//! ```
//!
//! Whatever has to be known before a sample is forgotten belongs here. It runs beside the program,
//! so its memory is bounded, and it decodes no code.

pub(crate) mod accesses;
pub(crate) mod address_space;
pub(crate) mod areas;
pub(crate) mod heap;
pub(crate) mod makers;
pub(crate) mod population;
pub(crate) mod registers;
pub(crate) mod runtime_heap;
pub(crate) mod saved;
pub(crate) mod sites;
pub(crate) mod stacks;
pub(crate) mod tally;
pub(crate) mod unwind;

pub use accesses::{Access, AccessKind, Translation};
pub use address_space::{AddressSpace, MappedId, Mapping, Place};
pub use heap::Allocated;
pub use population::{Counts, Population, Row, Runs};
pub use registers::Registers;
pub use runtime_heap::RuntimeHeap;
pub use saved::KnownRegisters;
pub use sites::SiteId;
pub use stacks::ScriptLine;
pub use tally::{Area, Mapped, PROBES_OF_LOAD, Sample, Steady, Tally};
pub use unwind::{Calls, CutOff, UnwindTables, Unwinder};
