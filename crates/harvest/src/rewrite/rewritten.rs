//! What a rewritten file says of itself: its mapping, as far as it is needed here (`docs/twin-format.md`).

use image::Image;
use image::elf::abi::{PF_R, PF_W, PF_X};
use runtime_abi::control::SwitchRow;

/// A rewritten file's mapping.
pub(crate) struct Mapping<'f> {
    pub(crate) image: Image<'f>,
    map: &'f [u8],
}

impl<'f> Mapping<'f> {
    pub(crate) fn of(file: &'f [u8]) -> Option<Self> {
        let image = Image::parse(file).ok()?;
        let (_, _, note) = image.notes().find(|(owner, kind, _)| *owner == b"Gleaner\0" && *kind == 1)?;
        let offset = word(note, 8)? as usize;
        let map = file.get(offset..offset.checked_add(word(note, 16)? as usize)?)?;
        Some(Self { image, map })
    }

    /// Rows of eight-byte words: their number and the first one's offset are named at these places.
    pub(crate) fn rows<const WORDS: usize>(
        &self,
        count: usize,
        first: usize,
    ) -> impl Iterator<Item = [u64; WORDS]> + use<'f, WORDS> {
        let count = word(self.map, count).unwrap_or(0) as usize;
        let rows = word(self.map, first).and_then(|first| self.map.get(first as usize..)).unwrap_or(&[]);
        rows.chunks_exact(8 * WORDS)
            .take(count)
            .map(|row| std::array::from_fn(|at| word(row, 8 * at).unwrap_or(0)))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// By what the yields of a primary are switched on and off.
pub(crate) struct Switches {
    /// Where the program begins.
    pub(crate) entry: u64,
    pub(crate) rows: Vec<SwitchRow>,
    /// The addresses of the segment that all of them are in, which is code and nothing else; 0 and 0: there is no such.
    pub(crate) code: [u64; 2],
}

impl Switches {
    pub(crate) fn of(file: &[u8]) -> Option<Self> {
        let mapping = Mapping::of(file)?;
        let rows: Vec<_> = mapping.rows(48, 56).map(|[place, resume]| SwitchRow { place, resume }).collect();
        let codes =
            mapping.image.loads().iter().filter(|load| load.flags & (PF_R | PF_W | PF_X) == PF_R | PF_X);
        let mut codes = codes.map(|load| [load.address, load.address.saturating_add(load.file_size)]);
        let code = codes.find(|[begin, end]| rows.iter().all(|row| (*begin..*end).contains(&row.place)));
        Some(Self { entry: mapping.image.entry().0, rows, code: code.unwrap_or_default() })
    }
}
