//! ELF reading, decoding, functions, control flow and liveness. Pure: bytes in, facts out.
//!
//! Start from [`Module::analyse`]. Facts come in layers:
//!
//! ```text
//! elf       the container, its symbols, relocations and imports
//! unwind    unwind tables and exception tables; go: where functions of Go are
//! code      units, their instructions and jump tables, what an instruction does to registers
//! flow      the control-flow graph of a unit, its dominators and loops
//! module    all of that for one file
//! names     instruction, function and line of source at an address
//! liveness  which registers are live before each instruction of a module
//! loads     where the addresses of loads come from
//! ```
//!
//! Nothing here writes, and only `loads` guesses: what cannot be known is left out, and the users
//! of this crate treat what is left out as "anything may happen".
//!
//! # Example
//!
//! ```
//! use gleaner_image::Module;
//! use gleaner_image::code::groups::RelyOn;
//! use gleaner_image::code::regs::{RSP, RegSet};
//! use gleaner_image::flow::dominators::Dominators;
//! use gleaner_image::flow::loops::Loops;
//! use gleaner_image::liveness::Liveness;
//!
//! // Any ELF file for x86-64 will do: this very program.
//! let data = std::fs::read(std::env::current_exe()?)?;
//! let module = Module::analyse(&data, None)?;
//! let start = module.unit_at(module.image.entry()).expect("the entry is code");
//! let cfg = module.cfg(start);
//! let loops = Loops::of(&cfg, &Dominators::of(&cfg));
//! assert!(loops.all.is_empty(), "`_start` has no loops");
//!
//! let liveness = Liveness::of(&module, &RelyOn::EVERYTHING);
//! let stack_pointer = RegSet::general(RSP);
//! assert!(liveness.before[start].iter().all(|live| live.contains(stack_pointer)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/liveness.rs` prints what is live in a function, and `examples/survey.rs` what is known
//! of many files.
#![forbid(unsafe_code)]

pub mod code;
pub mod elf;
mod error;
pub mod flow;
pub mod go;
pub mod libraries;
pub mod liveness;
pub mod loads;
pub mod module;
pub mod names;
pub mod unwind;

pub use elf::Image;
pub use error::ImageError;
pub use module::Module;
