//! Primaries that keep their guests from running.

pub(crate) mod no_yield;
