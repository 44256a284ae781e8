//! Walks of the page tables: what an access pays for tables that grow with its area.
//!
//! A TLB that is missed adds a step at its reach, as a cache does. That is not all: a walk's last
//! load reads the page's entry, eight bytes of an area of its own, which spills from one cache
//! after the other as the data did:
//!
//! ```text
//! data      b_1   b_2           b_3            what is behind b_k costs d_k more
//! entries                b_1·s         b_2·s   the same steps, s = bytes of a page / 8
//! ```
//!
//! So the term has one parameter: how many entries of this scale an access loads, in the mean. The
//! steps are those of the levels. In a guest each walk is nested: the host's tables have an entry
//! for each of the host's pages too. Where guest and host both have pages of 4 KiB, both entries
//! spill at the same areas, and only their sum can be known; with huge pages in the guest it is the
//! host's alone.

use serde::Serialize;

const ENTRY_BYTES: f64 = 8.0;
const SMALL_PAGE: f64 = 4096.0;
/// Entries that spill in the last octave of the areas alone do not tell a term from noise.
const LEAST_OCTAVES: f64 = 1.0;

/// Whose tables the entries are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tables {
    /// This system's, which is no guest.
    Own,
    /// The host's, under huge pages of the guest.
    Host,
    /// The guest's and the host's: only the sum is known.
    GuestAndHost,
}

impl Tables {
    /// Of these pages, here; none where entries spill behind all areas that can be measured.
    pub(crate) fn of(pages: &str, guest: bool) -> Option<Self> {
        match (pages, guest) {
            ("4K", false) => Some(Self::Own),
            ("4K", true) => Some(Self::GuestAndHost),
            (_, true) => Some(Self::Host),
            (_, false) => None,
        }
    }

    /// One entry a table for each access, and as much again as measuring may be off by.
    pub(crate) fn most_loads(self) -> f64 {
        match self {
            Self::Own | Self::Host => 1.25,
            Self::GuestAndHost => 2.5,
        }
    }
}

/// What a fit takes walks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walks {
    /// Entries that an access loads; 0 for a fit without walks.
    pub(crate) loads: f64,
}

/// How much memory an entry stands for, by its own size.
pub(crate) const SCALE: f64 = SMALL_PAGE / ENTRY_BYTES;

/// Whether entries spill from a cache well within the areas.
pub(crate) fn within(breaks: &[f64], largest: f64) -> bool {
    breaks.first().is_some_and(|&first| (largest / (first * SCALE)).log2() >= LEAST_OCTAVES)
}
