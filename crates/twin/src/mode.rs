//! What is put between the instructions of twins.

use serde::{Deserialize, Serialize};

/// The mode of a rewrite. Its number is written into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing: twins are copies.
    Identity,
    /// Garbage into everything claimed dead, before every instruction.
    Poison(VectorWidth),
}

/// How wide the vector registers of the machine are that the result will run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorWidth {
    Sse,
    Avx,
    Avx512,
}

impl Mode {
    pub fn number(self) -> u32 {
        match self {
            Self::Identity => 1,
            Self::Poison(_) => 2,
        }
    }
}
