//! Code: where it is, its instructions and what they do, its jump tables.

pub mod code_units;
pub mod descend;
pub mod effects;
pub mod groups;
pub mod insn;
pub mod instructions;
pub mod jump_table;
pub mod known_callers;
pub(crate) mod labels;
pub mod never_returns;
pub mod prototypes;
pub mod reads;
pub mod regs;
mod skipped_lock;
pub mod surroundings;
pub mod symbolic;
pub mod tables;
