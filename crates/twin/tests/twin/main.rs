//! The rewriter by what it writes: files are read back, run and rewritten again.
#![forbid(unsafe_code)]

mod again;
mod common;
mod copies;
mod garbage;
mod harvested;
