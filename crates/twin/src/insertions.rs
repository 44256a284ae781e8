//! Code put before instructions of a twin.

/// What is inserted into one unit: bytes without references to anywhere, before each instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Insertions {
    /// Ends of each instruction's piece in `bytes`; empty if nothing is inserted at all.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Insertions {
    /// Adds the piece that goes before the next instruction.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len() as u32);
    }
    pub(crate) fn before(&self, index: usize) -> &[u8] {
        if self.ends.is_empty() {
            return &[];
        }
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }
    pub(crate) fn size_before(&self, index: usize) -> u32 {
        self.before(index).len() as u32
    }
}
