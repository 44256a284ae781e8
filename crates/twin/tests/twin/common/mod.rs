//! Reading a rewritten file by `docs/twin-format.md` alone, and programs to rewrite.
#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};
use std::process::Command;

/// One instruction of a unit, original and twin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) original: u64,
    pub(crate) original_len: u8,
    /// Where the inserted code before it begins.
    pub(crate) begin: u64,
    pub(crate) twin: u64,
    pub(crate) twin_len: u32,
    pub(crate) escape: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) original: u64,
    pub(crate) twin: u64,
    pub(crate) original_size: u32,
    pub(crate) twin_size: u32,
    pub(crate) patch: Option<u32>,
    pub(crate) pairs: Vec<Pair>,
}

pub(crate) fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().unwrap())
}
pub(crate) fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(data[at..at + 8].try_into().unwrap())
}

/// All units of the mapping.
pub(crate) fn units(file: &[u8]) -> Vec<Unit> {
    let at = file.windows(8).position(|window| window == b"GLNRTWIN").expect("a mapping");
    let map = &file[at..];
    let (count, units_at) = (u64_at(map, 16) as usize, u64_at(map, 32) as usize);
    (0..count)
        .map(|index| {
            let record = &map[units_at + 40 * index..];
            let patch = u32_at(record, 36);
            let mut unit = Unit {
                original: u64_at(record, 0),
                twin: u64_at(record, 8),
                original_size: u32_at(record, 24),
                twin_size: u32_at(record, 28),
                patch: (patch != u32::MAX).then_some(patch),
                pairs: Vec::new(),
            };
            let mut stream = &map[u64_at(record, 16) as usize..];
            let (mut original, mut twin) = (unit.original, unit.twin);
            for _ in 0..u32_at(record, 32) {
                let flags = stream[0];
                stream = &stream[1..];
                let mut number = |bit: u8| (flags & bit != 0).then(|| uleb(&mut stream));
                if let Some(gap) = number(0x10) {
                    original += gap >> 6;
                    twin += gap & 63;
                }
                let begin = twin;
                twin += number(0x20).unwrap_or(0);
                let original_len = flags & 0xf;
                let twin_len = number(0x40).unwrap_or(u64::from(original_len)) as u32;
                let escape = flags & 0x80 != 0;
                unit.pairs.push(Pair { original, original_len, begin, twin, twin_len, escape });
                original += u64::from(original_len);
                twin += u64::from(twin_len) + if escape { 5 } else { 0 };
            }
            assert_eq!(twin, unit.twin + u64::from(unit.twin_size), "a stream fills its twin");
            unit
        })
        .collect()
}

/// The file with all its yields switched on.
pub(crate) fn switched_on(file: &[u8]) -> Vec<u8> {
    const JUMP: u8 = 0xe9;
    let image = image::Image::parse(file).unwrap();
    let mut on = file.to_vec();
    let at = file.windows(8).position(|window| window == b"GLNRTWIN").expect("a mapping");
    let (count, first) = (u64_at(file, at + 48) as usize, u64_at(file, at + 56) as usize);
    for row in 0..count {
        // Behind the yield's jump and where it goes on; 0: it is always on.
        let switch = u64_at(file, at + first + 32 * row + 16);
        if switch == 0 {
            continue;
        }
        let place = units::Svma(switch);
        let byte = &mut on[image.file_offset(place).unwrap().0 as usize];
        assert!(matches!(*byte, 0x0f | 0xb8..=0xbf | 0x3d), "{place}: {byte:#x}");
        *byte = JUMP;
    }
    on
}

fn uleb(stream: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = stream[0];
        *stream = &stream[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

pub(crate) fn programs() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/rewriter");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// Compiles a program; `None` if there is no such compiler, or it does not take the program or the
/// options.
pub(crate) fn compile(source: &Path, compiler: &str, options: &[&str], to: &Path) -> Option<()> {
    let plus = source.extension().is_some_and(|extension| extension == "cpp");
    let compiler = match (compiler, plus) {
        ("gcc", true) => "g++",
        ("clang", true) => "clang++",
        (other, _) => other,
    };
    let output = Command::new(compiler)
        .args(["-w", "-pthread"])
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(to)
        .output()
        .ok()?;
    output.status.success().then_some(())
}

/// What a program prints, and how it ends.
pub(crate) fn outcome(program: &Path) -> (String, Option<i32>) {
    let output = Command::new("timeout").arg("60").arg(program).output().expect("the program can be started");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// Another process writes it: what this one has open for writing, its other threads' children have
/// for a moment, too, and nobody may start it meanwhile.
pub(crate) fn write_program(path: &Path, bytes: &[u8]) {
    let written = path.with_extension("bytes");
    std::fs::write(&written, bytes).unwrap();
    let done = Command::new("install").args(["-m", "755"]).arg(&written).arg(path).status().unwrap();
    assert!(done.success());
}
