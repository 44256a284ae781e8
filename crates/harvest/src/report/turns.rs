//! Where the time of a turn goes, by samples of the primary's threads while guests were aboard.
//!
//! ```text
//! the primary's yield ─► a guest, up to its own yield ─► … ─► the primary, up to its next yield
//! ```

use crate::rewrite::rewritten::RewrittenFile;
use crate::session::Prepared;
use records::plan::Role;
use records::profile::Profile;

/// What a part of the time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spent {
    /// A load of the program's own code waits.
    Waiting,
    /// The program's own code, but for that.
    Computing,
    /// Code that Gleaner inserted, with what it waits for.
    Yielding,
}

/// Samples by program and what the time was spent on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnSplit {
    /// Of the primary, and of guests: waiting, computing, yielding.
    pub primary: [u64; 3],
    pub guests: [u64; 3],
    /// In code of no twin: libraries, the runtime, the kernel.
    pub elsewhere: u64,
}

impl TurnSplit {
    pub const SPENT: [Spent; 3] = [Spent::Waiting, Spent::Computing, Spent::Yielding];

    /// Of a profile that was taken of the primary's process while this harvest ran.
    pub fn of(prepared: &Prepared, profile: &Profile) -> Self {
        let files: Vec<_> = prepared
            .rewritten()
            .filter_map(|(file, role)| Some((records::text_of(file), role, std::fs::read(file).ok()?)))
            .collect();
        let mut split = Self::default();
        let mut counted = 0;
        for function in &profile.code {
            let Some((_, role, data)) = files.iter().find(|(file, ..)| *file == function.module) else {
                continue;
            };
            let Some(rewritten) = RewrittenFile::of(data) else { continue };
            let parts = if *role == Role::Primary { &mut split.primary } else { &mut split.guests };
            for instruction in function.instructions.iter().filter(|instruction| instruction.samples > 0) {
                let spent = if rewritten.is_inserted(instruction.address) {
                    Spent::Yielding
                } else if instruction.is_waited_for {
                    Spent::Waiting
                } else {
                    Spent::Computing
                };
                parts[spent as usize] += instruction.samples;
                counted += instruction.samples;
            }
        }
        split.elsewhere = profile.sampling.samples.saturating_sub(counted);
        split
    }

    pub fn samples(&self) -> u64 {
        self.primary.iter().chain(&self.guests).sum::<u64>() + self.elsewhere
    }
}
