//! What a rewrite did and what it left alone, and why.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a unit has no twin. To add a reason: a variant, its text below, and the test that
/// calls for it in `select.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Nothing says how to unwind through it: no entry in the unwind table.
    NoUnwindEntry,
    /// Two entries of the unwind table claim the same bytes.
    OverlapsAnother,
    /// A stub of the procedure linkage table.
    LinkageStub,
    /// The first instruction cannot be decoded.
    NotDecodable,
    /// Two instructions share bytes.
    OverlappingInstructions,
    /// It calls the very next instruction, to learn where it is.
    ReadsOwnAddress,
    /// It calls a function that uses its return address as data.
    CallsAddressReader,
    /// It calls a function that may return twice (setjmp, vfork, getcontext …).
    CallsTwiceReturning,
    /// A signal handler's trampoline, which unwinders know by its bytes.
    SignalFrame,
    /// Its unwind rules depend on where it lies.
    UnportableUnwind,
    /// Its exception table is not of the usual form.
    UnreadableExceptions,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoUnwindEntry => "not in the unwind table",
            Self::OverlapsAnother => "its unwind entry overlaps another",
            Self::LinkageStub => "a stub of the linkage table",
            Self::NotDecodable => "its first instruction cannot be decoded",
            Self::OverlappingInstructions => "instructions share bytes",
            Self::ReadsOwnAddress => "calls the next instruction to learn its address",
            Self::CallsAddressReader => "calls a function that uses its return address as data",
            Self::CallsTwiceReturning => "calls a function that may return twice",
            Self::SignalFrame => "the trampoline of signal handlers",
            Self::UnportableUnwind => "unwind rules that hang on its address",
            Self::UnreadableExceptions => "an unusual exception table",
        })
    }
}

/// Why a twin is reached only from other twins: its original's entry is left as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKept {
    /// Shorter than the jump that would be put there.
    TooShort,
    /// Something branches, or may branch, into the bytes that the jump would take.
    BranchIntoEntry,
    /// A split-off part of a function, which is never called.
    SplitPart,
    /// It computes where to jump to, and that might be into those bytes.
    ComputedJumps,
    /// Not all of those bytes were seen to be its instructions.
    NotAllCode,
}

impl std::fmt::Display for EntryKept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooShort => "shorter than a jump",
            Self::BranchIntoEntry => "something may branch into its first bytes",
            Self::SplitPart => "a split-off part of a function, never called",
            Self::ComputedJumps => "computes where it jumps to",
            Self::NotAllCode => "its first bytes are not all known to be instructions",
        })
    }
}

/// A unit that was left alone, or whose entry was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted<Reason> {
    pub address: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub bytes: u32,
    pub reason: Reason,
}

/// How long each phase took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    pub nanos: u64,
}

/// The coverage report of a rewrite.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// Pieces of code known: functions and split-off parts of functions.
    pub functions: usize,
    /// Of those, how many are known to unwinders; only they can have twins.
    pub functions_with_unwind_entry: usize,
    pub functions_twinned: usize,
    /// Twins whose originals' entries lead to them.
    pub entries_patched: usize,
    pub instructions_twinned: usize,
    pub instructions_known: usize,
    pub indirect_jumps: usize,
    pub jump_tables: usize,
    /// Instructions after which a twin goes on in the original.
    pub escapes: usize,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub twin_code_bytes: u64,
    pub refusals: BTreeMap<Refusal, usize>,
    pub entries_kept: BTreeMap<EntryKept, usize>,
    pub refused: Vec<Noted<Refusal>>,
    pub kept: Vec<Noted<EntryKept>>,
    pub phases: Vec<Phase>,
}

impl Coverage {
    /// The share of functions with unwind entries that have twins.
    pub fn share(&self) -> f64 {
        self.functions_twinned as f64 / self.functions_with_unwind_entry.max(1) as f64
    }
}
