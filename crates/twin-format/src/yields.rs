//! The rows of yields before loads: for each its place in a twin, and the loads of the original
//! that it stands for.

/// One yield. Addresses are those of the rewritten file, before it is loaded anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YieldRow {
    /// The jump by which the thread goes on with the next context: `jmp [rax + RIP]`.
    pub place: u64,
    /// Where the context goes on when it has its turn again.
    pub resume: u64,
    /// The byte that turns the yield on and off; none: it is always on.
    pub switch: Option<u64>,
}

/// All such yields of a file, by ascending place, with their origins: the addresses, in the
/// original, of the loads that a yield stands for. The first one is the load that it stands before;
/// further ones are loads that the same yield fetches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Yields {
    rows: Vec<YieldRow>,
    /// For each row, the end of its origins in `origins`.
    ends: Vec<u32>,
    origins: Vec<u64>,
}

impl Yields {
    /// Adds a row, whose place is behind that of the row before it.
    pub fn push(&mut self, row: YieldRow, origins: &[u64]) {
        debug_assert!(self.rows.last().is_none_or(|last| last.place < row.place), "rows ascend by place");
        debug_assert!(!origins.is_empty(), "a yield stands for something");
        self.rows.push(row);
        self.origins.extend_from_slice(origins);
        self.ends.push(self.origins.len() as u32);
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn rows(&self) -> &[YieldRow] {
        &self.rows
    }

    /// Each row with its origins.
    pub fn iter(&self) -> impl Iterator<Item = (&YieldRow, &[u64])> {
        self.rows.iter().enumerate().map(|(index, row)| (row, self.origins_of(index)))
    }

    /// The yield whose jump this is.
    pub fn at(&self, place: u64) -> Option<(&YieldRow, &[u64])> {
        let index = self.rows.binary_search_by_key(&place, |row| row.place).ok()?;
        Some((&self.rows[index], self.origins_of(index)))
    }

    pub(crate) fn origin_count(&self) -> usize {
        self.origins.len()
    }

    pub(crate) fn all_origins(&self) -> &[u64] {
        &self.origins
    }

    fn origins_of(&self, index: usize) -> &[u64] {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.origins[begin as usize..self.ends[index] as usize]
    }
}
