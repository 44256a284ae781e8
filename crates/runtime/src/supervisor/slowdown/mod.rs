//! How much slower guests make the primary, and what follows for them (`docs/contracts.md`).
//!
//! [`sampler`] orders samples and judges them, [`contract`] decides how many guests there may be
//! and when. Its parts: [`samples`] and [`solo_pace`] put samples together, [`cache_recovery`] says
//! what guests displaced, [`long_stays`] are guests that stay for too long, [`sleep`] says which
//! threads take no guests since they sleep.

pub(crate) mod cache_recovery;
pub(crate) mod contract;
pub(crate) mod long_stays;
pub(crate) mod sampler;
pub(crate) mod samples;
pub(crate) mod sleep;
pub(crate) mod solo_pace;
