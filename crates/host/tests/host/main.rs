//! Readers of machines, recorded ones and this one.
#![forbid(unsafe_code)]

mod answers;
mod garbage;
mod live;
mod machines;
