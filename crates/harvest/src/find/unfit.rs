//! Programs that cannot be guests, by what they need: they run as they are, beside the primary.
//!
//! To add a kind: a case in [`why`].

use image::Image;
use image::elf::symbols::Symbols;
use image::libraries::asks_for;

/// Why this program can be no guest, as far as its file tells.
pub(super) fn why(image: &Image<'_>, has_loader: bool) -> Option<&'static str> {
    if !has_loader {
        return starts_threads(image).then_some(
            "it is linked statically and starts threads, which need a dynamic loader to be guests",
        );
    }
    // It takes the end of the heap for its own, which belongs to the primary's malloc, and executes
    // itself again for addresses of its choice (GCL).
    (asks_for(image, b"sbrk") && asks_for(image, b"personality"))
        .then_some("it lays out its address space itself (sbrk and personality)")
}

/// Only what calls it is linked with it. One without symbols is refused its threads when it asks
/// for them.
fn starts_threads(image: &Image<'_>) -> bool {
    Symbols::of(image, None).all().iter().any(|symbol| symbol.name == b"pthread_create")
}
