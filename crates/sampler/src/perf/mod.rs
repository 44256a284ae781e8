//! The kernel's performance events, as far as this crate uses them.

pub(crate) mod event;
pub(crate) mod open;
pub(crate) mod ring;
pub(crate) mod rings;
