//! The documents that pass between verbs: what is in them, how they are read, written and kept
//! readable.
//!
//! To add a kind of record: a module with its types, `impl Record` for the outermost one, a line in
//! `kinds.rs`, an example in `crates/records/fixtures/`; then `make regenerate` writes its JSON
//! Schema. To change a kind that has been released: see `envelope.rs`.
#![forbid(unsafe_code)]

mod body;
mod envelope;
mod exact;
pub mod host;
mod kinds;
mod links;
pub mod machine;
pub mod plan;
pub mod profile;
mod read;
pub mod recipe;
pub mod reproduction;
pub mod run;
pub mod tour;
mod trusted;
mod write;

pub use body::{Misfit, read as read_body, write as write_body};
pub use envelope::{Document, Header, Record, Upgrade};
pub use exact::{path_of, text_of};
pub use kinds::{AnyRecord, KINDS, Kind, read_any};
pub use read::{Problem, ReadError, parse, read};
pub use trusted::{
    check_trusted_directory, make_private_directory, temporary_directory, temporary_directory_in,
};
pub use write::{
    WriteError, check_writable, create_directory, create_output, write_atomically, write_bytes_atomically,
    write_program_atomically,
};

/// The system's words for an error, without its number: for a line that a person reads.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
