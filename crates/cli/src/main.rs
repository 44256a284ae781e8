//! The `gleaner` binary: one file a verb, no logic.
#![forbid(unsafe_code)]
fn main() {}
