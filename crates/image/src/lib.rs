//! ELF reading, decoding, functions, control flow and liveness. Pure: bytes in, facts out.
//!
//! Start from [`Module::analyse`]. Facts come in layers, a file each: the container ([`elf`]), what it names
//! ([`symbols`], [`relocations`], [`imports`]), unwind tables ([`unwind`], and Go's: [`go`]), where code is ([`code_units`]), its
//! instructions ([`descend`], [`insn`]), its jump tables ([`tables`], by way of [`symbolic`]) and its control flow
//! ([`cfg`], [`dominators`], [`loops`]). Nothing here writes or guesses: what cannot be known is left out, and the users of this crate treat what is
//! left out as "anything may happen".
#![forbid(unsafe_code)]

pub mod code;
pub mod elf;
mod error;
pub mod flow;
pub mod go;
pub mod liveness;
pub mod module;
pub mod unwind;

pub use elf::Image;
pub use error::ImageError;
pub use module::Module;
