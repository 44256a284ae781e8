//! What is fuzzed: how a case is made from its number, and who has to read it.
//!
//! To add a target: a line in [`TARGETS`] and its two functions.

use crate::crowds;
use crate::damage::damage;
use crate::random::Random;
use crate::soup;
use crate::specimens::{Program, in_mode};
use crate::stored;
use image::unwind::{cfi, frames::Frames, lsda, needed};
use image::{Image, Module};
use units::Svma;

/// What is read: one file or two.
#[derive(Default)]
pub(crate) struct Case {
    pub(crate) files: Vec<Vec<u8>>,
    /// What else is chosen: a mode of rewriting.
    pub(crate) choice: usize,
}

impl Case {
    pub(crate) fn size(&self) -> usize {
        self.files.iter().map(Vec::len).sum()
    }
}

pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) make: fn(&[Program], &mut Random) -> Case,
    /// If all of it was accepted: what was made of it.
    pub(crate) read: fn(&Case) -> Option<Made>,
}

/// How many bytes were made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    pub(crate) file: usize,
    /// Of them, the code of twins.
    pub(crate) twins: usize,
}

impl Made {
    fn of(made: &twin::Rewritten) -> Self {
        Self { file: made.bytes.len(), twins: made.coverage.twin_code_bytes as usize }
    }
}

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "elf", make: |p, r| spoilt(p, ELF, r), read: |case| container(case).then(Made::default) },
    Target {
        name: "eh_frame",
        make: |p, r| spoilt(p, FRAMES, r),
        read: |case| frames(case).then(Made::default),
    },
    Target { name: "eh_frame_bytes", make: noise, read: |case| bare_frames(case).then(Made::default) },
    Target {
        name: "lsda",
        make: |p, r| spoilt(p, &["exceptions"], r),
        read: |case| exceptions(case).then(Made::default),
    },
    Target { name: "lsda_bytes", make: noise, read: |case| bare_exceptions(case).then(Made::default) },
    Target { name: "decoder", make: code, read: |case| analysed(case).then(Made::default) },
    Target { name: "twin", make: |p, r| spoilt(p, &[], r), read: rewritten },
    Target { name: "twin_headers", make: |p, r| spoilt(p, ELF, r), read: rewritten },
    Target { name: "twin_unwind", make: |p, r| spoilt(p, UNWINDING, r), read: rewritten },
    Target { name: "twin_code", make: code, read: rewritten },
    Target { name: "twin_debug", make: with_debug, read: with_debug_rewritten },
    Target { name: "proof", make: pair, read: |case| proven(case).then(Made::default) },
    Target {
        name: "proof_new",
        make: |p, r| pair_spoilt(p, NEW, r),
        read: |case| proven(case).then(Made::default),
    },
    Target { name: "crowds", make: |_, r| crowd(r), read: rewritten },
    Target { name: "noise", make: noise, read: rewritten },
    Target { name: "stored", make: |_, r| stored::spoilt(r), read: stored::read },
    Target { name: "stored_bytes", make: |_, r| stored::noise(r), read: stored::read },
];

const ELF: &[&str] =
    &["header", "segments", "sections", "dynamic", "relocations", "symbols", "constructors", "unwind index"];
const FRAMES: &[&str] = &["frames", "unwind index"];
const UNWINDING: &[&str] = &["frames", "unwind index", "exceptions"];
const NEW: &[&str] = &[
    "note",
    "mapping",
    "twins",
    "twin tables",
    "frames",
    "exceptions",
    "unwind index",
    "segments",
    "sections",
    "symbols",
];

fn spoilt(programs: &[Program], areas: &[&str], random: &mut Random) -> Case {
    let specimen = &random.pick(programs).original;
    let mut data = specimen.data.clone();
    damage(&mut data, &specimen.areas, areas, random);
    Case { files: vec![data], choice: random.below(6) }
}

/// A program whose code is soup, its tables sound or not.
fn code(programs: &[Program], random: &mut Random) -> Case {
    let specimen = &random.pick(programs).original;
    let mut data = specimen.data.clone();
    for area in specimen.areas.iter().filter(|area| area.name == "code") {
        let (from, to) = area.range;
        if random.once_in(2) {
            soup::fill(&mut data[from..to], random);
        }
        for _ in 0..random.below(40) {
            let start = from + random.below(to - from);
            let end = (start + random.below(200) + 1).min(to);
            match random.below(3) {
                0 => random.fill(&mut data[start..end]),
                _ => soup::fill(&mut data[start..end], random),
            }
        }
    }
    if random.once_in(4) {
        damage(&mut data, &specimen.areas, &["constants", "symbols", "relocations"], random);
    }
    Case { files: vec![data], choice: random.below(6) }
}

fn noise(_: &[Program], random: &mut Random) -> Case {
    let most = 1 << (4 + random.below(14));
    let size = random.below(most);
    let mut data = random.bytes(size);
    if random.once_in(2) {
        // Small numbers: lengths, counts and encodings that mean something.
        let most = 1 + random.below(32) as u8;
        for byte in &mut data {
            *byte %= most;
        }
    }
    if random.once_in(2) {
        for (at, byte) in
            [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0].iter().enumerate()
        {
            if let Some(place) = data.get_mut(at) {
                *place = *byte;
            }
        }
    }
    Case { files: vec![data], choice: random.below(6) }
}

