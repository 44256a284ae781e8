//! A context: what can be switched to. Offsets in bytes from its address, which is that of the
//! middle of its first 256 bytes, so that one-byte displacements reach all hot words.

/// The next context of the ring; itself where nobody else is in it.
pub const NEXT: i32 = 0x00;
/// Where it goes on.
pub const RIP: i32 = 0x08;
/// Its stack pointer.
pub const RSP: i32 = 0x10;
/// Its FS base.
pub const FS: i32 = 0x18;
/// `lahf` in bits 8 to 15, `seto` in bits 0 to 7.
pub const FLAGS: i32 = 0x20;
/// From here to [`vector`]`(0)` everything is the runtime's.
pub const RUNTIME: i32 = 0x28;
/// Bytes of a context in front of its address.
pub const BEFORE: usize = 0x80;
/// Bytes of a context from its address on, as far as inserted code knows it.
pub const BEHIND: usize = 0x8c0;

/// Where general register `number`, as instructions number them, is kept.
pub const fn slot(number: u8) -> i32 {
    -0x80 + 8 * number as i32
}

/// Where vector register `number` is kept, as much of it as is live.
pub const fn vector(number: u8) -> i32 {
    0x80 + 64 * number as i32
}

/// Where mask register `number` is kept.
pub const fn mask(number: u8) -> i32 {
    0x880 + 8 * number as i32
}

const _: () = assert!(slot(0) == -(BEFORE as i32) && slot(15) == -8);
const _: () = assert!(vector(32) == mask(0) && mask(8) == BEHIND as i32);
