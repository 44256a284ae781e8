//! The rules by name, violations, and where violations are gathered.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::{FileOffset, Svma};

/// The rules of `docs/proof-rules.md`, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// R1: the original is there.
    Unchanged = 1,
    /// R2: patches, and what refers to their bytes.
    Entry,
    /// R3: program headers, section headers, padding.
    Headers,
    /// R4: an instruction against its copy.
    Copy,
    /// R5: where control goes.
    Flow,
    /// R6: calls and return addresses.
    Calls,
    /// R7: inserted code writes only what is dead.
    Inserted,
    /// R8: twins of jump tables.
    Tables,
    /// R9: unwind and exception tables.
    Unwind,
    /// R10: where relocations write.
    Relocations,
    /// R11: the symbol table.
    Symbols,
    /// R12: note, mapping, and what both decoders read.
    Mapping,
    /// R13: yields preserve what is live.
    Yields,
    /// R14: what yields prefetch.
    Prefetches,
    /// R15: code that runs before the runtime is set up.
    Early,
    /// R16: what guests must not do aboard.
    Aboard,
    /// R17: operands relative to FS.
    ThreadLocal,
    /// R18: guests meet yields after a bounded number of instructions.
    Bounds,
    /// R21: registers that a loop's yields leave in their slots. (R19 and R20 are parked.)
    #[serde(rename = "left")]
    SunkRestores = 21,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::ThreadLocal => "thread-local".to_owned(),
            Self::SunkRestores => "sunk restores".to_owned(),
            _ => format!("{self:?}").to_lowercase(),
        };
        write!(f, "R{} {name}", *self as u8)
    }
}

/// Where a rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationPlace {
    Address(Svma),
    File(FileOffset),
}

impl fmt::Display for ViolationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "address {address}"),
            Self::File(offset) => write!(f, "file offset {offset}"),
        }
    }
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    pub rule: Rule,
    pub place: ViolationPlace,
    pub what: String,
    /// The instruction of the original that it is about, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Svma>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.rule, self.what)
    }
}

/// How many violations are kept; a file full of them is rejected all the same.
const KEPT: usize = 1 << 16;

/// Gathers violations from all threads.
#[derive(Default)]
pub(crate) struct Findings {
    kept: Mutex<Vec<Violation>>,
    total: AtomicUsize,
}

impl Findings {
    pub(crate) fn at(&self, rule: Rule, address: u64, what: impl Into<String>) {
        self.add(rule, ViolationPlace::Address(Svma(address)), what.into(), None);
    }
    /// What stands at this address for the instruction of the original at `origin`.
    pub(crate) fn instead_of(&self, rule: Rule, origin: u64, address: u64, what: impl Into<String>) {
        self.add(rule, ViolationPlace::Address(Svma(address)), what.into(), Some(Svma(origin)));
    }
    pub(crate) fn in_file(&self, rule: Rule, offset: u64, what: impl Into<String>) {
        self.add(rule, ViolationPlace::File(FileOffset(offset)), what.into(), None);
    }
    fn add(&self, rule: Rule, place: ViolationPlace, what: String, origin: Option<Svma>) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let Ok(mut kept) = self.kept.lock() else { return };
        kept.push(Violation { rule, place, what, origin });
        // The lowest places stay, whichever thread was first, so that two runs say the same.
        if kept.len() >= 2 * KEPT {
            kept.sort_by_key(|found| (found.place, found.rule));
            kept.truncate(KEPT);
        }
    }
    pub(crate) fn none(&self) -> bool {
        self.total.load(Ordering::Relaxed) == 0
    }
    /// The violations by place, and how many there were in all.
    pub(crate) fn finish(self) -> (Vec<Violation>, usize) {
        let total = self.total.into_inner();
        let mut kept = self.kept.into_inner().unwrap_or_default();
        kept.sort_by(|a, b| (a.place, a.rule, &a.what).cmp(&(b.place, b.rule, &b.what)));
        kept.truncate(KEPT);
        (kept, total)
    }
}
