//! Where functions start, by the sorted table that the loader's unwinder searches: for questions
//! about a few places of a large file, without reading all of its unwind entries.

use crate::Image;
use crate::elf::abi;
use crate::elf::bytes::u32_at;
use units::Svma;

/// The table of `.eh_frame_hdr`, in the only form that linkers write: pairs of four bytes, relative
/// to its begin.
#[derive(Clone, Copy, Debug)]
pub struct Starts<'d> {
    header: Svma,
    rows: &'d [u8],
}

const HEADER_BYTES: usize = 12;
const ROW_BYTES: usize = 8;
/// Version; the encodings of the pointer to `.eh_frame`, of the count and of the rows.
const AS_LINKERS_WRITE: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

impl<'d> Starts<'d> {
    /// `None` if the file has no such table.
    pub fn of(image: &Image<'d>) -> Option<Self> {
        let segment = image.segments().iter().find(|segment| segment.kind == abi::PT_GNU_EH_FRAME)?;
        let bytes = image.segment_bytes(segment)?;
        if bytes.get(..4)? != AS_LINKERS_WRITE {
            return None;
        }
        let count = u32_at(bytes, 8)? as usize;
        let rows = bytes.get(HEADER_BYTES..HEADER_BYTES.checked_add(count.checked_mul(ROW_BYTES)?)?)?;
        Some(Self { header: Svma(segment.address), rows })
    }

    /// The last start at an address or before it, and the next one behind.
    pub fn around(&self, address: Svma) -> Option<(Svma, Option<Svma>)> {
        let count = self.rows.len() / ROW_BYTES;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.start(middle)? <= address { low = middle + 1 } else { high = middle }
        }
        Some((self.start(low.checked_sub(1)?)?, self.start(low)))
    }

    fn start(&self, row: usize) -> Option<Svma> {
        let distance = u32_at(self.rows, row * ROW_BYTES)? as i32;
        (row < self.rows.len() / ROW_BYTES)
            .then(|| Svma(self.header.0.wrapping_add_signed(i64::from(distance))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::frames::Frames;

    #[test]
    fn the_table_agrees_with_the_unwind_entries() {
        let data = std::fs::read("/proc/self/exe").unwrap();
        let image = Image::parse(&data).unwrap();
        let starts = Starts::of(&image).expect("a table");
        let frames = Frames::of(&image).unwrap();
        let mut fdes: Vec<(Svma, Svma)> = frames.fdes.iter().map(|fde| (fde.start, fde.end())).collect();
        fdes.sort_unstable();
        assert!(fdes.len() > 100);
        for pair in fdes.windows(2).step_by(7) {
            let [(start, end), (next, _)] = pair else { unreachable!() };
            assert_eq!(starts.around(*start), Some((*start, Some(*next))));
            assert_eq!(starts.around(Svma(end.0 - 1)).unwrap().0, *start);
        }
        assert_eq!(starts.around(Svma(0)), None);
        assert_eq!(starts.around(Svma(u64::MAX)), Some((fdes.last().unwrap().0, None)));
    }
}
