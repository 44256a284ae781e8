//! What lies where in the memory that all processes of a harvest share.
//!
//! [`area`] has a kernel thread's area and its contexts, [`region`] the memory that all of them lie
//! in, [`page`] the control page, by which launcher and runtime exchange orders and counts.

pub(crate) mod area;
pub(crate) mod context;
pub(crate) mod page;
pub(crate) mod region;
