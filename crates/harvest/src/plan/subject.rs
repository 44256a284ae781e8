//! What the planner weighs: a file in its role, and the loads in it that may become sites.

use records::plan::{Live, LoadClass, Place, Prefetch, Role};
use serde::{Deserialize, Serialize};
use units::Bytes;

/// A load that may become a site, as static analysis sees it. A large program has hundreds of
/// thousands of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub address: u64,
    /// Which of the subject's [`Subject::names`] it lies in.
    pub function: u32,
    pub class: LoadClass,
    pub prefetch: Prefetch,
    pub loop_depth: u32,
    /// Instructions of the innermost loop around it.
    pub loop_size: Option<u32>,
    /// Instructions in an iteration of its loop, where iterations do not depend on each other.
    pub round: Option<u32>,
    pub saved: Saved,
    /// Candidates that one yield can serve have the same number; the first in the program comes
    /// first.
    pub group: u32,
    /// It reads the cache line of an earlier access.
    pub same_line: bool,
    /// Whether its function has no twin, so that no yield can be put before it.
    pub without_twin: bool,
}

/// What a yield would have to save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// A bit for each general register, by its number.
    pub general: u16,
    pub vectors: u8,
    pub masks: u8,
    pub flags: bool,
}

/// A function that has candidates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    pub start: u64,
    pub name: Option<String>,
}

/// A file in its role, analysed.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    pub path: String,
    pub role: Role,
    pub build_id: Option<String>,
    pub content: String,
    pub size: Bytes,
    pub functions: usize,
    pub accesses: usize,
    pub names: Vec<Function>,
    /// Ascending by address within a function.
    pub candidates: Vec<Candidate>,
}

const GENERAL: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

impl Saved {
    pub(crate) fn general(self) -> u32 {
        self.general.count_ones()
    }
}

impl From<Saved> for Live {
    fn from(saved: Saved) -> Self {
        let is_saved = |&number: &usize| saved.general & (1 << number) != 0;
        Self {
            general: (0..16).filter(is_saved).map(|number| GENERAL[number].to_owned()).collect(),
            vectors: u32::from(saved.vectors),
            masks: u32::from(saved.masks),
            flags: saved.flags,
        }
    }
}

impl Subject {
    /// Where a candidate is, as far as it is known without its file; the rest is added by
    /// [`crate::find::names::complete`].
    pub(crate) fn place(&self, candidate: &Candidate) -> Place {
        let function = &self.names[candidate.function as usize];
        Place {
            address: candidate.address,
            instruction: String::new(),
            function: function.name.clone(),
            offset: (candidate.address - function.start) as u32,
            source: None,
        }
    }
}
