//! Rewrites an ELF file so that each function has a *twin*: a second copy in a new segment, with code put between its
//! instructions, while the original stays where it was, whole but for a jump at its entry. Pure: bytes in, bytes out.
//!
//! Wherever a twin cannot go on, it jumps to the same instruction in the original. So nothing has to be recovered about
//! a program for the result to be right, only for it to cover much.
//!
//! What a twin relies on:
//! - nothing jumps into a twin but its original's entry, other twins, and what returns or unwinds to a call made there;
//! - a function's return address is used to return (or to look up unwind tables), not as data. Where a function is seen
//!   to do otherwise, its callers keep no twins;
//! - code is not read as data where entries are patched.
//!
//! [`rewrite`] goes through the phases; [`mod@map`] describes the result for checkers.
#![forbid(unsafe_code)]

mod error;
mod incremental;
mod layout;
mod modes;
pub mod output;
pub mod report;
mod rewrite;
mod select;
mod yields;

pub use error::TwinError;
pub use image::liveness::Knowledge;
pub use modes::mode::{Mode, VectorWidth};
pub use report::{Coverage, Harvested, SiteRefusal};
pub use rewrite::{Rewriter, Rewritten, rewrite};
pub use select::sites::{Bounds, Costs, Prefetch, Reach, Site, Sites, Spares, UNCOUNTED, Which};
