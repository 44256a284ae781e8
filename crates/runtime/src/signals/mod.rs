//! Signals and faults in processes of a harvest.
//!
//! In a primary every handler of the program's, and those for faults always, are registered as
//! [`entry::on_signal`], on the slot's signal stack: a guest's stack may be small, and what comes
//! while a guest runs must find the primary at its yield. It then builds the frame that the kernel
//! would have built ([`deliver`]) and returns into the program's handler. In a scavenger the same
//! function calls the program's handler. In both, no yield switches while a handler runs: the code
//! that was interrupted may be in the midst of one, and has its registers in the context's slots.
//!
//! [`action`] is what the program asked for, [`frame`] the kernel's layouts, [`place`] where a
//! signal hit, [`forward`] what is left of an interrupted switch back.

pub(crate) mod action;
pub(crate) mod area_words;
pub(crate) mod deliver;
pub(crate) mod entry;
mod forward;
pub(crate) mod frame;
mod place;
