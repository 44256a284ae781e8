//! `jit-PID.dump`, in which a runtime writes down all code that it makes, with the lines of source:
//! V8 with `--perf-prof`, .NET, LLVM and others do. Its layout is that of the kernel's
//! `tools/perf/Documentation/jitdump-specification.txt`:
//!
//! ```text
//! "DTiJ", version, size of this header, machine, …                            40 bytes
//! then records: kind, size, time                                              16 bytes and
//!   0 code:  process, thread, address, address, size, number, name, the code
//!   1 moved: process, thread, old address, new address, size, number
//!   2 lines: address, count, each: address, line, discriminator, file
//! ```
//!
//! The lines of code come before it. The profiler's own agent in Java virtual machines writes two
//! kinds of records more, which tell of inlined methods: `crates/heap/src/java.rs`.

use insight::{Frame, Line, Made, MadeCode, ToldFrames};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufReader, Read};

const MAGIC: u32 = 0x4a69_5444;
const HEADER: usize = 40;
const RECORD: usize = 16;
/// A larger record is none.
const LARGEST: u32 = 64 << 20;
const LARGEST_FILE: u64 = 1 << 30;
const CODE: u32 = 0;
const MOVED: u32 = 1;
const LINES: u32 = 2;
const METHOD: u32 = 64;
const FRAMES: u32 = 65;
/// What comes before the code in the files that `perf inject` makes.
const FILE_HEADER: u64 = 64;
/// In place of a file: the same as before.
const SAME: &[u8] = b"\xff";

/// Reads a dump: it names what is asked for.
pub(crate) fn read(
    file: File,
    process: u32,
    asked: &BTreeSet<u64>,
    path: &str,
    names: &mut MadeCode,
) -> Option<()> {
    let mut reader = BufReader::new(file.take(LARGEST_FILE));
    let mut header = [0; HEADER];
    reader.read_exact(&mut header).ok()?;
    if u32_at(&header, 0)? != MAGIC {
        return None;
    }
    // Later versions may have a longer one.
    let more = u64::from(u32_at(&header, 8)?).checked_sub(HEADER as u64)?;
    std::io::copy(&mut reader.by_ref().take(more), &mut std::io::sink()).ok()?;
    let mut lines = ToldFrames::new();
    let mut by_number: BTreeMap<u64, Made> = BTreeMap::new();
    let mut methods = Methods::default();
    loop {
        let mut head = [0; RECORD];
        reader.read_exact(&mut head).ok()?;
        let (kind, size) = (u32_at(&head, 0)?, u32_at(&head, 4)?);
        let mut body = vec![0; size.min(LARGEST).checked_sub(RECORD as u32)? as usize];
        reader.read_exact(&mut body).ok()?;
        match kind {
            CODE => {
                let (mut lines, frames) = (std::mem::take(&mut lines), std::mem::take(&mut methods.frames));
                let Some((start, bytes)) = u64_at(&body, 16).zip(u64_at(&body, 24)) else { continue };
                if !frames.is_empty() && asked.range(start..start.saturating_add(bytes)).next().is_some() {
                    lines = methods.told(start, &frames);
                }
                let Some((number, made)) = code(&body, path, lines) else { continue };
                names.add(process, asked, made.clone());
                by_number.insert(number, made);
            }
            MOVED => {
                let (Some(start), Some(number)) = (u64_at(&body, 24), u64_at(&body, 40)) else { continue };
                if let Some(made) = by_number.get_mut(&number) {
                    *made = moved(made, start);
                    names.add(process, asked, made.clone());
                }
            }
            LINES => lines = lines_of(&body).or_else(|| lines_of_v8(&body)).unwrap_or_default(),
            METHOD => {
                let _ = methods.add(&body);
            }
            FRAMES => methods.frames = frames_of(&body).unwrap_or_default(),
            _ => {}
        }
    }
}

/// What the agent tells of Java's methods.
#[derive(Default)]
struct Methods {
    by_number: HashMap<u64, Method>,
    /// Of the code that comes next.
    frames: Vec<Inlined>,
}

struct Method {
    name: String,
    file: String,
    /// By the bytecode from where on.
    lines: BTreeMap<u64, u32>,
}

