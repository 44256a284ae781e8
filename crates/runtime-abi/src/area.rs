//! The area of a kernel thread, found through its GS base: offsets in bytes.

/// Address of the area itself.
pub const SELF: u32 = 0x00;
/// The context that runs now.
pub const CUR: u32 = 0x08;
/// Three words of scratch for inserted code, never live across a yield.
pub const SCRATCH: [u32; 3] = [0x10, 0x18, 0x20];
/// Cycles left until a bound yield, by static estimate; 32 bits, signed.
pub const BUDGET: u32 = 0x28;
/// What it is set to where the context is alone in its ring, for a quantum: as long as nobody waits
/// for its turn, each end of a budget is only a branch that was predicted wrongly, after which the
/// core has to find its way anew.
pub const fn budget_alone(quantum: u32) -> u32 {
    const QUANTA: u32 = 64;
    if quantum < i32::MAX as u32 / QUANTA { quantum * QUANTA } else { i32::MAX as u32 }
}
/// One byte, which leaves ask: 0 in a home, otherwise 1.
pub const GUEST: u32 = 0x2c;
/// Where a guest goes that must go home.
pub const LEAVE: u32 = 0x30;
/// The context of the thread whose area this is.
pub const OWN: u32 = 0x38;
/// The yields of a primary to pass by although another context is in the ring, this one included,
/// less one; negative: none. 64 bits.
pub const PASSES: u32 = 0x40;
/// From here on everything is the runtime's.
pub const RUNTIME: u32 = 0x48;
