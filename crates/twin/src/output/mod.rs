//! The rewritten file: headers, unwind and exception tables, symbols, the mapping.

pub(crate) mod encoder;
pub(crate) mod exceptions;
pub(crate) mod file;
pub(crate) mod map;
pub(crate) mod relays;
pub(crate) mod symbols;
pub(crate) mod unwind;
