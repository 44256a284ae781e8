//! Unwind tables: `.eh_frame` entries, call-frame programs, and the language-specific tables of
//! exceptions.

pub mod cfi;
pub mod frames;
pub mod lsda;
pub mod needed;
pub mod starts;
