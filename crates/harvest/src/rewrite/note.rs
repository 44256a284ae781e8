//! What is kept beside a rewritten file.

use records::plan::Counts;
use records::run::Proof;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of a rewritten file besides its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub counts: Counts,
    pub proof: Proof,
    /// Sites that could not be made, by address, and why.
    pub left_out: BTreeMap<u64, String>,
    /// What else there is to say about it.
    pub remark: Option<String>,
}

/// A rewritten file in its place.
pub type Entry = store::cache::Entry<Note>;
