//! The note and the mapping of a rewritten file (rule R12): what the file says it is. Nothing said
//! here is believed before another rule has looked at it; here it is only made sure that it hangs
//! together.

use crate::Refusal;
use crate::container::elf::Elf;
use crate::rule::{Findings, Rule};
use twin_format::Yields;
pub(crate) use twin_format::mode::{IDENTITY, POISON, PREFETCH, PRIMARY, SCAVENGER, TRACE};
pub(crate) use twin_format::{LabelTable, Note, Table};

/// The leave before the jump of every escape of a scavenger.
const LEAD: u8 = 63;

/// The size of a relay: of a jump, and of the `nop` that may become one.
pub(crate) const RELAY_SIZE: u64 = 5;

/// The jump behind all twins by which a switch leads on into its cold part.
#[derive(Clone, Copy)]
pub(crate) struct Relay {
    /// The switch whose relay it is.
    pub(crate) switch: u64,
    pub(crate) at: u64,
    /// Where it leads.
    pub(crate) to: u64,
}

/// Reads the note. `Err`: there is none, so the file is no rewritten one; `Ok(None)`: nothing more
/// can be said about the file.
pub(crate) fn note(rewritten: &Elf<'_>, findings: &Findings) -> Result<Option<Note>, Refusal> {
    let mut ours = rewritten.notes().filter(|(owner, kind, _)| Note::is_ours(owner, *kind));
    let (_, _, contents) = ours.next().ok_or(Refusal::NotRewritten)?;
    if ours.next().is_some() {
        findings.in_file(Rule::Mapping, 0, "more than one rewriter's note");
    }
    let is_known = |mode| matches!(mode, IDENTITY | POISON | PRIMARY | SCAVENGER | PREFETCH | TRACE);
    let note = match Note::decode(contents) {
        Ok(note) if !is_known(note.mode) => return Err(Refusal::UnknownMode(note.mode)),
        Ok(note) => note.check().map(|()| note),
        Err(error) => Err(error),
    };
    Ok(note.map_err(|error| findings.in_file(Rule::Mapping, 0, error.what)).ok())
}

/// A unit and its twin. Offsets inside of it are 32 bits wide.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'d> {
    pub(crate) start: u64,
    pub(crate) twin: u64,
    pub(crate) count: u32,
    pub(crate) patch: Option<u32>,
    pub(crate) code: &'d [u8],
    pub(crate) copy: &'d [u8],
    pub(crate) stream: &'d [u8],
    /// How many bytes of inserted code stand before the jump of each escape.
    pub(crate) lead: u8,
    /// Its jump tables, in [`Mapping::tables`].
    pub(crate) tables: (u32, u32),
}

impl Unit<'_> {
    pub(crate) fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.code.len() as u64
    }
    pub(crate) fn twin_holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.twin) < self.copy.len() as u64
    }
    /// Whether the first byte is an instruction with a twin.
    pub(crate) fn begins_with_item(&self) -> bool {
        self.stream.first().is_some_and(|head| head & 0x10 == 0)
    }
}

pub(crate) struct Mapping<'d> {
    pub(crate) units: Vec<Unit<'d>>,
    starts: Vec<u64>,
    pub(crate) tables: Vec<Table>,
    /// Yields, as they are listed.
    pub(crate) yields: Yields,
    /// Where twins may be entered from anywhere, by the original, ascending.
    pub(crate) labels: Vec<u64>,
    /// By ascending unit.
    label_tables: Vec<LabelTable>,
    /// Of the switches that need one, in their order.
    pub(crate) relays: Vec<Relay>,
}

