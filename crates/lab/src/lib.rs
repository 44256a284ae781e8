//! The lab: runs a measuring kernel honestly.
//!
//! From the bottom up: [`stop`] (one flag for Ctrl-C), [`pin`] (threads that stay on a CPU), [`tsc`] (the time stamp
//! counter), [`code`] (machine code made executable), `fault` (which
//! may die without ending the run), [`arena`] (memory whose pages are verified), [`chain`]
//! (pointer cycles in it, checked), [`rigs`] (a kernel bolted to its memory, safe to run), [`core_clock`] (the core clock),
//! `core_width` (is the core all ours), [`inherited`] (what we were started with), [`interference`] (what else happened meanwhile), [`campaign`] (blocks of all settings
//! interleaved at random, voided and repeated), [`crew`] (several threads at once), [`stats`], [`grade`], [`settings`] and
//! [`watchdog`] (host settings that are put back whatever happens).
//!
//! `unsafe` lives in `sys`, `code`, `fault`, `arena`, `chain`, `tsc`, `core_clock`, `core_width` and `rigs`; everything above them is safe code.
//!
//! To add a rig: a file in `rigs/` that checks in its constructor what the kernel's contract demands.

pub mod arena;
pub mod campaign;
pub mod chain;
pub mod claim;
pub mod code;
pub mod core_clock;
mod core_width;
pub mod crew;
mod fault;
pub mod grade;
pub mod inherited;
pub mod interference;
pub mod pin;
pub mod probe;
pub mod rigs;
pub mod rng;
pub mod settings;
pub mod smt;
pub mod stats;
pub mod stop;
mod sys;
pub mod tsc;
pub mod watchdog;

pub use sys::{SysError, effective_uid, peak_memory};

/// What would help against any of this room's errors, where it is this place that does not allow something.
pub fn would_help(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let crew =
        error.downcast_ref().and_then(|e| if let crew::CrewError::Sys(e) = e { Some(e) } else { None });
    let load =
        error.downcast_ref().and_then(|e| if let code::LoadError::Memory(e) = e { Some(e) } else { None });
    let chain =
        error.downcast_ref().and_then(|e| if let chain::ChainError::Memory(e) = e { Some(e) } else { None });
    let system = error.downcast_ref::<SysError>().or(crew).or(load).or(chain);
    system.and_then(SysError::would_help)
}
