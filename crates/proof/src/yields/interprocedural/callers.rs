//! Who may call a function: whether anybody knows its address (then calls by the ABI come from
//! anywhere), and whether bytes that nobody decoded may hold a direct call of it (then nothing is
//! known of what its callers keep).
//!
//! To find an address in one more place: a source in [`known_addresses`]. Too many are no harm.

use crate::code::references::{self, hold};
use crate::container::elf::{self, Elf};
use crate::container::read::number;
use crate::container::relocations::Relocations;
use crate::liveness::Liveness;
use crate::liveness::body::Body;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::elf::{DT_FINI, DT_INIT, DT_PLTGOT, DT_SYMTAB, SHT_DYNSYM, SHT_SYMTAB};
use rayon::prelude::*;
use units::Svma;

/// Longer tables of distances do not lead to functions in one piece.
const LONGEST_TABLE: usize = 1 << 12;

/// For each body.
#[derive(Clone, Copy, Default)]
pub(super) struct Callers {
    /// Its address may be known to others than direct calls and jumps that were decoded.
    pub(super) taken: bool,
    /// It may be called directly, or jumped into, from where nobody looked.
    pub(super) unseen: bool,
}

/// Addresses, and what becomes of those that are a body's.
struct BodyStarts<'f> {
    starts: &'f [(u64, u32)],
    low: u64,
    high: u64,
    /// Tables of distances that are listed, ascending.
    listed: Vec<u64>,
    data_among_code: Vec<(u64, u64)>,
}

impl BodyStarts<'_> {
    fn body(&self, address: u64) -> Option<u32> {
        if !(self.low <= address && address < self.high) {
            return None;
        }
        let found = self.starts.binary_search_by_key(&address, |start| start.0).ok()?;
        Some(self.starts[found].1)
    }
}

pub(super) fn of(dead: &Liveness<'_, '_>, relocations: &Relocations) -> Vec<Callers> {
    let image = dead.code.original;
    let mut callers = vec![Callers::default(); dead.bodies.len()];
    let mut starts: Vec<(u64, u32)> =
        (0..dead.bodies.len() as u32).map(|body| (dead.code.start(body), body)).collect();
    starts.sort_unstable();
    let (low, high) = (starts.first().map_or(0, |first| first.0), starts.last().map_or(0, |last| last.0 + 1));
    let tables = dead.code.mapping.tables.iter();
    let mut listed: Vec<u64> =
        tables.filter(|table| table.base == table.original).map(|table| table.base).collect();
    listed.sort_unstable();
    let data_among_code = image.data_among_code();
    let found = BodyStarts { starts: &starts, low, high, listed, data_among_code };
    let (mut taken, unseen) = in_code(dead, &found);
    let has = |kind| image.sections().iter().any(|section| section.kind == kind);
    if !has(SHT_DYNSYM) && (!has(SHT_SYMTAB) || image.dynamic_value(DT_SYMTAB).is_some()) {
        // Nobody can tell what is exported.
        for caller in &mut callers {
            caller.taken = true;
        }
    }
    known_addresses(dead, relocations, &found, &mut taken);
    for body in taken {
        callers[body as usize].taken = true;
    }
    for body in unseen {
        callers[body as usize].unseen = true;
    }
    callers
}

/// What headers, relocations, symbols, unwind tables and data name.
fn known_addresses(
    dead: &Liveness<'_, '_>,
    relocations: &Relocations,
    found: &BodyStarts<'_>,
    taken: &mut Vec<u32>,
) {
    let image = dead.code.original;
    let mut values = vec![image.entry()];
    values.extend([DT_INIT, DT_FINI].into_iter().filter_map(|tag| image.dynamic_value(tag)));
    values.extend(relocations.addresses.iter().map(|address| address.1));
    values.extend(dead.code.unwind.personalities());
    for table in image.symbol_tables(SHT_DYNSYM) {
        values.extend(table.symbols.iter().filter(|symbol| elf::is_defined(symbol)).map(elf::value));
    }
    taken.extend(values.into_iter().filter_map(|value| found.body(value)));
    // Unwind tables name every function, each word from its own place.
    let unwinding: Vec<(u64, u64)> = {
        let tables = image.sections().iter().filter(|s| s.name == b".eh_frame" || s.name == b".eh_frame_hdr");
        let mut ranges: Vec<_> = tables.map(|s| (s.address, s.address.saturating_add(s.size))).collect();
        ranges.sort_unstable();
        ranges
    };
    let step = if image.is_position_independent() { 4 } else { 1 };
    let data = image.data_among_code();
    let loads = image.loads().iter().filter(|load| !load.is_executable());
    let whole = loads.filter_map(|load| Some((load.address, image.segment_bytes(load)?)));
    let among =
        data.iter().filter_map(|&(from, to)| Some((from, image.bytes_at(Svma(from), (to - from) as usize)?)));
    for (address, bytes) in whole.chain(among) {
        let skip = (address.wrapping_neg() % step) as usize;
        let count = bytes.len().saturating_sub(skip + 3).div_ceil(step as usize);
        taken.par_extend((0..count).into_par_iter().with_min_len(1 << 14).flat_map_iter(|index| {
            let at = skip + index * step as usize;
            let place = address + at as u64;
            let narrow = number(bytes, at, 4);
            let own = narrow
                .filter(|_| place % 4 == 0 && !hold(&unwinding, place))
                .map(|distance| place.wrapping_add_signed(i64::from(distance as i32)));
            let narrow = narrow.filter(|_| step == 1);
            [number(bytes, at, 8), narrow, own].into_iter().flatten().filter_map(|value| found.body(value))
        }));
    }
}

