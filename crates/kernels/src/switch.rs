/// Contexts in the ring of [`Spec::Switch`](crate::Spec::Switch).
pub const CONTEXTS: u64 = 8;
/// Bytes that [`Spec::Switch`](crate::Spec::Switch) wants at `rdx`.
pub const SCRATCH_BYTES: usize = 128 << 10;
/// Sites in the loop: with one alone, every jump would have one target for ever, which is easier than life.
const SITES: u64 = 2;
pub(crate) const PER_LOOP: u64 = CONTEXTS * SITES;

/// What [`Spec::Switch`](crate::Spec::Switch) returns if every register came back.
pub fn checksum(live: u32, vectors: u32) -> u64 {
    let general: u64 = (0..u64::from(live)).map(|i| i + 1).sum();
    let vector: u64 = (0..u64::from(vectors)).map(|i| i + 0x101).sum();
    general + vector
}
