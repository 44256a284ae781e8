//! A rewritten file, read by its published format with other decoders than the rewriter's:
//! instructions are those of the original, and so are the rows of the unwind table and the landing
//! pads.

use crate::common::{Unit, compile, programs, units};
use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection};
use gleaner_twin::{Mode, VectorWidth, rewrite};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use image::Image;
use std::collections::HashMap;
use std::sync::LazyLock;
use units::Svma;

struct Sample {
    name: String,
    original: Vec<u8>,
    identity: Vec<u8>,
    poisoned: Vec<u8>,
}

/// One program in this count is static, with the whole C library: the same in each, and most of the
/// work.
const STATIC_EVERY: usize = 25;

/// Programs in every shape of file, each in every mode: made once for all tests.
static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let mut samples = Vec::new();
    for (index, source) in programs().iter().enumerate() {
        let shape: &[&str] = match (index % STATIC_EVERY, index % 2) {
            (1, _) => &["-O1", "-static"],
            (_, 0) => &["-O2", "-no-pie"],
            _ => &["-O2", "-fPIE", "-pie"],
        };
        let path = directory.path().join("program");
        if compile(source, "gcc", shape, &path).is_none() {
            continue;
        }
        let original = std::fs::read(&path).unwrap();
        let in_mode = |mode| rewrite(&original, None, mode).expect("it can be rewritten").bytes;
        let (identity, poisoned) = (in_mode(Mode::Identity), in_mode(Mode::Poison(VectorWidth::Sse)));
        let name = format!("{} {shape:?}", source.display());
        samples.push(Sample { name, original, identity, poisoned });
    }
    assert!(samples.len() > 2, "a compiler is needed for this test");
    samples
});

fn samples(mut check: impl FnMut(&str, &[u8], &[u8])) {
    for sample in &*SAMPLES {
        check(&format!("{} identity", sample.name), &sample.original, &sample.identity);
        check(&format!("{} poison", sample.name), &sample.original, &sample.poisoned);
    }
}

fn decode(image: &Image<'_>, address: u64, len: u32) -> Instruction {
    let bytes = image.bytes_at(Svma(address), len as usize).expect("code lies in the file");
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode()
}

/// From any original place to its twin.
fn places(units: &[Unit]) -> HashMap<u64, u64> {
    units.iter().flat_map(|unit| unit.pairs.iter().map(|pair| (pair.original, pair.begin))).collect()
}

/// Where the linkage stub at an address finds what it jumps to.
fn slot_of_stub(image: &Image<'_>, address: u64) -> Option<u64> {
    let bytes = image.bytes_from(Svma(address))?;
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let first = decoder.decode();
    let jump = if first.mnemonic() == Mnemonic::Endbr64 { decoder.decode() } else { first };
    let is_stub = jump.is_jmp_near_indirect() && jump.is_ip_rel_memory_operand();
    is_stub.then(|| jump.ip_rel_memory_address())
}

fn same_but_for_targets(original: &Instruction, twin: &Instruction, twin_of: &HashMap<u64, u64>) -> bool {
    let same_code = original.mnemonic() == twin.mnemonic() && original.op_count() == twin.op_count();
    same_code
        && (0..original.op_count()).all(|op| match original.op_kind(op) {
            OpKind::NearBranch64 => {
                let (from, to) = (original.near_branch64(), twin.near_branch64());
                to == from || twin_of.get(&from) == Some(&to)
            }
            OpKind::Memory if original.is_ip_rel_memory_operand() => {
                twin.is_ip_rel_memory_operand()
                    && original.ip_rel_memory_address() == twin.ip_rel_memory_address()
                    && original.op0_kind() == twin.op0_kind()
            }
            OpKind::Memory => {
                (original.memory_base(), original.memory_index(), original.memory_index_scale())
                    == (twin.memory_base(), twin.memory_index(), twin.memory_index_scale())
                    && original.segment_prefix() == twin.segment_prefix()
                    && original.memory_size() == twin.memory_size()
            }
            OpKind::Register => original.op_register(op) == twin.op_register(op),
            kind => {
                let number = |i: &Instruction| i.try_immediate(op).ok();
                kind == twin.op_kind(op) && number(original) == number(twin)
            }
        })
}

