//! Code put before instructions of a twin, and instructions put in the place of others.
//!
//! A piece may have a *cold part*, which lies behind all instructions of its unit's twin. So the
//! code in line, before the instruction, has no rarely executed code to jump over.

use crate::layout::thrown::ThrownTo;

/// What a piece of inserted code refers to outside of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The distance to the first twin, from the end of these four bytes.
    TextBegin,
    /// The size of all twins.
    TextSize,
    /// The distance to an address, from the end of these four bytes.
    Address(u64),
    /// The distance to the unit's label table, from the end of these four bytes.
    LabelTable,
    /// The distance to a place in the same piece's other part, from the end of these four bytes;
    /// the number is the place's offset in that part.
    Across(u32),
    /// The distance to what is inserted before an instruction of the same unit, by its index, from
    /// the end of these four bytes.
    Before(u32),
    /// The distance to an instruction of the same unit itself.
    At(u32),
}

/// Bytes, and where four of them refer to something outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub bytes: Vec<u8>,
    pub references: Vec<(u32, Reference)>,
}

impl Part {
    fn clear(&mut self) {
        self.bytes.clear();
        self.references.clear();
    }
    /// Appends what refers to no other part.
    pub(crate) fn extend(&mut self, more: &Self) {
        self.append(more, 0);
    }
    /// Appends what is made for a piece whose other part begins so far behind that of this one.
    fn append(&mut self, more: &Self, other_begins: u32) {
        let begin = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&more.bytes);
        self.references.extend(more.references.iter().map(|&(at, to)| match to {
            Reference::Across(to) => (begin + at, Reference::Across(other_begins + to)),
            _ => (begin + at, to),
        }));
    }
}

/// A place in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// In the cold part, or in what stands before the instruction.
    pub cold: bool,
    /// Bytes behind the begin of that part.
    pub at: u32,
}

/// A yield that the mapping lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedYield {
    /// The jump to the next context, and where the yield goes on when it has its turn again.
    pub jump: Spot,
    pub resume: Spot,
    pub switch: Option<Switch>,
    /// Addresses of the instructions of the original that it stands for.
    pub origins: Box<[u64]>,
}

/// An instruction by which a yield is switched on and off while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// The byte that changes, from the begin of what stands before the instruction.
    pub at: u32,
    /// If it needs a relay: where the relay leads, from the begin of the cold part, and what
    /// becomes of exceptions that are thrown there.
    pub by_relay: Option<(u32, ThrownTo)>,
}

/// Inserted code in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// What stands before the instruction.
    pub hot: Part,
    /// What lies behind the unit.
    pub cold: Part,
    /// In the order of control; at most one of them can be switched off.
    pub yields: Vec<ListedYield>,
}

impl Piece {
    pub(crate) fn clear(&mut self) {
        self.hot.clear();
        self.cold.clear();
        self.yields.clear();
    }
    pub(crate) fn append(&mut self, other: &Self) {
        let (hot, cold) = (self.hot.bytes.len() as u32, self.cold.bytes.len() as u32);
        let moved = |spot: Spot| Spot { at: spot.at + if spot.cold { cold } else { hot }, ..spot };
        self.yields.extend(other.yields.iter().map(|listed| ListedYield {
            jump: moved(listed.jump),
            resume: moved(listed.resume),
            switch: listed.switch.map(|switch| Switch {
                at: hot + switch.at,
                by_relay: switch.by_relay.map(|(to, thrown)| (cold + to, thrown)),
            }),
            ..listed.clone()
        }));
        self.hot.append(&other.hot, cold);
        self.cold.append(&other.cold, hot);
    }
}

/// What is inserted into one unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Insertions {
    /// Ends of each instruction's piece in `hot`; empty if nothing is inserted at all.
    ends: Vec<u32>,
    hot: Part,
    /// Indices of the instructions whose pieces have cold parts, ascending, and the ends of these
    /// in `cold`.
    cold_ends: Vec<(u32, u32)>,
    cold: Part,
    /// By the index of the instruction, ascending.
    yields: Vec<(u32, ListedYield)>,
    /// Instructions that take the place of the original's, by index.
    replaced: Vec<(u32, Vec<u8>)>,
}

