//! Guests come aboard and go home.
//!
//! [`primaries`] looks after the threads that guests run on, [`homes`] after the scavengers' own.

pub(crate) mod homes;
pub(crate) mod primaries;