impl<'d> Mapping<'d> {
    /// The unit whose original holds this address.
    pub(crate) fn at(&self, address: u64) -> Option<&Unit<'d>> {
        self.index_at(address).map(|index| &self.units[index])
    }
    pub(crate) fn index_at(&self, address: u64) -> Option<usize> {
        let last = self.starts.partition_point(|&start| start <= address).checked_sub(1)?;
        self.units[last].holds(address).then_some(last)
    }
    /// Where a unit's label table lies.
    pub(crate) fn label_table(&self, unit: &Unit<'_>) -> Option<u64> {
        let found = self.label_tables.binary_search_by_key(&unit.start, |table| table.unit).ok()?;
        Some(self.label_tables[found].at)
    }
    /// A unit's labels.
    pub(crate) fn labels_of(&self, unit: &Unit<'_>) -> &[u64] {
        let first = self.labels.partition_point(|label| *label < unit.start);
        let count = self.labels[first..].partition_point(|label| unit.holds(*label));
        &self.labels[first..first + count]
    }
    /// The relays of switches from one address up to another.
    pub(crate) fn relays_of(&self, from: u64, to: u64) -> &[Relay] {
        let first = self.relays.partition_point(|relay| relay.switch < from);
        let end = self.relays.partition_point(|relay| relay.switch < to);
        &self.relays[first..end.max(first)]
    }
    /// The unit whose twin holds this address; twins ascend like units.
    pub(crate) fn at_twin(&self, address: u64) -> Option<&Unit<'d>> {
        let after = self.units.partition_point(|unit| unit.twin <= address);
        self.units[..after].last().filter(|unit| unit.twin_holds(address))
    }

    /// Reads the mapping; `None` if nothing more can be said about the file.
    pub(crate) fn read(
        original: &Elf<'d>,
        rewritten: &Elf<'d>,
        note: &Note,
        findings: &Findings,
    ) -> Option<Self> {
        let wrong = |at: u64, what: &str| {
            findings.in_file(Rule::Mapping, note.map_offset.wrapping_add(at), what);
            None
        };
        let decoded = note.mapping(rewritten.data()).and_then(twin_format::Mapping::decode);
        let decoded = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return wrong(error.at, error.what),
        };
        if is_of_go(original) {
            return wrong(0, "twins in a program of Go");
        }
        if decoded.mode != note.mode {
            return wrong(12, "the mapping's mode is not the note's");
        }
        let switches = decoded.yields.rows().iter().filter_map(|row| row.switch);
        if !switches.is_sorted_by(|a, b| a < b) {
            return wrong(0, "switches that do not ascend");
        }
        let mut units = Vec::with_capacity(decoded.units.len());
        let mut next_table = 0;
        for unit in &decoded.units {
            let code = original.load_at(units::Svma(unit.start)).filter(|load| load.is_executable());
            let code = code.and_then(|_| original.bytes_at(units::Svma(unit.start), unit.size as usize));
            let copy = rewritten.load_at(units::Svma(unit.twin)).filter(|load| load.is_executable());
            let copy = copy.and_then(|_| rewritten.bytes_at(units::Svma(unit.twin), unit.twin_size as usize));
            let (Some(code), Some(copy)) = (code, copy) else {
                let what = format!("the unit at {:#x} or its twin does not lie in code", unit.start);
                return wrong(0, &what);
            };
            let first_table = next_table;
            let of_unit = |table: &&Table| table.jump.wrapping_sub(unit.start) < u64::from(unit.size);
            next_table += decoded.tables[first_table..].iter().take_while(of_unit).count();
            units.push(Unit {
                start: unit.start,
                twin: unit.twin,
                count: unit.instructions,
                patch: unit.patch,
                code,
                copy,
                stream: unit.stream,
                lead: if note.goes_aboard() { LEAD } else { 0 },
                tables: (first_table as u32, next_table as u32),
            });
        }
        let starts = units.iter().map(|unit| unit.start).collect();
        let (tables, yields) = (decoded.tables, decoded.yields);
        let (labels, label_tables) = (decoded.labels, decoded.label_tables);
        Some(Self { units, starts, tables, yields, labels, label_tables, relays: Vec::new() })
    }
}

/// Whether anything marks a program as Go's: its runtime looks up return addresses in tables of its
/// own, which know nothing of twins.
fn is_of_go(image: &Elf<'_>) -> bool {
    let is_named = |name: &[u8]| {
        name.ends_with(b".gopclntab") || name.starts_with(b".go.") || name == b".note.go.buildid"
    };
    image.sections().iter().any(|section| is_named(section.name))
        || image.notes().any(|(owner, kind, _)| owner == b"Go\0\0" && kind == 4)
}