/// What code names, decoded or not: bodies whose addresses it takes, and bodies that are perhaps
/// called unseen.
fn in_code(dead: &Liveness<'_, '_>, found: &BodyStarts<'_>) -> (Vec<u32>, Vec<u32>) {
    let image = dead.code.original;
    let per_body = |(own, body): (usize, &Body)| {
        let mut said = NamedBodies::default();
        let start = dead.code.start(own as u32);
        for block in &body.blocks {
            let (from, size) = (start + u64::from(block.at), (block.end_at - block.at) as usize);
            let code = image.bytes_at(Svma(from), size).unwrap_or(&[]);
            for insn in Decoder::with_ip(64, code, from, DecoderOptions::NONE) {
                said.instruction(&insn, dead, found);
            }
        }
        (said.taken, said.unseen)
    };
    let decoded = dead.bodies.par_iter().enumerate().with_min_len(64).map(per_body);
    let undecoded = undecoded(dead);
    let hidden = undecoded.par_iter().with_min_len(8).map(|&(from, to)| {
        let mut said = NamedBodies::default();
        said.bytes(from, to, dead, found);
        (said.taken, said.unseen)
    });
    let all: Vec<(Vec<u32>, Vec<u32>)> = decoded.chain(hidden).collect();
    let (mut taken, mut unseen) = (Vec::new(), Vec::new());
    for (one, other) in all {
        taken.extend(one);
        unseen.extend(other);
    }
    (taken, unseen)
}

/// The bytes of executable segments that no body has decoded, and that no section says are data.
fn undecoded(dead: &Liveness<'_, '_>) -> Vec<(u64, u64)> {
    let mut known: Vec<(u64, u64)> = dead
        .bodies
        .iter()
        .enumerate()
        .flat_map(|(own, body)| {
            let start = dead.code.start(own as u32);
            body.blocks
                .iter()
                .map(move |block| (start + u64::from(block.at), start + u64::from(block.end_at)))
        })
        .collect();
    known.extend(dead.code.original.data_among_code());
    known.par_sort_unstable();
    let mut gaps = Vec::new();
    for load in dead.code.original.loads().iter().filter(|load| load.is_executable()) {
        let end = load.address.saturating_add(load.file_size);
        let mut from = load.address;
        let first = known.partition_point(|range| range.1 <= from);
        for &(start, behind) in known[first..].iter().take_while(|range| range.0 < end).chain([&(end, end)]) {
            if from < start {
                without_stubs(dead, from, start, &mut gaps);
            }
            from = from.max(behind);
        }
    }
    gaps
}

/// The same, but for linkage stubs, of which it is known what they do.
fn without_stubs(dead: &Liveness<'_, '_>, from: u64, to: u64, gaps: &mut Vec<(u64, u64)>) {
    const ALIGNED: u64 = 8;
    let push = |from, to, gaps: &mut Vec<(u64, u64)>| {
        if from < to {
            gaps.push((from, to));
        }
    };
    let mut begin = from;
    let mut at = from.next_multiple_of(ALIGNED);
    while at < to {
        if let Some(end) = dead.code.linkage.stub_end(at).filter(|&end| at >= begin && end <= to) {
            push(behind_padding(dead, begin, at), at, gaps);
            begin = end;
        }
        at += ALIGNED;
    }
    push(behind_padding(dead, begin, to), to, gaps);
}

