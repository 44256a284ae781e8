//! How wide the vector registers of a machine are.

use serde::{Deserialize, Serialize};

/// How wide the vector registers of the machine are that the result will run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorWidth {
    Sse,
    Avx,
    Avx512,
}

impl VectorWidth {
    /// Of the machine that this runs on. A rewrite itself goes by the width that it is given.
    pub fn of_this_machine() -> Self {
        if std::is_x86_feature_detected!("avx512bw") {
            Self::Avx512
        } else if std::is_x86_feature_detected!("avx") {
            Self::Avx
        } else {
            Self::Sse
        }
    }

    pub fn bytes(self) -> u64 {
        match self {
            Self::Sse => 16,
            Self::Avx => 32,
            Self::Avx512 => 64,
        }
    }
}
