//! The proof against kinds of code that compilers seldom write, and against damaged files.
#![forbid(unsafe_code)]

mod assembled;
mod conventions;
mod data_among_code;
mod garbage;
mod label_jumps;
mod prefetch;
mod restartable;
mod return_addresses;
mod tails;
mod trace;
mod undescribed;
