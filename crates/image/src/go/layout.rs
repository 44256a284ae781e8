//! Where the fields of Go's `moduledata` and of its function records lie, by version.
//!
//! To add a version: compare `moduledata`, `_func`, `inlinedCall` and `moduledataverify1` in its
//! sources (`runtime/symtab.go`, `runtime/runtime2.go`) with those of the version before, and the
//! code that walks the list of modules; then raise [`NEWEST`].

/// The versions whose sources were looked at: 1.19, and from 1.21 to this.
pub const NEWEST: u32 = 26;

/// How many bytes the head of `pclntab` has.
pub const HEADER_SIZE: usize = 72;

/// Offsets in `moduledata` that are the same in all versions.
pub mod at {
    pub const HEADER: usize = 0;
    pub const NAMES: usize = 8;
    pub const UNITS: usize = 32;
    pub const FILES: usize = 56;
    pub const PCTAB: usize = 80;
    pub const FUNCTIONS: usize = 104;
    pub const INDEX: usize = 128;
    pub const FIND: usize = 152;
    pub const MIN_PC: usize = 160;
    pub const MAX_PC: usize = 168;
    pub const TEXT: usize = 176;
    pub const END_OF_TEXT: usize = 184;
    /// From here on there are the ranges of data.
    pub const DATA: usize = 192;
    pub const END_OF_DATA: usize = 256;
}

/// Those that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub minor: u32,
    /// `rodata` and `gofunc`, which are kept; what is between [`at::DATA`] and this is the module's
    /// own.
    pub read_only: usize,
    pub functions_data: usize,
    /// `textsectmap` and all the slices behind it.
    pub sections: usize,
    pub plugin_path: usize,
    pub hashes: usize,
    pub has_main: usize,
    pub bad: usize,
    /// `gcdatamask`.
    pub mask: usize,
    pub type_map: usize,
    pub next: usize,
    /// How many bytes `moduledata` has.
    pub size: usize,
    /// How many bytes a function record has before its lists of tables.
    pub record: usize,
    /// How many bytes a row of an inlining tree has, and where in it the place of the call is.
    pub inlined: usize,
    pub parent_pc: usize,
}

impl Layout {
    /// Of Go 1.`minor`.
    pub fn of(minor: u32) -> Option<Self> {
        if minor != 19 && !(21..=NEWEST).contains(&minor) {
            return None;
        }
        let since = |version: u32, size: usize| if minor >= version { size } else { 0 };
        // noptrdata to enoptrbss, the counters of coverage, end, gcdata, gcbss, types, etypes
        let read_only = at::END_OF_DATA + since(20, 16) + 40;
        let functions_data = read_only + 8;
        let sections = functions_data + 8 + since(26, 8);
        // textsectmap, typelinks, itablinks, ptab
        let plugin_path = sections + 4 * 24;
        // pluginpath, pkghashes, inittasks, modulename
        let hashes = plugin_path + 16 + 24 + since(21, 24) + 16;
        let has_main = hashes + 24;
        let mask = has_main + 8;
        let type_map = mask + 32;
        let is_late = minor <= 22;
        let next = type_map + 8 + if is_late { 8 } else { 0 };
        Some(Self {
            minor,
            read_only,
            functions_data,
            sections,
            plugin_path,
            hashes,
            has_main,
            bad: if is_late { type_map + 8 } else { has_main + 1 },
            mask,
            type_map,
            next,
            size: next + 8,
            record: if minor >= 20 { 44 } else { 40 },
            inlined: if minor >= 20 { 16 } else { 20 },
            parent_pc: if minor >= 20 { 8 } else { 16 },
        })
    }

    /// The number at the head of `pclntab`.
    pub fn magic(&self) -> u32 {
        if self.minor >= 20 { 0xffff_fff1 } else { 0xffff_fff0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_sources() {
        assert_eq!(Layout::of(26).map(|layout| layout.size), Some(592));
        assert_eq!(Layout::of(19).map(|layout| layout.next), Some(544));
        assert_eq!((Layout::of(18), Layout::of(20), Layout::of(27)), (None, None, None));
    }
}
