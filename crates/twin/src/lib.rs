//! Rewrites an ELF file so that each function has a *twin*: a second, instrumented copy in a new
//! segment. The original stays where it is, complete but for a jump at its entry. Pure: bytes in,
//! bytes out.
//!
//! ```text
//! the file                                   the result
//! ┌───────────────┐                          ┌───────────────┐
//! │ .text         │   ┌─────────────┐        │ .text         │  each entry patched: jmp T(entry)
//! │  f: …         │──►│ read, choose│──►     │  f: jmp ──────┼──┐
//! │  g: …         │   │ lay out     │        │  g: jmp ──────┼──┼─┐
//! └───────────────┘   │ place, write│        ├───────────────┤  │ │
//!                     └─────────────┘        │ .text.twin    │  │ │
//!                                            │  f.twin: …  ◄─┼──┘ │
//!                                            │  g.twin: …  ◄─┼────┘
//!                                            └───────────────┘
//! ```
//!
//! Where a twin cannot go on, it jumps to the same instruction in the original. So nothing has to
//! be recovered about a program for the result to be right, only for it to cover much.
//!
//! A twin relies on this:
//! - nothing jumps into a twin but its original's entry, other twins, and returns or unwinders to a
//!   call made there;
//! - a function's return address is used to return (or to look up unwind tables), not as data.
//!   Where a function is seen to do otherwise, its callers get no twins;
//! - code is not read as data where entries are patched.
//!
//! [`rewrite`] goes through the phases. `docs/twin-format.md` describes the result, and the crate
//! `twin-format` reads it.
//!
//! ```
//! use gleaner_twin::{Mode, rewrite};
//!
//! let original = std::fs::read("/proc/self/exe")?;
//! let rewritten = rewrite(&original, None, Mode::Identity)?;
//!
//! let coverage = &rewritten.coverage;
//! assert!(coverage.functions_twinned > 0 && coverage.functions_twinned <= coverage.functions);
//! // The original is still there, and the twins lie behind it.
//! assert!(rewritten.bytes.len() as u64 > coverage.bytes_before + coverage.twin_code_bytes);
//! // What has been rewritten is not rewritten again.
//! assert!(rewrite(&rewritten.bytes, None, Mode::Identity).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod error;
mod incremental;
mod layout;
mod modes;
mod output;
pub mod report;
mod rewrite;
mod select;
mod yields;

pub use error::TwinError;
pub use image::liveness::Knowledge;
pub use modes::mode::Mode;
pub use modes::prefetch::{Ahead, Prefetches, everywhere, own_ahead, own_prefetches};
pub use modes::switches::{Switch, switches};
pub use modes::width::VectorWidth;
pub use report::{Coverage, Harvested, SiteRefusal};
pub use rewrite::{PhaseObserver, Rewriter, Rewritten, rewrite};
pub use select::sites::{Bounds, Costs, LoadReach, Optimisations, Site, SiteChoice, Sites, UNCOUNTED};