/// The methods at the instructions in front of an address, the innermost first.
struct Inlined {
    end: u64,
    /// Each with its number and its bytecode.
    methods: Vec<(u64, u64)>,
}

impl Methods {
    fn add(&mut self, body: &[u8]) -> Option<()> {
        let (number, count) = (u64_at(body, 0)?, u64_at(body, 8)?);
        let (mut at, mut lines) = (16, BTreeMap::new());
        for _ in 0..count {
            lines.insert(u64::from(u32_at(body, at)?), u32_at(body, at + 4)?);
            at += 8;
        }
        let mut texts = body.get(at..)?.split(|&byte| byte == 0);
        let (name, file) = (texts.next()?, texts.next()?);
        // `package/Class.method`
        let name = insight::shown_name(name).replace('/', ".");
        self.by_number.insert(number, Method { name, file: insight::shown_name(file), lines });
        Some(())
    }

    fn told(&self, start: u64, frames: &[Inlined]) -> ToldFrames {
        let frame = |&(method, bytecode): &(u64, u64)| {
            let method = self.by_number.get(&method)?;
            let line = method.lines.range(..=bytecode).next_back().map(|(_, line)| *line);
            let line = line.filter(|_| !method.file.is_empty());
            let line = line.map(|line| Line { file: method.file.clone(), line });
            Some(Frame { function: Some(method.name.clone()), line })
        };
        let mut told = ToldFrames::new();
        let mut from = start;
        for Inlined { end, methods } in frames {
            told.insert(from, methods.iter().filter_map(frame).collect());
            from = *end;
        }
        told
    }
}

fn frames_of(body: &[u8]) -> Option<Vec<Inlined>> {
    let (count, mut at) = (u64_at(body, 0)?, 8);
    let mut next = || {
        let word = u64_at(body, at);
        at += 8;
        word
    };
    let mut frames = Vec::new();
    for _ in 0..count {
        let (end, count) = (next()?, next()?);
        let mut methods = Vec::new();
        for _ in 0..count {
            methods.push((next()?, next()?));
        }
        frames.push(Inlined { end, methods });
    }
    frames.sort_by_key(|frames| frames.end);
    Some(frames)
}

fn code(body: &[u8], path: &str, lines: ToldFrames) -> Option<(u64, Made)> {
    const NAME: usize = 40;
    let (start, bytes, number) = (u64_at(body, 16)?, u64_at(body, 24)?, u64_at(body, 32)?);
    let name = body.get(NAME..)?;
    let length = name.iter().position(|&byte| byte == 0)?;
    let code = name.get(length + 1..)?.get(..usize::try_from(bytes).ok()?)?.to_vec();
    let name = insight::shown_name(&name[..length]);
    // V8 tells where lines are in the file that `perf inject` makes of each function.
    let ahead = if name.starts_with("JS:") { FILE_HEADER } else { 0 };
    let file = file_of_v8(&name);
    let lines = lines.into_iter().map(|(at, mut frames)| {
        for line in frames.iter_mut().filter_map(|frame| frame.line.as_mut()) {
            if let Some(file) = file.filter(|_| !line.file.starts_with('/') && !line.file.contains(':')) {
                file.clone_into(&mut line.file);
            }
        }
        (at.saturating_sub(ahead), frames)
    });
    let told = lines.filter(|(at, _)| (start..start.saturating_add(bytes)).contains(at)).collect();
    Some((number, Made { start, bytes, name, module: path.to_owned(), told, code: Some(code) }))
}

fn moved(made: &Made, start: u64) -> Made {
    let told =
        made.told.iter().map(|(at, line)| (at.wrapping_sub(made.start).wrapping_add(start), line.clone()));
    // Jumps to what is outside have other bytes there, so it is not known what the code is.
    Made { start, told: told.collect(), code: None, ..made.clone() }
}

/// The file of a function of V8: its names are `JS:*sum /srv/app.js:12:20`.
fn file_of_v8(name: &str) -> Option<&str> {
    let (_, place) = name.strip_prefix("JS:")?.split_once(' ')?;
    let (place, _column) = place.rsplit_once(':')?;
    place.rsplit_once(':').map(|(file, _line)| file)
}

