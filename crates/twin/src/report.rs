//! What a rewrite did, what it left unchanged, and why.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a unit has no twin. To add a reason: a variant, its text below, and the test that
/// calls for it in `select/mod.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Nothing says how to unwind through it: no entry in the unwind table.
    NoUnwindEntry,
    /// Two entries of the unwind table claim the same bytes.
    OverlapsAnother,
    /// A stub of the procedure linkage table.
    LinkageStub,
    /// It holds no load that a prefetch was asked for.
    NotAskedFor,
    /// The first instruction cannot be decoded.
    NotDecodable,
    /// Two instructions share bytes.
    OverlappingInstructions,
    /// It calls the very next instruction, or reads a return address of its own calls, to learn
    /// where it is.
    ReadsOwnAddress,
    /// It calls a function that uses its return address as data.
    CallsAddressReader,
    /// It goes on in what a section says is data.
    LeadsIntoData,
    /// It calls a function that may return twice (setjmp, vfork, getcontext …).
    CallsTwiceReturning,
    /// It holds code that the kernel begins anew by its place (`rseq`).
    RestartableSequence,
    /// A signal handler's trampoline, which unwinders know by its bytes.
    SignalFrame,
    /// Its unwind rules depend on where it lies.
    UnportableUnwind,
    /// Its exception table is not of the usual form.
    UnreadableExceptions,
    /// It makes a system call that the runtime replaces in a scavenger's original code.
    ReplacedCall,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoUnwindEntry => "not in the unwind table",
            Self::NotAskedFor => "it holds no load that a prefetch was asked for",
            Self::OverlapsAnother => "its unwind entry overlaps another",
            Self::LinkageStub => "a stub of the procedure linkage table (PLT)",
            Self::NotDecodable => "its first instruction cannot be decoded",
            Self::OverlappingInstructions => "its instructions overlap",
            Self::ReadsOwnAddress => "reads its own address by a call",
            Self::CallsAddressReader => "calls a function that uses its return address as data",
            Self::LeadsIntoData => "branches into a data section",
            Self::CallsTwiceReturning => "calls a function that may return twice",
            Self::RestartableSequence => "contains a restartable sequence (rseq)",
            Self::SignalFrame => "the return trampoline of signal handlers",
            Self::UnportableUnwind => "its unwind rules depend on its address",
            Self::UnreadableExceptions => "its exception table has an unknown form",
            Self::ReplacedCall => "makes system calls that the runtime replaces",
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
    /// Some instruction reads those bytes as data.
    Read,
}

impl std::fmt::Display for EntryKept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooShort => "shorter than a jump",
            Self::BranchIntoEntry => "something may branch into its first bytes",
            Self::SplitPart => "a split-off part of a function, never called",
            Self::ComputedJumps => "has indirect jumps with unknown targets",
            Self::NotAllCode => "its first bytes are not all known to be instructions",
            Self::Read => "its first bytes are read as data",
        })
    }
}

/// Why there is no yield where one was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteRefusal {
    /// No instruction with a twin begins there.
    NoTwin,
    /// Nothing that could be fetched.
    NoMemoryOperand,
    /// Of many lines, of thread-local storage, or of the stack as it will be.
    OddOperand,
    /// It may run before its thread has an area.
    Early,
    /// State that is not switched may hold something: x87, MMX, the direction flag.
    UnswitchedState,
}

impl std::fmt::Display for SiteRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoTwin => "no instruction that has a twin begins there",
            Self::NoMemoryOperand => "no memory operand",
            Self::OddOperand => "an operand that cannot be prefetched",
            Self::Early => "may run before the runtime is initialised",
            Self::UnswitchedState => {
                "x87, MMX or direction-flag state may be in use, which a yield does not save"
            }
        })
    }
}

/// What was put into harvest twins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Harvested {
    /// Site yields.
    pub sites: usize,
    /// Loads that are fetched at another's site.
    pub coalesced: usize,
    /// Bound yields.
    pub bounds: usize,
    /// Places where a guest goes home.
    pub leaves: usize,
    pub return_checks: usize,
    /// Accesses to thread-local storage by way of the context, and those that have to be made at
    /// home.
    pub thread_local: usize,
    pub thread_local_left: usize,
    /// Sites that were wanted and are none.
    pub left_out: BTreeMap<SiteRefusal, usize>,
    /// Those of them that were asked for by address.
    pub left_out_at: BTreeMap<u64, SiteRefusal>,
}

impl Harvested {
    pub(crate) fn leave_out(&mut self, address: u64, why: SiteRefusal) {
        if self.left_out_at.insert(address, why).is_none() {
            *self.left_out.entry(why).or_default() += 1;
        }
    }
    pub(crate) fn add(&mut self, other: Self) {
        self.sites += other.sites;
        self.coalesced += other.coalesced;
        self.bounds += other.bounds;
        self.leaves += other.leaves;
        self.return_checks += other.return_checks;
        self.thread_local += other.thread_local;
        self.thread_local_left += other.thread_local_left;
        for (why, count) in other.left_out {
            *self.left_out.entry(why).or_default() += count;
        }
        self.left_out_at.extend(other.left_out_at);
    }
}

/// A unit that was left alone, or whose entry was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitNote<Reason> {
    pub address: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub bytes: u32,
    pub reason: Reason,
}

/// A phase, and how long it took.
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
    /// Of those, how many are known to unwinders.
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
    /// Code that is inserted into twins.
    #[serde(default)]
    pub inserted_bytes: u64,
    /// So much zeroed memory lies behind it that the result, a program, runs on Linux 5.18 and
    /// later only.
    #[serde(default)]
    pub needs_linux_5_18: bool,
    pub refusals: BTreeMap<Refusal, usize>,
    pub entries_kept: BTreeMap<EntryKept, usize>,
    pub refused: Vec<UnitNote<Refusal>>,
    pub kept: Vec<UnitNote<EntryKept>>,
    /// As the caller timed them; a rewrite itself tells of none.
    pub phases: Vec<Phase>,
    /// Of harvest twins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harvest: Option<Harvested>,
}
