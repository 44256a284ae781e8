//! The documents that pass between verbs: what is in them, how they are read, written and kept readable.
//!
//! To add a kind of record: a module with its types, `impl Record` for the outermost one, and a line in `kinds.rs`;
//! then `make regenerate` writes its JSON Schema. To change a kind that has been released: see `envelope.rs`.
#![forbid(unsafe_code)]

mod envelope;
pub mod host;
pub mod machine;

pub use envelope::{Document, Header, Record, Upgrade};