fn with_debug(programs: &[Program], random: &mut Random) -> Case {
    // Its own, spoilt: that of another build is not looked at.
    let specimen = &random.pick(programs).original;
    let mut debug = specimen.data.clone();
    damage(&mut debug, &specimen.areas, ELF, random);
    Case { files: vec![specimen.data.clone(), debug], choice: random.below(6) }
}

/// An original and something rewritten, one of them or both spoilt, perhaps alike.
fn pair(programs: &[Program], random: &mut Random) -> Case {
    let program = random.pick(programs);
    let rewritten = random.pick(&program.rewritten);
    let (mut old, mut new) = (program.original.data.clone(), rewritten.data.clone());
    match random.below(3) {
        0 => damage(&mut new, &rewritten.areas, &[], random),
        1 => damage(&mut old, &program.original.areas, &[], random),
        _ => {
            let seed = random.next();
            damage(&mut old, &program.original.areas, &[], &mut Random::new(seed));
            damage(&mut new, &program.original.areas, &[], &mut Random::new(seed));
        }
    }
    Case { files: vec![old, new], choice: 0 }
}

fn pair_spoilt(programs: &[Program], areas: &[&str], random: &mut Random) -> Case {
    let program = random.pick(programs);
    let rewritten = random.pick(&program.rewritten);
    let mut new = rewritten.data.clone();
    damage(&mut new, &rewritten.areas, areas, random);
    Case { files: vec![program.original.data.clone(), new], choice: 0 }
}

fn crowd(random: &mut Random) -> Case {
    Case { files: vec![crowds::crowd(random)], choice: random.below(6) }
}

fn container(case: &Case) -> bool {
    let Ok(image) = Image::parse(&case.files[0]) else { return false };
    let mut read = image.notes().count() + image.data_among_code().len() + image.dynamic().count();
    read += usize::from(image.build_id().is_some()) + usize::from(image.debug_link().is_some());
    read += image
        .sections()
        .iter()
        .filter_map(|section| image.section_bytes(section))
        .map(<[u8]>::len)
        .sum::<usize>();
    let relocations = image::elf::relocations::dynamic_relocations(&image);
    let symbols = image::elf::symbols::Symbols::of(&image, None);
    if let Ok(frames) = Frames::of(&image) {
        let imports = image::elf::imports::Imports::of(&image, &frames, &relocations);
        read += relocations.iter().filter(|relocation| imports.slot(relocation.place).is_some()).count();
        read += symbols.all().iter().filter(|symbol| imports.stub(symbol.address).is_some()).count();
    }
    std::hint::black_box(read) > 0
}

fn frames(case: &Case) -> bool {
    let Ok(image) = Image::parse(&case.files[0]) else { return false };
    Frames::of(&image).is_ok_and(|frames| walk(&frames))
}

fn bare_frames(case: &Case) -> bool {
    Frames::parse(Svma(0x1000), &case.files[0]).is_ok_and(|frames| walk(&frames))
        | !needed::rows(&case.files[0], &case.files[0]).is_empty()
}

fn walk(frames: &Frames<'_>) -> bool {
    let mut steps = 0;
    for fde in &frames.fdes {
        let (shared, own) =
            (frames.program(&frames.cies[fde.cie as usize].program), frames.program(&fde.program));
        steps += cfi::Steps::new(own).count() + needed::rows(shared, own).len();
        steps += usize::from(cfi::starts_as_called(shared, own));
    }
    std::hint::black_box(steps) > 0
}

fn exceptions(case: &Case) -> bool {
    let Ok(image) = Image::parse(&case.files[0]) else { return false };
    let Ok(frames) = Frames::of(&image) else { return false };
    let tables = frames.fdes.iter().filter_map(|fde| lsda::parse(&image, fde.lsda?, fde.start, fde.length));
    std::hint::black_box(tables.map(|table| table.call_sites.len()).sum::<usize>()) > 0
}

fn bare_exceptions(case: &Case) -> bool {
    // A container around it: one segment that holds all.
    let data = crowds::around(&case.files[0]);
    let Ok(image) = Image::parse(&data) else { return false };
    let at = image.span().0 + (data.len() - case.files[0].len()) as u64;
    lsda::parse(&image, Svma(at), Svma(at), case.choice as u64 * 1000).is_some()
}

fn analysed(case: &Case) -> bool {
    Module::analyse(&case.files[0], None).is_ok_and(|module| !module.odd_targets().is_empty())
}

fn rewritten(case: &Case) -> Option<Made> {
    let made = in_mode(case.choice, |mode| twin::rewrite(&case.files[0], None, mode));
    made.ok().map(|made| Made::of(&made))
}

fn with_debug_rewritten(case: &Case) -> Option<Made> {
    let made = twin::rewrite(&case.files[0], Some(&case.files[1]), twin::Mode::Identity);
    made.ok().map(|made| Made::of(&made))
}

fn proven(case: &Case) -> bool {
    proof::check(&case.files[0], &case.files[1]).is_ok()
}
