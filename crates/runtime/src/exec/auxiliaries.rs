//! What the kernel told the program that was started here.

use crate::exec::stack::AT_NULL;
use crate::sys;

/// Most entries that are read.
pub(crate) const MOST: usize = 40;

/// Shows each of the address space's auxiliary vector, which is the primary's.
pub(crate) fn each(mut show: impl FnMut(u64, u64)) {
    let mut bytes = [0_u8; 16 * MOST];
    let fd = sys::open(c"/proc/self/auxv", sys::O_RDONLY | sys::O_CLOEXEC);
    let size = if fd < 0 { 0 } else { sys::read(fd as i32, &mut bytes).max(0) as usize };
    sys::close(fd as i32);
    for entry in bytes[..size].chunks_exact(16) {
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|i| entry[at + i]));
        let (key, value) = (word(0), word(8));
        if key == AT_NULL {
            break;
        }
        show(key, value);
    }
}