impl Insertions {
    /// Adds the code that goes before the next instruction.
    pub(crate) fn push(&mut self, code: &[u8]) {
        self.hot.bytes.extend_from_slice(code);
        self.ends.push(self.hot.bytes.len() as u32);
    }
    pub(crate) fn push_piece(&mut self, piece: &Piece) {
        // References across are from the begin of the piece.
        self.hot.append(&piece.hot, 0);
        let index = self.ends.len() as u32;
        self.yields.extend(piece.yields.iter().map(|listed| (index, listed.clone())));
        if !piece.cold.bytes.is_empty() {
            self.cold.append(&piece.cold, 0);
            self.cold_ends.push((index, self.cold.bytes.len() as u32));
        }
        self.ends.push(self.hot.bytes.len() as u32);
    }
    /// How much is inserted, cold parts and all.
    pub(crate) fn bytes(&self) -> u64 {
        (self.hot.bytes.len() + self.cold.bytes.len()) as u64
    }
    /// Gives back the space that nothing was put into: it all stays until the result is written.
    pub(crate) fn shrink(&mut self) {
        for part in [&mut self.hot, &mut self.cold] {
            part.bytes.shrink_to_fit();
            part.references.shrink_to_fit();
        }
        self.ends.shrink_to_fit();
        self.cold_ends.shrink_to_fit();
        self.yields.shrink_to_fit();
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
        &self.hot.bytes[self.begin(index)..self.ends[index] as usize]
    }
    pub(crate) fn size_before(&self, index: usize) -> u32 {
        self.before(index).len() as u32
    }
    /// The references of the code before an instruction, from its first byte.
    pub(crate) fn references_before(&self, index: usize) -> impl Iterator<Item = (usize, Reference)> + '_ {
        let end = if self.ends.is_empty() { 0 } else { self.ends[index] as usize };
        let begin = if self.hot.references.is_empty() || end == 0 { end } else { self.begin(index) };
        references(&self.hot, begin, end)
    }
    /// The cold parts: of the piece before which instruction, and how long each is.
    pub(crate) fn cold_sizes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let begins = [0].into_iter().chain(self.cold_ends.iter().map(|&(_, end)| end));
        self.cold_ends.iter().zip(begins).map(|(&(index, end), begin)| (index, end - begin))
    }
    /// A cold part, by its number, and its references from its first byte.
    pub(crate) fn cold(&self, nth: usize) -> (&[u8], impl Iterator<Item = (usize, Reference)> + '_) {
        let begin = nth.checked_sub(1).map_or(0, |before| self.cold_ends[before].1) as usize;
        let end = self.cold_ends[nth].1 as usize;
        (&self.cold.bytes[begin..end], references(&self.cold, begin, end))
    }
    /// Whether code in line refers to the unit's label table.
    pub(crate) fn use_label_table(&self) -> bool {
        self.hot.references.iter().any(|&(_, to)| to == Reference::LabelTable)
    }
    /// Yields that the mapping lists, with the indices of the instructions they stand before.
    pub(crate) fn yields(&self) -> &[(u32, ListedYield)] {
        &self.yields
    }
    pub(crate) fn replaced(&self) -> &[(u32, Vec<u8>)] {
        &self.replaced
    }
    pub(crate) fn replacement(&self, index: usize) -> Option<&[u8]> {
        let at = self.replaced.binary_search_by_key(&(index as u32), |&(index, _)| index).ok()?;
        Some(&self.replaced[at].1)
    }
}

/// The references between two places of a part, from the first of them.
fn references(part: &Part, begin: usize, end: usize) -> impl Iterator<Item = (usize, Reference)> + '_ {
    let first = part.references.partition_point(|&(at, _)| (at as usize) < begin);
    part.references[first..]
        .iter()
        .take_while(move |&&(at, _)| (at as usize) < end)
        .map(move |&(at, to)| (at as usize - begin, to))
}
