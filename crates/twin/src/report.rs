//! What a rewrite did, what it left unchanged, and why.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a unit has no twin. To add a reason: a variant, its text below, and the test that
/// calls for it in `select/mod.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Nothing says how to unwind through it: no entry in the unwind table. In harvests.
    NoUnwindEntry,
    /// Without unwind entry, and nothing in the module says that it is a function; or it may be
    /// written to.
    BareUnnamed,
    /// Without unwind entry, and shorter than the jump at an entry.
    BareShort,
    /// Without unwind entry, and not code from the first byte to the last, as far as can be seen.
    BareNotWhole,
    /// Without unwind entry, and something refers to the inside of it.
    BareEntered,
    /// Without unwind entry, and it jumps to computed places, or into the middle of others.
    BareJumps,
    /// Without unwind entry, and it calls what may look at its return address.
    BareCalls,
    /// Without unwind entry, and it refers to its own code.
    BareReadsItself,
    /// A Go function in assembly: its place or its stack is minded by the runtime.
    GoAssembly,
    /// A Go function of which something is said that cannot be said of a twin.
    GoTables,
    /// In a Go program, and neither a function of Go nor in the unwind table, or in between those
    /// of Go.
    BesideGo,
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
            Self::BareUnnamed => "not in the unwind table, and no function symbol",
            Self::BareShort => "not in the unwind table, and shorter than a jump",
            Self::BareNotWhole => "not in the unwind table, and not all of it is code",
            Self::BareEntered => "not in the unwind table, and referenced in its middle",
            Self::BareJumps => {
                "not in the unwind table, and jumps to an address that is not a known function"
            }
            Self::NotAskedFor => "it holds no load that a prefetch was asked for",
            Self::BareCalls => "not in the unwind table, and calls code that may read its return address",
            Self::BareReadsItself => "not in the unwind table, and refers to addresses in itself",
            Self::GoAssembly => "a Go function written in assembly",
            Self::GoTables => "a Go function with table entries that a twin cannot have",
            Self::BesideGo => "a function of another language in a Go program",
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
    /// The program may compare its code with a checksum (Go's cryptography).
    Checksummed,
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
            Self::Checksummed => "the program may compare it with a checksum",
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
