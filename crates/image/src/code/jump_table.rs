//! What is known of an indirect jump: `tables` finds it, graphs have edges by it.

use units::Svma;

/// A `switch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JumpTable {
    /// The indirect jump, as an offset in its unit.
    pub jump_at: u32,
    /// The instruction that reads the table; the jump itself when it jumps through memory.
    pub load_at: u32,
    pub table: Svma,
    /// 4 or 8.
    pub entry_size: u8,
    /// What is added to an entry; `None` if entries are addresses.
    pub base: Option<u64>,
    /// Its length comes from a comparison, not only from the width of the index.
    pub is_guarded: bool,
    /// Where each entry leads.
    pub targets: Vec<Svma>,
}

/// An indirect jump that is not (or not safely) a jump table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenJump {
    pub at: u32,
    /// It goes to an address found in memory, so to one that stands there somewhere; otherwise it
    /// may be computed.
    pub is_pointer: bool,
}
