//! Control flow of one unit: its graph, dominators, loops.

pub mod cfg;
pub mod dominators;
pub mod loops;
pub mod order;
