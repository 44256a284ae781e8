//! What is inserted, by mode: nothing, poison, what a harvest needs, or what tells accesses.

pub(crate) mod harvest;
pub(crate) mod indexed;
pub(crate) mod mode;
pub(crate) mod poison;
pub(crate) mod prefetch;
pub(crate) mod switches;
pub(crate) mod trace;
pub(crate) mod width;
