//! Layouts that generated code, the runtime and the launcher share. `docs/harvest-abi.md` says what
//! they mean; the numbers are here. No code: constants and plain structures, without the standard
//! library, since the runtime has none.
//!
//! To add a field that inserted code uses: a constant here, a row there. What only the runtime uses
//! is its own.
#![no_std]
#![forbid(unsafe_code)]

pub mod area;
pub mod context;
pub mod control;
