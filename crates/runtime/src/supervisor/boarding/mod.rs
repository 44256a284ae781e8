//! Guests come aboard and go home.
//!
//! [`primaries`] looks after the threads that guests run on, [`homes`] after the scavengers' own,
//! [`siblings`] after threads that are each other's guests.

pub(crate) mod homes;
pub(crate) mod primaries;
pub(crate) mod siblings;
