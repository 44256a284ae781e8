//! The figures of `gleaner tour`: what its records and the output of its program say, and how one
//! figure compares with another. Sentences are made of them elsewhere.
//!
//! A module a step: [`machine`], [`profiled`], [`harvested`]. Other steps have figures of the model
//! and of trials, and [`ratio`]s of them.
//!
//! To add a figure: a field or a function in its step's module, with what it is when a part of it
//! is not resolved, and a test of that.
#![forbid(unsafe_code)]

pub mod harvested;
pub mod machine;
pub mod profiled;
mod ratio;

pub use ratio::ratio;
