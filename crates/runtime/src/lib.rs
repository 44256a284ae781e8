//! The library inside a harvested process.
#![cfg_attr(freestanding, no_std)]

#[cfg(freestanding)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
