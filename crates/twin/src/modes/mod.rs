//! What is inserted, by mode: nothing, poison, or what a harvest needs.

pub(crate) mod harvest;
pub(crate) mod indexed;
pub(crate) mod mode;
pub(crate) mod poison;
pub(crate) mod prefetch;
pub(crate) mod width;
