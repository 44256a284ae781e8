//! Rules for code: entry patches, copies, branches, calls, jump tables, inserted code.

pub(crate) mod claims;
pub(crate) mod computed;
pub(crate) mod copy;
pub(crate) mod indexed;
mod inserted;
pub(crate) mod patches;
pub(crate) mod references;
pub(crate) mod relays;
pub(crate) mod restartable;
pub(crate) mod return_addresses;
pub(crate) mod tables;
mod traced;
pub(crate) mod unit;