/// Where what fills the space between functions ends, if bytes begin with it.
fn behind_padding(dead: &Liveness<'_, '_>, from: u64, to: u64) -> u64 {
    let code = dead.code.original.bytes_at(Svma(from), (to - from) as usize).unwrap_or(&[]);
    let mut decoder = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
    let mut end = from;
    while decoder.can_decode() {
        if !matches!(decoder.decode().mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
            break;
        }
        end = decoder.ip();
    }
    end
}

#[derive(Default)]
struct NamedBodies {
    taken: Vec<u32>,
    unseen: Vec<u32>,
}

impl NamedBodies {
    fn value(&mut self, value: u64, found: &BodyStarts<'_>) {
        self.taken.extend(found.body(value));
    }

    fn instruction(&mut self, insn: &Instruction, dead: &Liveness<'_, '_>, found: &BodyStarts<'_>) {
        let image = dead.code.original;
        if insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64 {
            let place = dead.code.place(insn.near_branch64());
            let inside = place.filter(|place| place.at != 0 || dead.code.is_part(place.body));
            if insn.flow_control() == FlowControl::Call {
                self.unseen.extend(inside.map(|place| place.body));
            }
            return;
        }
        for operand in 0..insn.op_count() {
            match insn.op_kind(operand) {
                OpKind::Immediate32 | OpKind::Immediate32to64 => self.value(insn.immediate(operand), found),
                OpKind::Immediate64 => {
                    let number = insn.immediate(operand);
                    self.value(number, found);
                    let table = image.dynamic_value(DT_PLTGOT);
                    let section = image.section(".got.plt").or_else(|| image.section(".got"));
                    for base in table.into_iter().chain(section.map(|section| section.address)) {
                        self.value(base.wrapping_add(number), found);
                    }
                }
                OpKind::Memory if insn.is_ip_rel_memory_operand() => {
                    let address = insn.ip_rel_memory_address();
                    self.value(address, found);
                    if found.listed.binary_search(&address).is_err() {
                        self.table(address, image, found);
                    }
                }
                OpKind::Memory => self.value(insn.memory_displacement64(), found),
                _ => {}
            }
        }
    }

    /// Distances from here, as jump tables have them that nobody listed: some lead to other
    /// functions.
    fn table(&mut self, base: u64, image: &Elf<'_>, found: &BodyStarts<'_>) {
        if image.is_code(Svma(base)) && !hold(&found.data_among_code, base) {
            return;
        }
        let bytes = image.bytes_from(Svma(base)).unwrap_or(&[]);
        for word in bytes.chunks_exact(4).take(LONGEST_TABLE) {
            let distance = number(word, 0, 4).unwrap_or(0) as i32;
            let to = base.wrapping_add_signed(i64::from(distance));
            if !image.is_code(Svma(to)) {
                break;
            }
            self.value(to, found);
        }
    }

    /// Code read from its first byte on: what it names, and where it leads: into the middle of
    /// other bodies, or by calls of the same.
    fn sweep(&mut self, code: &[u8], from: u64, dead: &Liveness<'_, '_>, found: &BodyStarts<'_>) {
        let own = dead.code.place(from).map(|place| place.body);
        references::sweep(code, from, &[], &mut |insn| {
            if insn.op_count() == 0 || insn.op0_kind() != OpKind::NearBranch64 {
                return self.instruction(insn, dead, found);
            }
            let place = dead.code.place(insn.near_branch64());
            let calls = insn.flow_control() == FlowControl::Call;
            self.unseen
                .extend(place.filter(|place| calls || own != Some(place.body)).map(|place| place.body));
        });
    }

    /// Whatever code could begin at any of these bytes.
    fn bytes(&mut self, from: u64, to: u64, dead: &Liveness<'_, '_>, found: &BodyStarts<'_>) {
        let image = dead.code.original;
        let code = image.bytes_from(Svma(from)).unwrap_or(&[]);
        let size = (to - from) as usize;
        let unseen = std::cell::RefCell::new(Vec::new());
        references::hidden(code, size, from, &|_, to, _| {
            unseen.borrow_mut().extend(found.body(to));
        });
        self.unseen.extend(unseen.into_inner());
        self.sweep(code.get(..size).unwrap_or(code), from, dead, found);
        // It may be data, too.
        for at in 0..size.min(code.len()) {
            if let Some(wide) = number(code, at, 8) {
                self.value(wide, found);
            }
            let narrow = number(code, at, 4).filter(|_| !image.is_position_independent());
            if let Some(narrow) = narrow {
                self.value(narrow, found);
            }
        }
    }
}
