//! ELF reading, decoding, functions, control flow and liveness. Pure: bytes in, facts out.
//!
//! Start from [`Module::analyse`]. Facts come in layers, a file each: the container ([`elf`]), what it names
//! ([`symbols`], [`relocations`], [`imports`]), unwind tables ([`unwind`], and Go's: [`go`]), where code is ([`code_units`]), its
//! instructions ([`descend`], [`insn`]), its jump tables ([`tables`], by way of [`symbolic`]) and its control flow
//! ([`cfg`], [`dominators`], [`loops`]). Nothing here writes or guesses: what cannot be known is left out, and the users of this crate treat what is
//! left out as "anything may happen".
#![forbid(unsafe_code)]

pub mod abi;
pub mod bare;
pub mod bytes;
pub mod cfg;
pub mod code_units;
pub mod cursor;
pub mod descend;
pub mod dominators;
pub mod effects;
pub mod elf;
mod error;
pub mod go;
pub mod groups;
pub mod imports;
pub mod insn;
pub mod known_callers;
pub mod liveness;
pub mod loops;
pub mod module;
pub mod never_returns;
pub mod order;
pub mod prototypes;
pub mod reads;
pub mod regs;
pub mod relocations;
pub mod symbolic;
pub mod symbols;
pub mod tables;
pub mod unwind;

pub use elf::Image;
pub use error::ImageError;
pub use module::Module;
