//! Kernels read back: every one that can be asked for (over a grid of its parameters) is
//! disassembled by other hands and checked against its specification.

mod fillers;
mod grid;
mod listing;
mod rules;
mod shapes;
