//! What is read out of programs, against known answers.
#![forbid(unsafe_code)]

mod built;
mod chains;
mod constants;
mod go;
mod jump_tables;
mod liveness;
