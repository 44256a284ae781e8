//! A ledger of what five published documents claim of memory, and what records of this machine say
//! of each claim.
//!
//! A claim is an entry: where the document makes it, in which words, the figure that it comes to,
//! and the *shape* that this figure must have for the claim to hold. Shapes are orders, ratios and
//! cliffs; nanoseconds and cycles of another processor are shown, never tested.
//!
//! To add a claim: an entry in its document's file, with a function that takes the figure from the
//! evidence. To add a document: a file with its claims, and a line in [`ledger::DOCUMENTS`]. To add
//! a figure of a document: a function in its file `drawn.rs`, named in its ledger; a table
//! likewise, with the functions of `tables.rs`.
#![forbid(unsafe_code)]

mod claim;
mod curves;
mod document;
mod evidence;
mod judge;
mod lat_mem_rd;
pub mod ledger;
mod missing;
mod mlp;
mod msh;
mod origin2000;
pub mod programs;
pub mod rounds;
mod tables;
mod vtune;

pub use claim::{Claim, Shape};
pub use curves::curves;
pub use document::Ledger;
pub use evidence::Evidence;
pub use judge::judge;
pub use missing::Missing;
pub use tables::tables;
