//! What caches and buffers there are.

/// One cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    pub bytes: u64,
    pub ways: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    LeastRecentlyUsed,
    /// Any of a set, by a sequence that is the same in each run.
    Any,
}

/// A last level, which all cores share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    pub cache: Cache,
    pub replacement: Replacement,
    /// It takes what L2 replaces, and gives up what L2 fetches from it.
    pub is_victim: bool,
}

/// Translation buffers of data, of each core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Entries; each is reached by four or eight ways of its own.
    pub first: u32,
    pub second: u32,
    pub page_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub l1: Cache,
    pub l2: Cache,
    /// The first is the one that says which level serves an access; there is at least one. All are
    /// victims, or none.
    pub l3: Vec<Last>,
    pub buffers: Buffers,
}

impl Default for Geometry {
    /// A common server's core, with a share of its last cache.
    fn default() -> Self {
        let cache = Cache { bytes: 32 << 20, ways: 16 };
        Self {
            l1: Cache { bytes: 32 << 10, ways: 8 },
            l2: Cache { bytes: 1 << 20, ways: 8 },
            l3: vec![Last { cache, replacement: Replacement::LeastRecentlyUsed, is_victim: true }],
            buffers: Buffers { first: 64, second: 2048, page_bytes: 4096 },
        }
    }
}