/// Some versions of V8 write over the names of files, zero bytes and all. All of a function have
/// the same length then, by which its lines are found.
fn lines_of_v8(body: &[u8]) -> Option<ToldFrames> {
    let (start, count) = (u64_at(body, 0)?, usize::try_from(u64_at(body, 8)?).ok()?);
    let length = body.len().checked_sub(16)?.checked_div(count)?;
    let mut lines = ToldFrames::new();
    for entry in body[16..].chunks_exact(length.max(16)).take(count) {
        let at = u64_at(entry, 0).filter(|at| is_near(start, *at))?;
        let line = Some(Line { file: String::new(), line: u32_at(entry, 8)? }).filter(|line| line.line > 0);
        lines.insert(at, vec![Frame { function: None, line }]);
    }
    Some(lines)
}

/// Whether an address may be of a function that begins there.
fn is_near(start: u64, at: u64) -> bool {
    at.checked_sub(start).is_some_and(|into| into <= u64::from(LARGEST))
}

fn lines_of(body: &[u8]) -> Option<ToldFrames> {
    const ENTRY: usize = 16;
    let (start, count) = (u64_at(body, 0)?, u64_at(body, 8)?);
    let mut rest = body.get(16..)?;
    let (mut lines, mut file) = (ToldFrames::new(), String::new());
    for _ in 0..count {
        let (at, line) = (u64_at(rest, 0).filter(|at| is_near(start, *at))?, u32_at(rest, 8)?);
        let name = rest.get(ENTRY..)?;
        let length = name.iter().position(|&byte| byte == 0)?;
        if &name[..length] != SAME {
            file = insight::shown_name(&name[..length]);
        }
        rest = &name[length + 1..];
        let line = Some(Line { file: file.clone(), line }).filter(|line| line.line > 0);
        lines.insert(at, vec![Frame { function: None, line }]);
    }
    Some(lines)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn record(kind: u32, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let size = (RECORD + body.len()) as u32;
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), &7_u64.to_le_bytes(), &body].concat()
    }

    fn dump() -> Vec<u8> {
        let mut header = vec![0; HEADER];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[8..12].copy_from_slice(&(HEADER as u32).to_le_bytes());
        let word = |value: u64| value.to_le_bytes();
        let line = |at: u64, line: u32, file: &[u8]| {
            [&word(at)[..], &line.to_le_bytes(), &[0; 4], file, &[0]].concat()
        };
        let lines = record(
            LINES,
            &[
                &word(0x1000),
                &word(3),
                &line(0x1000, 4, b"/a.js"),
                &line(0x1004, 5, SAME),
                &line(0x9000, 6, SAME),
            ],
        );
        let code =
            record(CODE, &[&[0; 8], &word(0), &word(0x1000), &word(8), &word(1), b"sum\0", &[0x90; 8]]);
        let moved = record(MOVED, &[&[0; 8], &word(0), &word(0x1000), &word(0x5000), &word(8), &word(1)]);
        [header, lines, code, record(77, &[&[1, 2, 3]]), moved].concat()
    }

    fn names_of(bytes: &[u8]) -> MadeCode {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let mut names = MadeCode::default();
        read(file, 1, &BTreeSet::from([0x1004, 0x5005]), "/tmp/jit-1.dump", &mut names);
        names
    }

    #[test]
    fn code_is_named_with_its_lines() {
        let names = names_of(&dump());
        let made = names.all_at(1, 0x1004).last().expect("it is named");
        assert_eq!((made.name.as_str(), made.start, made.bytes), ("sum", 0x1000, 8));
        assert_eq!(made.code.as_deref(), Some(&[0x90; 8][..]));
        let line = |at: &u64| made.told[at][0].line.clone().expect("it has a line");
        let lines: Vec<_> = made.told.keys().map(|at| (*at, line(at).file, line(at).line)).collect();
        assert_eq!(lines, [(0x1000, "/a.js".to_owned(), 4), (0x1004, "/a.js".to_owned(), 5)]);
        let moved = names.all_at(1, 0x5005).last().expect("it was moved there");
        assert_eq!((moved.start, moved.code.as_ref()), (0x5000, None));
        assert_eq!(moved.told.keys().copied().collect::<Vec<_>>(), [0x5000, 0x5004]);
    }

    #[test]
    fn lines_of_v8_are_those_of_a_file_with_a_header() {
        let whole = dump();
        let at = whole.windows(4).position(|bytes| bytes == b"sum\0").expect("it is in there");
        let mut of_v8 = whole.clone();
        of_v8[at..at + 3].copy_from_slice(b"JS:");
        // Its lines would be in front of it.
        assert!(names_of(&of_v8).all_at(1, 0x1004).last().unwrap().told.is_empty());
        for line in [0x1000_u64, 0x1004] {
            let bytes = line.to_le_bytes();
            let at = of_v8[HEADER + 32..].windows(8).position(|part| part == bytes).unwrap() + HEADER + 32;
            of_v8[at..at + 8].copy_from_slice(&(line + FILE_HEADER).to_le_bytes());
        }
        let names = names_of(&of_v8);
        let told = &names.all_at(1, 0x1004).last().unwrap().told;
        assert_eq!(told.keys().copied().collect::<Vec<_>>(), [0x1000, 0x1004]);
    }

    #[test]
    fn names_that_v8_wrote_over_are_those_of_the_function() {
        let word = |value: u64| value.to_le_bytes();
        let line = |at: u64, line: u32| {
            // As long as `/srv/app.js` with its zero byte.
            [&word(at)[..], &line.to_le_bytes(), &[0; 4], b"C\xe7\x02\0\xa4\0\0\0.js\0"].concat()
        };
        let lines = record(LINES, &[&word(0x1000), &word(2), &line(0x1040, 4), &line(0x1044, 5)]);
        let code = record(
            CODE,
            &[&[0; 8], &word(0), &word(0x1000), &word(8), &word(1), b"JS:*f /srv/app.js:2:9\0", &[0x90; 8]],
        );
        let names = names_of(&[&dump()[..HEADER], &lines, &code].concat());
        let told = &names.all_at(1, 0x1004).last().unwrap().told;
        let lines: Vec<_> = told.values().map(|frames| frames[0].line.clone().unwrap()).collect();
        let line = |line| Line { file: "/srv/app.js".to_owned(), line };
        assert_eq!(lines, [line(4), line(5)]);
    }

    #[test]
    fn inlined_methods_are_told() {
        let word = |value: u64| value.to_le_bytes();
        let half = |value: u32| value.to_le_bytes();
        let outer = record(METHOD, &[&word(7), &word(1), &half(0), &half(30), b"a/Walk.main\0Walk.java\0"]);
        let inner = record(
            METHOD,
            &[&word(8), &word(2), &half(0), &half(10), &half(5), &half(12), b"Walk.walk\0Walk.java\0"],
        );
        let frames = [
            &word(2)[..],
            &[&word(0x1003)[..], &word(1), &word(7), &word(0)].concat(),
            &[&word(0x1008)[..], &word(2), &word(8), &word(6), &word(7), &word(2)].concat(),
        ];
        let code =
            record(CODE, &[&[0; 8], &word(0), &word(0x1000), &word(8), &word(1), b"Walk.main\0", &[0x90; 8]]);
        let header = &dump()[..HEADER];
        let all = [header, &outer, &inner, &record(FRAMES, &frames), &code].concat();
        let names = names_of(&all);
        let told = &names.all_at(1, 0x1004).last().unwrap().told;
        let frame = |name: &str, line| Frame {
            function: Some(name.to_owned()),
            line: Some(Line { file: "Walk.java".to_owned(), line }),
        };
        assert_eq!(told[&0x1000], [frame("a.Walk.main", 30)]);
        assert_eq!(told[&0x1003], [frame("Walk.walk", 12), frame("a.Walk.main", 30)]);
        for at in 0..all.len() {
            names_of(&all[..at]);
        }
    }

    #[test]
    fn damaged_dumps_name_what_is_whole() {
        let whole = dump();
        for length in 0..whole.len() {
            names_of(&whole[..length]);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            names_of(&damaged);
        }
    }
}
