//! The fields of Go's `moduledata` in their order, with the versions that have them; and what a
//! second one, for twins, has in each.

/// What the new module has in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// What the original's has.
    Kept,
    /// Nothing: the module has no such thing of its own.
    Zero,
    /// Nothing, and in the original a zero, too.
    Unset,
    Header,
    Pctab,
    Functions,
    Index,
    Find,
    /// Where the first twin begins.
    From,
    /// Where the last twin ends.
    To,
    /// Ranges without extent, all at the zeros that `Map` names.
    Empty,
    /// No bits, at the same zeros. (Were both words null, the runtime would make bits.)
    Mask,
    /// Where there are zeros, which is an empty map. (Were it null, the runtime would make one.)
    Map,
    HasMain,
    Next,
}

/// A field: what it is, its size, and the first and the last minor version that have it.
type Row = (Field, usize, u32, u32);

const ALL: u32 = u32::MAX;

/// The order of the fields, as in `runtime/symtab.go`.
const ROWS: [Row; 35] = [
    (Field::Header, 8, 0, ALL),
    (Field::Kept, 24, 0, ALL), // funcnametab
    (Field::Kept, 24, 0, ALL), // cutab
    (Field::Kept, 24, 0, ALL), // filetab
    (Field::Pctab, 24, 0, ALL),
    (Field::Functions, 24, 0, ALL), // pclntable
    (Field::Index, 24, 0, ALL),     // ftab
    (Field::Find, 8, 0, ALL),       // findfunctab
    (Field::From, 8, 0, ALL),       // minpc
    (Field::To, 8, 0, ALL),         // maxpc
    (Field::From, 8, 0, ALL),       // text
    (Field::To, 8, 0, ALL),         // etext
    (Field::Empty, 64, 0, ALL),     // noptrdata, data, bss, noptrbss
    (Field::Zero, 16, 20, ALL),     // covctrs
    (Field::Zero, 24, 0, ALL),      // end, gcdata, gcbss
    (Field::Zero, 16, 0, ALL),      // types
    (Field::Kept, 8, 0, ALL),       // rodata
    (Field::Kept, 8, 0, ALL),       // gofunc
    (Field::Kept, 8, 26, ALL),      // epclntab
    (Field::Zero, 24, 0, ALL),      // textsectmap
    (Field::Zero, 24, 0, ALL),      // typelinks
    (Field::Zero, 24, 0, ALL),      // itablinks
    (Field::Zero, 24, 0, ALL),      // ptab
    (Field::Unset, 16, 0, ALL),     // pluginpath
    (Field::Zero, 24, 0, ALL),      // pkghashes
    (Field::Zero, 24, 21, ALL),     // inittasks
    (Field::Zero, 16, 0, ALL),      // modulename
    (Field::Unset, 24, 0, ALL),     // modulehashes
    (Field::HasMain, 8, 0, ALL),    // and bad, since 1.23
    (Field::Mask, 16, 0, ALL),      // gcdatamask
    (Field::Unset, 16, 0, ALL),     // gcbssmask
    (Field::Map, 8, 0, ALL),        // typemap
    (Field::Unset, 8, 0, 22),       // bad
    (Field::Next, 8, 0, ALL),
    (Field::Zero, 0, 0, ALL),
];

/// How things lie in the tables of one version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) minor: u32,
}

impl Shape {
    /// Of versions whose sources were looked at.
    pub(crate) fn of(minor: u32) -> Option<Self> {
        matches!(minor, 19 | 21..=26).then_some(Self { minor })
    }
    /// The fields with their offsets and sizes.
    pub(crate) fn fields(self) -> impl Iterator<Item = (Field, usize, usize)> {
        let has = move |row: &&Row| (row.2..=row.3).contains(&self.minor);
        let mut at = 0;
        ROWS.iter().filter(has).map(move |&(field, size, ..)| {
            at += size;
            (field, at - size, size)
        })
    }
    pub(crate) fn size(self) -> usize {
        self.fields().map(|(_, _, size)| size).sum()
    }
    /// The offset of the first field of a kind.
    pub(crate) fn offset(self, wanted: Field) -> usize {
        self.fields().find(|&(field, ..)| field == wanted).map_or(0, |(_, at, _)| at)
    }
    pub(crate) fn functions_data(self) -> usize {
        let rodata = self.offset(Field::Empty) + 64 + if self.minor >= 20 { 16 } else { 0 } + 40;
        rodata + 8
    }
    pub(crate) fn magic(self) -> u64 {
        let first: u64 = if self.minor >= 20 { 0xffff_fff1 } else { 0xffff_fff0 };
        // No padding, steps of one byte, pointers of eight.
        first | 1 << 48 | 8 << 56
    }
    /// How many bytes a function's record has before its lists.
    pub(crate) fn record(self) -> usize {
        if self.minor >= 20 { 44 } else { 40 }
    }
    /// How many bytes a row of an inlining tree has; where the place of the call is in it, and the
    /// number of the row around it, if it is not found by that place.
    pub(crate) fn row(self) -> (usize, usize, Option<usize>) {
        if self.minor >= 20 { (16, 8, None) } else { (20, 16, Some(0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets() {
        let at = |minor, field| Shape { minor }.offset(field);
        assert_eq!((at(26, Field::Next), at(26, Field::HasMain)), (584, 536));
        assert_eq!((at(19, Field::Next), at(22, Field::Next)), (544, 584));
        assert_eq!(Shape { minor: 26 }.functions_data(), 320);
        assert!(Shape::of(20).is_none());
    }
}
