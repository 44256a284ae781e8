//! The format by which a rewritten file describes itself: a *note* that marks the file and leads to
//! a *mapping*, and the mapping, which says where each instruction has its copy and what each yield
//! stands for.
//!
//! The rewriter writes it, the checker and the launcher read it. `docs/twin-format.md` describes it
//! byte by byte; that page and this crate change together, and [`VERSION`] goes up with them.
//!
//! ```text
//! PT_NOTE ──► Note { mode, map_offset, map_size, … }
//!                          │
//!                          ▼
//!             header │ units │ jump tables │ yields │ origins │ labels │ instruction streams
//!                        │                     │        ▲                  ▲
//!                        └─────────────────────┼────────┼──────────────────┘ one for each unit
//!                                              └────────┘ one or more original addresses a yield
//! ```
//!
//! [`Mapping::decode`] accepts only what hangs together: tables inside the mapping, rows in
//! ascending order, known kinds. Whether a row is *true* of the code takes the code: that is the
//! checker's part.
//!
//! ```
//! use gleaner_twin_format::{Mapping, YieldRow, Yields, mode};
//!
//! // A primary with one yield, which is switched by the byte at 0x5010 and serves two loads.
//! let mut yields = Yields::default();
//! let row = YieldRow { place: 0x5100, resume: 0x5103, switch: Some(0x5010) };
//! yields.push(row, &[0x1130, 0x1138]);
//! let (mode, units, tables) = (mode::PRIMARY, vec![], vec![]);
//! let (labels, label_tables) = (vec![], vec![]);
//! let written = Mapping { mode, units, tables, yields, labels, label_tables }.encode();
//!
//! let read = Mapping::decode(&written).unwrap();
//! let (row, origins) = read.yields.at(0x5100).unwrap();
//! assert_eq!((row.resume, origins), (0x5103, &[0x1130, 0x1138][..]));
//! assert!(Mapping::decode(&written[..written.len() - 1]).is_err());
//! ```
//!
//! To list another kind of yield: its number, which rows have besides, what its row says in the
//! document, and its check in `crates/proof/src/yields/rows.rs`.
#![forbid(unsafe_code)]

mod copies;
mod mapping;
mod note;
mod number;
pub mod stream;
pub mod trace;
mod yields;

pub use copies::Place;
pub use mapping::{LabelTable, Mapping, Table, Unit};
pub use note::{NOTE_CONTENTS_SIZE, NOTE_OWNER, NOTE_SIZE, NOTE_TYPE, Note};
pub use yields::{YieldRow, Yields};

/// Of note and mapping. Goes up whenever a reader of the last version would misread the next one.
pub const VERSION: u32 = 7;

/// The first eight bytes of a mapping.
pub const MAGIC: [u8; 8] = *b"GLNRTWIN";

/// The modes of a rewrite, as note and mapping number them.
pub mod mode {
    /// Twins are copies.
    pub const IDENTITY: u32 = 1;
    /// Twins fill everything claimed dead with garbage.
    pub const POISON: u32 = 2;
    /// Twins yield at sites.
    pub const PRIMARY: u32 = 3;
    /// Twins yield at sites and bounds, and go home before what must not run aboard.
    pub const SCAVENGER: u32 = 4;
    // 5 was that of a parked one.
    /// Twins prefetch ahead of some loads; what has none of them has no twin.
    pub const PREFETCH: u32 = 6;
    /// Twins write down the address of each memory access, just before it.
    pub const TRACE: u32 = 7;

    /// Whether twins of this mode may run on another program's kernel thread.
    pub const fn goes_aboard(mode: u32) -> bool {
        mode == SCAVENGER
    }

    /// Whether other programs may run on the kernel thread of what runs twins of this mode: their
    /// site yields can be switched off.
    pub const fn hosts(mode: u32) -> bool {
        mode == PRIMARY
    }

    /// Whether twins of this mode hold yields.
    pub const fn harvests(mode: u32) -> bool {
        mode == PRIMARY || goes_aboard(mode)
    }
}

/// Why bytes are no note or mapping of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (at {at:#x})")]
pub struct FormatError {
    /// Bytes from the start of the note's contents, or of the mapping.
    pub at: u64,
    pub what: &'static str,
}
