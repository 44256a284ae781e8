//! Code put before instructions of a twin, and instructions put in the place of others.

/// What a piece of inserted code refers to outside of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The distance to the first twin, from the end of these four bytes.
    TextBegin,
    /// The size of all twins.
    TextSize,
    /// The distance to an address, from the end of these four bytes.
    Address(u64),
}

/// Inserted code in the making: bytes, and where four of them refer to something outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub bytes: Vec<u8>,
    pub references: Vec<(u32, Reference)>,
}

impl Piece {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.references.clear();
    }
    pub(crate) fn append(&mut self, other: &Self) {
        let begin = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        self.references.extend(other.references.iter().map(|&(at, to)| (begin + at, to)));
    }
}

/// What is inserted into one unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Insertions {
    /// Ends of each instruction's piece in `bytes`; empty if nothing is inserted at all.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    references: Vec<(u32, Reference)>,
    /// Instructions that take the place of the original's, by index.
    replaced: Vec<(u32, Vec<u8>)>,
}

impl Insertions {
    /// No-operations before some of a unit's instructions: index and number of bytes, ascending.
    pub(crate) fn padding(pads: &[(u32, u8)], instructions: usize) -> Self {
        const NOP: u8 = 0x90;
        let mut pads = pads.iter().peekable();
        let mut all = Self { ends: Vec::with_capacity(instructions), ..Self::default() };
        for index in 0..instructions as u32 {
            let size = pads.next_if(|&&(at, _)| at == index).map_or(0, |&(_, size)| size);
            all.push(&[NOP; 64][..usize::from(size)]);
        }
        all
    }
    /// Adds the piece that goes before the next instruction.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len() as u32);
    }
    pub(crate) fn push_piece(&mut self, piece: &Piece) {
        let begin = self.bytes.len() as u32;
        self.references.extend(piece.references.iter().map(|&(at, to)| (begin + at, to)));
        self.push(&piece.bytes);
    }
    /// Replaces an instruction; indices ascend.
    pub(crate) fn replace(&mut self, index: usize, bytes: Vec<u8>) {
        self.replaced.push((index as u32, bytes));
    }
    fn begin(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before]) as usize
    }
    pub(crate) fn before(&self, index: usize) -> &[u8] {
        if self.ends.is_empty() {
            return &[];
        }
        &self.bytes[self.begin(index)..self.ends[index] as usize]
    }
    pub(crate) fn size_before(&self, index: usize) -> u32 {
        self.before(index).len() as u32
    }
    /// The references of the piece before an instruction, from its first byte.
    pub(crate) fn references_before(&self, index: usize) -> impl Iterator<Item = (usize, Reference)> + '_ {
        let (begin, end) = if self.references.is_empty() || self.ends.is_empty() {
            (0, 0)
        } else {
            (self.begin(index), self.ends[index] as usize)
        };
        let first = self.references.partition_point(|&(at, _)| (at as usize) < begin);
        self.references[first..]
            .iter()
            .take_while(move |&&(at, _)| (at as usize) < end)
            .map(move |&(at, to)| (at as usize - begin, to))
    }
    pub(crate) fn replaced(&self) -> &[(u32, Vec<u8>)] {
        &self.replaced
    }
    pub(crate) fn replacement(&self, index: usize) -> Option<&[u8]> {
        let at = self.replaced.binary_search_by_key(&(index as u32), |&(index, _)| index).ok()?;
        Some(&self.replaced[at].1)
    }
}