#[test]
fn instructions_are_those_of_the_original() {
    let (mut skipped, mut over_a_prefix) = (0, 0);
    samples(|name, original, rewritten| {
        let (before, after) = (Image::parse(original).unwrap(), Image::parse(rewritten).unwrap());
        let units = units(rewritten);
        let twin_of = places(&units);
        for pair in units.iter().flat_map(|unit| &unit.pairs) {
            let mut a = decode(&before, pair.original, u32::from(pair.original_len));
            if a.is_jcc_short() && a.near_branch64() == a.next_ip() + 1 {
                // Over a lock prefix: to the prefix.
                let next = before.bytes_from(Svma(a.next_ip())).unwrap();
                let next = iced_x86::Decoder::new(64, &next[..15.min(next.len())], 0).decode();
                if next.has_lock_prefix() {
                    a.set_near_branch64(a.next_ip());
                    over_a_prefix += 1;
                }
            }
            let mut b = decode(&after, pair.twin, pair.twin_len);
            let short_only = b.is_loop() || b.is_loopcc() || b.is_jcx_short();
            if short_only && pair.twin_len != u32::from(pair.original_len) {
                // It became: itself over a jump past the long jump to where it led.
                let past = decode(&after, b.next_ip(), 2);
                let long = decode(&after, past.next_ip(), 5);
                assert_eq!((b.near_branch64(), past.near_branch64()), (long.ip(), long.next_ip()), "{name}");
                b.set_near_branch64(long.near_branch64());
            }
            if a.op0_kind() == OpKind::NearBranch64 && b.is_ip_rel_memory_operand() {
                // By way of a linkage stub's slot, without the stub.
                let (from, slot) = (a.near_branch64(), b.ip_rel_memory_address());
                assert_eq!((a.mnemonic(), slot_of_stub(&before, from)), (b.mnemonic(), Some(slot)), "{name}");
                skipped += 1;
            } else {
                assert!(
                    same_but_for_targets(&a, &b, &twin_of),
                    "{name}: {:#x} {a} became {b}",
                    pair.original
                );
            }
            if pair.escape {
                let jump = decode(&after, pair.twin + u64::from(pair.twin_len), 5);
                let next = pair.original + u64::from(pair.original_len);
                let to = jump.near_branch64();
                assert!(
                    to == next || twin_of.get(&next) == Some(&to),
                    "{name}: escape of {:#x}",
                    pair.original
                );
            }
        }
    });
    assert!(skipped > 0, "programs call libraries");
    assert!(over_a_prefix > 0, "a C library for one thread and for several");
}

#[test]
fn nothing_of_the_original_changes_but_header_and_entries() {
    samples(|name, original, rewritten| {
        let image = Image::parse(original).unwrap();
        let mut allowed = vec![32..48usize, 54..64];
        let after = Image::parse(rewritten).unwrap();
        let units = units(rewritten);
        let twin_of = places(&units);
        for unit in &units {
            let Some(patch) = unit.patch else { continue };
            let at = image.file_offset(Svma(unit.original + u64::from(patch))).unwrap().0 as usize;
            allowed.push(at..at + 5);
            let jump = decode(&after, unit.original + u64::from(patch), 5);
            assert_eq!(jump.near_branch64(), twin_of[&(unit.original + u64::from(patch))], "{name}");
        }
        allowed.sort_by_key(|range| range.start);
        let mut ranges = allowed.iter().peekable();
        for (at, (a, b)) in original.iter().zip(rewritten).enumerate() {
            while ranges.next_if(|range| range.end <= at).is_some() {}
            assert!(a == b || ranges.peek().is_some_and(|range| range.contains(&at)), "{name}: byte {at:#x}");
        }
    });
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

fn unwind_table<'a>(image: &Image<'a>) -> (EhFrame<Slice<'a>>, BaseAddresses) {
    let section = image.section(".eh_frame").unwrap();
    let bytes = image.section_bytes(section).unwrap();
    let bases = BaseAddresses::default().set_eh_frame(section.address);
    (EhFrame::new(bytes, LittleEndian), bases)
}

