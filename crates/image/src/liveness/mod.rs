//! Which registers are live before each instruction: whose contents may still matter to anybody.
//!
//! What is not live may be overwritten; so whatever is not known makes registers live. Known is:
//!
//! - inside a group of units, the graph of blocks. It is complete for twins: nothing enters a twin
//!   but what is known;
//! - of a function called directly, its [`Summary`]: what it may read, what it certainly
//!   overwrites. A register that it does not certainly overwrite may be kept across the call (gcc's
//!   `-fipa-ra` does that, and hand-written code);
//! - at a return: live are the callee-saved registers, those a value may be returned in, every
//!   register this function never writes (`liveness/unwritten.rs`) or may give back as it found it,
//!   and every register that some caller is seen to read after such a call before writing it;
//!   everything, where what is returned to is not what was called from;
//! - before a call of a function without unwind entry, and where control goes on in one,
//!   everything: nobody can check what is not in the unwind table. What is said of its own
//!   instructions is of no use, since it has no twin;
//! - everywhere, what an unwinder needs there by the unwind table: callee-saved registers that were
//!   not saved, and the one the frame is found by;
//! - wherever an exception may be raised, what the landing pad reads, rax and rdx aside, which the
//!   unwinder sets.
//!
//! The ABI is assumed only of calls and jumps to other modules (by name, through the PLT or the
//! GOT): that they read nothing but [`abi::ARGUMENTS`] and callee-saved registers, and that nobody
//! keeps anything over them in [`abi::CLOBBERED`], but for what they are seen to read behind them
//! all the same (others keep more). A call by a pointer may be of any convention: it reads
//! everything but flags, and what it leaves may be handed back. A function that may be of a
//! convention that keeps more than the ABI keeps that over both (`liveness/preserved.rs`). Nor of
//! `call [rax]` with an address just computed, or in a module with TLS descriptors: those keep all
//! registers. [`Knowledge::OfCallers`] goes further, for code that is run often: of what a function
//! never writes, only what direct callers keep (`liveness/kept.rs`), and what those by pointers are
//! seen to read (`liveness/odd.rs`), is live when it returns, and of a function whose callers are
//! all known no more is returned than they read; of vectors, a call by a pointer reads those that
//! the function may have written for it (`liveness/passed.rs`); a register that a call by the ABI
//! may have changed, and that nobody has written since, is live nowhere (`liveness/meaning.rs`);
//! and well-known functions are passed what their prototypes say. Also that a signal handler, a
//! debugger or another thread looks only at what the kernel saves and restores.

mod callees;
mod calls;
mod kept;
mod meaning;
mod odd;
mod overwrites;
mod passed;
mod preserved;
mod reached;
mod read_on_entry;
mod returning;
mod runs;
mod seen;
mod step;
mod summary;
mod unwritten;
mod view;
mod views;
mod work;

use crate::code::groups::{Groups, RelyOn};
use crate::code::regs::RegSet;
use crate::module::Module;
use kept::Kept;
use seen::unusual_results;
use std::collections::HashMap;
pub use summary::Summary;
use views::GroupViews;
use work::{Outside, Work};

/// How much is made of what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Knowledge {
    /// Nothing is taken for granted of what direct callers keep.
    #[default]
    Cautious,
    /// All direct calls are in view, but for those by bytes that are no code as far as can be seen.
    OfCallers,
}

/// The same, inside.
#[derive(Clone, Copy)]
struct Known {
    knowledge: Knowledge,
    /// Vector and mask registers that the module passes in another convention than the ABI's.
    passed: RegSet,
}

impl Known {
    const CAUTIOUS: Self = Self { knowledge: Knowledge::Cautious, passed: RegSet::EMPTY };
}

/// The liveness of a module.
pub struct Liveness {
    /// For each unit, for each instruction, what is live before it.
    pub before: Vec<Vec<RegSet>>,
}

impl Liveness {
    /// `relied_on` says which jump tables are; jumps by others may lead anywhere.
    pub fn of(module: &Module<'_>, relied_on: &RelyOn<'_>) -> Self {
        Self::with(module, Knowledge::Cautious, relied_on)
    }

    pub fn with(module: &Module<'_>, knowledge: Knowledge, relied_on: &RelyOn<'_>) -> Self {
        let groups = Groups::of(module);
        let views = GroupViews::of(module, &groups, relied_on);
        let mut known = Known { knowledge, ..Known::CAUTIOUS };
        let mut summaries = calls::summaries(&views, known);
        let mut unread = Vec::new();
        if knowledge == Knowledge::OfCallers {
            unread = passed::unread(&views, &summaries);
            known.passed = unread.iter().fold(RegSet::EMPTY, |all, unread| all | unread.passed);
            if !known.passed.is_empty() {
                summaries = calls::summaries(&views, known);
            }
        }
        let preserved = preserved::of(&views, &summaries);
        let (wanted, kept) = match knowledge {
            Knowledge::Cautious => (unusual_results(&views, &summaries), Vec::new()),
            Knowledge::OfCallers => {
                let modules = kept::OfModule { known, unread: &unread, preserved: &preserved };
                (HashMap::new(), kept::kept_by_callers(&views, modules, &summaries))
            }
        };
        let mut before = vec![Vec::new(); module.units.len()];
        let all: Vec<Vec<(u32, Vec<RegSet>)>> = views.last(&summaries, |group, work| {
            let kept = kept.get(group);
            let work = work.seeing().preserving(&preserved, kept.is_some_and(Kept::by_others)).knowing(known);
            if let Some(kept) = kept {
                return work.live_outside(&Outside::kept(kept));
            }
            let members = groups.members[group].iter();
            let wanted = members.filter_map(|unit| wanted.get(unit)).fold(RegSet::EMPTY, |all, &w| all | w);
            work.live(wanted)
        });
        for (unit, live) in all.into_iter().flatten() {
            before[unit as usize] = live;
        }
        Self { before }
    }
}
