//! What callers may keep in registers because a function never writes them. Of a group that is more
//! than what nothing in it writes: functions that share a piece of code, or of which one goes on in
//! the middle of another, are entered one by one, and so does what a jump table that is read too
//! far seems to lead into. So a return tells of its own unit only: whatever way control came,
//! nobody need have run any other.

use super::Work;
use crate::code::regs::RegSet;

impl Work<'_, '_> {
    /// For each unit of the group, what callers may know to be unchanged when it returns. Flags
    /// aside: nobody keeps those.
    pub(super) fn unwritten(&self) -> Vec<RegSet> {
        self.view.written.iter().map(|&written| !written - RegSet::ARITHMETIC_FLAGS).collect()
    }
}