/// A row as text, with the bytes of its expressions instead of their places.
fn rules(row: &gimli::UnwindTableRow<usize>, table: &EhFrame<Slice<'_>>) -> String {
    use gimli::{CfaRule, RegisterRule, UnwindExpression};
    let bytes = |e: &UnwindExpression<usize>| format!("{:x?}", e.get(table).unwrap().0.slice());
    let mut text = match row.cfa() {
        CfaRule::Expression(e) => bytes(e),
        plain @ CfaRule::RegisterAndOffset { .. } => format!("{plain:?}"),
    };
    let mut all: Vec<String> = row
        .registers()
        .map(|(register, rule)| match rule {
            RegisterRule::Expression(e) => format!("{register:?} at {}", bytes(e)),
            RegisterRule::ValExpression(e) => format!("{register:?} is {}", bytes(e)),
            plain => format!("{register:?} {plain:?}"),
        })
        .collect();
    all.sort();
    text.push_str(&all.join(" "));
    text
}

#[test]
fn unwinding_finds_the_same_rows() {
    samples(|name, original, rewritten| {
        let (before, after) = (Image::parse(original).unwrap(), Image::parse(rewritten).unwrap());
        let ((old, old_bases), (new, new_bases)) = (unwind_table(&before), unwind_table(&after));
        let header = after.section(".eh_frame_hdr").unwrap();
        let header_bytes = after.section_bytes(header).unwrap();
        let search = gimli::EhFrameHdr::new(header_bytes, LittleEndian);
        let bases = new_bases.clone().set_eh_frame_hdr(header.address);
        let search = search.parse(&bases, 8).unwrap();
        let search = search.table().unwrap();
        let (mut a, mut b) = (UnwindContext::new(), UnwindContext::new());
        let mut fdes = old.entries(&old_bases);
        let mut old_fdes = HashMap::new();
        while let Some(entry) = fdes.next().unwrap() {
            if let gimli::CieOrFde::Fde(partial) = entry {
                let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
                old_fdes.insert(fde.initial_address(), fde);
            }
        }
        for unit in units(rewritten) {
            let found = search.fde_for_address(&new, &bases, unit.twin, EhFrame::cie_from_offset);
            let Some(old_fde) = old_fdes.get(&unit.original) else {
                assert!(found.is_err(), "{name}: {:#x}: an entry that its original has not", unit.twin);
                continue;
            };
            let new_fde = found.unwrap_or_else(|error| panic!("{name}: {:#x}: {error}", unit.twin));
            assert_eq!(new_fde.initial_address(), unit.twin, "{name}");
            for pair in &unit.pairs {
                let expected =
                    old_fde.unwind_info_for_address(&old, &old_bases, &mut a, pair.original).unwrap();
                for address in [pair.begin, pair.twin] {
                    let row = new_fde.unwind_info_for_address(&new, &bases, &mut b, address).unwrap();
                    assert_eq!(rules(row, &new), rules(expected, &old), "{name}: {:#x}", pair.original);
                }
            }
        }
    });
}

#[test]
fn a_rewritten_file_is_not_rewritten_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let source = programs().into_iter().next().unwrap();
    compile(&source, "gcc", &["-O1"], &path).expect("a compiler is needed for this test");
    let once = rewrite(&std::fs::read(&path).unwrap(), None, Mode::Identity).unwrap();
    let twice = rewrite(&once.bytes, None, Mode::Identity).err();
    assert_eq!(twice, Some(gleaner_twin::TwinError::AlreadyRewritten));
}
