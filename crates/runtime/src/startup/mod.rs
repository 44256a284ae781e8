//! What runs when the runtime is loaded into a process: before the program's own constructors.

mod constructor;
mod core_dumps;
mod environment;
pub(crate) mod modules;
