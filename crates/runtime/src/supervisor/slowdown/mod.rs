//! How much slower guests make the primary, and what follows for them (`docs/contracts.md`).
//!
//! [`sampler`] orders samples and judges them, [`controller`] decides how many guests there may be
//! and when. Its parts: [`samples`] and [`solo_pace`] put samples together, [`cache_recovery`] says
//! what guests displaced, [`idle_server`] knows threads that sleep often ([`idle_server_sampler`]:
//! what their samples are), [`long_stays`] are guests that stay for too long.

pub(crate) mod cache_recovery;
pub(crate) mod controller;
pub(crate) mod idle_server;
pub(crate) mod idle_server_sampler;
pub(crate) mod long_stays;
pub(crate) mod sampler;
pub(crate) mod samples;
pub(crate) mod solo_pace;
