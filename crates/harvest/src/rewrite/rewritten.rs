//! What a rewritten file says of itself: its mapping, by [`twin_format`], as far as a harvest needs
//! it.

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use image::Image;
use image::elf::abi::{PF_R, PF_W, PF_X};
use runtime_abi::control::{EntryRow, SwitchRow};
use twin_format::{Mapping, Note, Yields};
use units::Svma;

/// A rewritten file, read. None where it is none, or one of another version of the format.
pub(crate) struct RewrittenFile<'f> {
    image: Image<'f>,
    mapping: Mapping<'f>,
}

impl<'f> RewrittenFile<'f> {
    pub(crate) fn of(file: &'f [u8]) -> Option<Self> {
        let image = Image::parse(file).ok()?;
        let (_, _, contents) = image.notes().find(|(owner, kind, _)| Note::is_ours(owner, *kind))?;
        let mapping = Mapping::decode(Note::decode(contents).ok()?.mapping(file).ok()?).ok()?;
        Some(Self { image, mapping })
    }

    pub(crate) fn switches(&self) -> Switches {
        let Self { image, mapping } = self;
        let switched = mapping.yields.rows().iter().filter_map(|row| Some((row.switch?, row.resume)));
        let rows: Vec<_> = switched.map(|(place, resume)| SwitchRow { place, resume }).collect();
        let codes = image.loads().iter().filter(|load| load.flags & (PF_R | PF_W | PF_X) == PF_R | PF_X);
        let mut codes = codes.map(|load| [load.address, load.address.saturating_add(load.file_size)]);
        let code = codes.find(|[begin, end]| rows.iter().all(|row| (*begin..*end).contains(&row.place)));
        Switches { entry: image.entry().0, rows, code: code.unwrap_or_default() }
    }

    /// The instruction of the original that a place in a twin is for; the place itself where it
    /// is in no twin.
    pub(crate) fn original_of(&self, place: u64) -> u64 {
        let after = self.mapping.units.partition_point(|unit| unit.twin <= place);
        let unit = after.checked_sub(1).map(|index| &self.mapping.units[index]);
        unit.and_then(|unit| unit.original_of(place)).unwrap_or(place)
    }

    /// Whether this place in a twin is code that was inserted, and not a copy of the original's.
    pub(crate) fn is_inserted(&self, place: u64) -> bool {
        let after = self.mapping.units.partition_point(|unit| unit.twin <= place);
        let unit = after.checked_sub(1).map(|index| &self.mapping.units[index]);
        unit.is_some_and(|unit| !unit.places().any(|of| (of.copy..of.twin_end).contains(&place)))
    }

    /// Where guests may go on in the midst of a twin. In a unit with labels an indirect jump leads
    /// back to the original, which a thread at home then stays in: what it calls returns there.
    fn inner_entries(&self) -> Vec<EntryRow> {
        let Self { image, mapping } = self;
        let mut rows = Vec::new();
        for unit in &mapping.units {
            let first = mapping.labels.partition_point(|label| *label < unit.start);
            let end = unit.start.saturating_add(u64::from(unit.size));
            let labels = &mapping.labels[first..mapping.labels.partition_point(|label| *label < end)];
            if labels.is_empty() {
                continue;
            }
            let mut is_behind_call = false;
            for place in unit.places() {
                if is_behind_call || labels.binary_search(&place.original).is_ok() {
                    rows.push(EntryRow { original: place.original, twin: place.twin });
                }
                let code = image.bytes_at(Svma(place.original), usize::from(place.len)).unwrap_or(&[]);
                let insn = Decoder::with_ip(64, code, place.original, DecoderOptions::NONE).decode();
                is_behind_call = matches!(insn.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            }
        }
        rows
    }

    /// None where twins do not run aboard.
    pub(crate) fn twin_code(&self) -> Option<TwinCode> {
        let Self { image, mapping } = self;
        if !twin_format::mode::goes_aboard(mapping.mode) {
            return None;
        }
        let twin = mapping.units.first()?.twin;
        let codes = image.loads().iter().filter(|load| load.flags & PF_X != 0);
        let codes = codes.map(|load| [load.address, load.address.saturating_add(load.file_size)]);
        let (twins, originals): (Vec<_>, Vec<_>) =
            codes.partition(|[begin, end]| (*begin..*end).contains(&twin));
        let first = originals.iter().map(|range| range[0]).min()?;
        let end = originals.iter().map(|range| range[1]).max()?;
        let starts = mapping.units.iter().filter(|unit| unit.patch.is_none());
        let starts = starts.map(|unit| EntryRow { original: unit.start, twin: unit.twin });
        let entries = starts.chain(self.inner_entries()).collect();
        Some(TwinCode { entry: image.entry().0, twins: *twins.first()?, originals: [first, end], entries })
    }
}

/// The yields of a rewritten file, and what they stand for.
pub(crate) fn yields(file: &[u8]) -> Option<Yields> {
    Some(RewrittenFile::of(file)?.mapping.yields)
}

/// By what the yields of a primary are switched on and off.
pub(crate) struct Switches {
    /// Where the program begins.
    pub(crate) entry: u64,
    /// By ascending place.
    pub(crate) rows: Vec<SwitchRow>,
    /// The addresses of the segment that all of them are in, which is code and nothing else; 0 and
    /// 0: there is no such.
    pub(crate) code: [u64; 2],
}

/// Code of a rewritten file that guests run, by the file's addresses.
pub(crate) struct TwinCode {
    /// Where the program begins.
    pub(crate) entry: u64,
    /// The segment of the twins.
    pub(crate) twins: [u64; 2],
    /// The segments of code that were there before, from the first one to the end of the last.
    pub(crate) originals: [u64; 2],
    /// What does not begin with a jump to its twin, and places inside of units.
    pub(crate) entries: Vec<EntryRow>,
}
