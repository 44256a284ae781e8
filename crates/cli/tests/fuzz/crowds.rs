//! Files made to overwhelm: a little that is said of many, or many things said of the same bytes.
//! Sizes that are only multiplied when tables overlap, lists that are searched once for each entry
//! of another.
//!
//! To add a crowd: an arm in [`crowd`].

use crate::random::Random;

const BASE: u64 = 0x1_0000;
const HEADER: usize = 64;

/// A file in the making: one segment, readable and executable, that holds all of it.
struct File {
    bytes: Vec<u8>,
    segments: Vec<[u64; 4]>,
    sections: Vec<Section>,
}

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    at: usize,
    size: usize,
}

impl File {
    fn new() -> Self {
        Self { bytes: vec![0; HEADER], segments: Vec::new(), sections: Vec::new() }
    }
    fn put(&mut self, bytes: &[u8]) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() - bytes.len()
    }
    fn segment(&mut self, kind: u64, at: usize, size: usize) {
        self.segments.push([kind, 5, at as u64, size as u64]);
    }
    fn section(&mut self, name: &'static str, kind: u32, flags: u64, at: usize, size: usize) {
        self.sections.push(Section { name, kind, flags, at, size });
    }
    /// An unwind table: a common entry with this program, and a description for each range (with
    /// its exception table, if any).
    fn frames(&mut self, shared: &[u8], ranges: &[(usize, usize)], lsda: Option<usize>) {
        let begin = self.bytes.len().next_multiple_of(8);
        let mut table = Vec::new();
        let entry = |table: &mut Vec<u8>, body: &[u8]| {
            let size = (body.len() + 4).next_multiple_of(8) - 4;
            table.extend((size as u32).to_le_bytes());
            table.extend_from_slice(body);
            table.resize(table.len() + size - body.len(), 0);
        };
        let mut body = vec![0, 0, 0, 0, 1];
        body.extend(if lsda.is_some() { &b"zLR\0"[..] } else { b"zR\0" });
        body.extend([1, 0x78, 16]);
        body.extend(if lsda.is_some() { &[2, 0x1b, 0x1b][..] } else { &[1, 0x1b] });
        body.extend_from_slice(shared);
        entry(&mut table, &body);
        for &(start, size) in ranges {
            let at = begin + table.len();
            let relative = |to: usize, from: usize| (to as i64 - from as i64) as i32;
            let mut body = ((table.len() + 4) as u32).to_le_bytes().to_vec();
            body.extend(relative(start, at + 8).to_le_bytes());
            body.extend((size as u32).to_le_bytes());
            match lsda {
                Some(to) => {
                    body.push(4);
                    body.extend(relative(to, at + 17).to_le_bytes());
                }
                None => body.push(0),
            }
            entry(&mut table, &body);
        }
        table.extend([0; 4]);
        let at = self.put(&table);
        self.section(".eh_frame", 1, 2, at, table.len());
    }
    fn finish(mut self) -> Vec<u8> {
        let mut names = vec![0];
        let mut place = |name: &str| {
            let found = names
                .windows(name.len() + 1)
                .position(|w| w.starts_with(name.as_bytes()) && w[name.len()] == 0);
            found.unwrap_or_else(|| {
                names.extend_from_slice(name.as_bytes());
                names.push(0);
                names.len() - name.len() - 1
            })
        };
        let named: Vec<usize> = self.sections.iter().map(|section| place(section.name)).collect();
        let last = place(".shstrtab");
        let names_at = self.put(&names);
        let mut table = vec![0; 64];
        let sections = std::mem::take(&mut self.sections);
        let strings = Section { name: ".shstrtab", kind: 3, flags: 0, at: names_at, size: names.len() };
        let count = sections.len() + 2;
        for (section, name) in sections.iter().zip(named).chain([(&strings, last)]) {
            table.extend((name as u32).to_le_bytes());
            table.extend(section.kind.to_le_bytes());
            for word in [section.flags, BASE + section.at as u64, section.at as u64, section.size as u64] {
                table.extend(word.to_le_bytes());
            }
            table.extend((count as u32 - 1).to_le_bytes());
            table.extend(0u32.to_le_bytes());
            table.extend([8u64, 0].iter().flat_map(|word| word.to_le_bytes()));
        }
        let sections_at = self.put(&table);
        let segments_at = self.bytes.len().next_multiple_of(8);
        let size = segments_at + 56 * (self.segments.len() + 1);
        self.segments.insert(0, [1, 5, 0, size as u64]);
        let mut table = Vec::new();
        for &[kind, flags, at, size] in &self.segments {
            table.extend((kind as u32).to_le_bytes());
            table.extend((flags as u32).to_le_bytes());
            for word in [at, BASE + at, BASE + at, size, size, 4] {
                table.extend(word.to_le_bytes());
            }
        }
        self.put(&table);
        let mut header =
            vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, 1, 0, 0, 0];
        for word in [0, segments_at as u64, sections_at as u64] {
            header.extend(word.to_le_bytes());
        }
        header.extend(0u32.to_le_bytes());
        for half in [64, 56, self.segments.len(), 64, count, count - 1] {
            header.extend((half as u16).to_le_bytes());
        }
        self.bytes[..HEADER].copy_from_slice(&header);
        self.bytes
    }
}

/// A sound container of one segment whose last bytes are these.
pub(crate) fn around(bytes: &[u8]) -> Vec<u8> {
    let mut header = File::new().finish();
    let end = header.len() + bytes.len();
    let segments = u64::from_le_bytes(header[32..40].try_into().expect("eight bytes")) as usize;
    for at in [32, 40] {
        header[segments + at..segments + at + 8].copy_from_slice(&(end as u64).to_le_bytes());
    }
    header.extend_from_slice(bytes);
    header
}

/// Minimal call-frame program: the return address on top of the stack.
const CALLED: [u8; 5] = [0x0c, 7, 8, 0x90, 1];

pub(crate) fn crowd(random: &mut Random) -> Vec<u8> {
    let many = 1 << (6 + random.below(6));
    let mut file = File::new();
    match random.below(14) {
        // The same notes by many headers
        0 => {
            let note = [0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0].repeat(many);
            let at = file.put(&note);
            (0..many).for_each(|_| file.segment(4, at, note.len()));
        }
        // The same symbols in many sections
        1 => {
            let mut symbol = vec![1, 0, 0, 0, 2, 0, 1, 0];
            symbol.extend((BASE + 64).to_le_bytes());
            symbol.extend(8u64.to_le_bytes());
            let symbols = symbol.repeat(many);
            let at = file.put(&symbols);
            (0..many)
                .for_each(|_| file.section(".symtab", 2 + 9 * random.below(2) as u32, 0, at, symbols.len()));
        }
        // Functions that hold each other
        2 => {
            let code = file.put(&[0x90; 4096]);
            let size = if random.once_in(2) { 4096 } else { 64 };
            let ranges: Vec<(usize, usize)> = (0..many).map(|n| (code + n % (4097 - size), size)).collect();
            file.frames(&CALLED, &ranges, None);
        }
        3 => {
            let size = 4 * many;
            let code = file.put(&vec![0x90; size]);
            let ranges: Vec<(usize, usize)> = (0..many).map(|n| (code + n, size - n)).collect();
            file.frames(&CALLED, &ranges, None);
        }
        // One exception table for all
        4 => {
            let code = file.put(&vec![0x90; 16 * many]);
            let mut table = vec![0xff, 0xff, 1];
            let size = 4 * many;
            table.extend([size as u8 & 0x7f | 0x80, (size >> 7) as u8 & 0x7f | 0x80, (size >> 14) as u8]);
            (0..many).for_each(|n| table.extend([n as u8 & 0x7f, 1, 1 + (n as u8 & 0x3f), 0]));
            let lsda = file.put(&table);
            let ranges: Vec<(usize, usize)> = (0..many).map(|n| (code + 16 * n, 16)).collect();
            file.frames(&CALLED, &ranges, Some(lsda));
        }
        // One jump table for all
        5 => {
            let table = file.put(&vec![0; 4 * 65536]);
            let each = 32;
            let many = many.min(256); // each jump is looked at for long, but no longer for being one of many
            let code = file.bytes.len();
            let mut all = Vec::new();
            for n in 0..many {
                let mut piece = vec![0x3d, 0xfe, 0xff, 0, 0, 0x77, 16, 0x48, 0x8d, 0x15];
                let end = code + each * n + 14;
                piece.extend((table as i64 - end as i64).to_le_bytes()[..4].to_vec());
                piece.extend([0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0]);
                piece.resize(each, 0x90);
                all.extend(piece);
            }
            all.push(0xc3);
            let at = file.put(&all);
            let ranges: Vec<(usize, usize)> = if random.once_in(2) {
                vec![(at, all.len())]
            } else {
                (0..many).map(|n| (at + each * n, each)).collect()
            };
            file.frames(&CALLED, &ranges, None);
        }
        // Sections over sections, and many functions to ask them about
        6 => {
            let code = file.put(&vec![0xc3; 8 * many]);
            let ranges: Vec<(usize, usize)> = (0..many).map(|n| (code + 8 * n, 4)).collect();
            file.frames(&CALLED, &ranges, None);
            let (name, flags) = *random.pick(&[(".plt", 6), (".rodata", 2), (".text", 6)]);
            (0..many).for_each(|n| file.section(name, 1, flags, code + n, 8 * many - n));
        }
        // A long program that all share
        7 => {
            let code = file.put(&vec![0xc3; 8 * many]);
            let ranges: Vec<(usize, usize)> = (0..many).map(|n| (code + 8 * n, 4)).collect();
            let mut shared = CALLED.to_vec();
            (0..many).for_each(|_| shared.extend([0x0e, 8, 0x0a, 0x0b, 0x0e, 8]));
            file.frames(&shared, &ranges, None);
        }
        // Each jumps to the next, and only the last one returns
        8 => {
            let mut all: Vec<u8> = (0..many).flat_map(|_| [0xe9, 3, 0, 0, 0, 0x90, 0x90, 0x90]).collect();
            all.extend([0xc3; 8]);
            let code = file.put(&all);
            let ranges: Vec<(usize, usize)> = (0..=many).map(|n| (code + 8 * n, 8)).collect();
            file.frames(&CALLED, &ranges, None);
        }
        // All jump into the middle of one
        9 => {
            let mut all = vec![0x90; many];
            all.push(0xc3);
            for n in 0..many {
                let end = all.len() + 5;
                all.push(0xe9);
                all.extend((n as i32 - end as i32).to_le_bytes());
            }
            let code = file.put(&all);
            let mut ranges = vec![(code, many + 1)];
            ranges.extend((0..many).map(|n| (code + many + 1 + 5 * n, 5)));
            file.frames(&CALLED, &ranges, None);
        }
        // Short branches of which each grows the next
        10 => {
            let mut all: Vec<u8> = (0..many).flat_map(|_| [0x74, 0x7f - random.below(8) as u8]).collect();
            all.extend([0x90; 200]);
            all.push(0xc3);
            let code = file.put(&all);
            file.frames(&CALLED, &[(code, all.len())], None);
        }
        // Loops in loops, blocks that all lead to all
        11 => {
            let mut all: Vec<u8> = Vec::new();
            for _ in 0..many {
                let to = random.below(all.len() + 64) as i32 - all.len() as i32 - 6;
                all.extend([0x0f, 0x80 | random.below(16) as u8]);
                all.extend(to.to_le_bytes());
            }
            all.push(0xc3);
            let code = file.put(&all);
            file.frames(&CALLED, &[(code, all.len())], None);
        }
        // Relocations and constructors named twice
        12 => {
            let table = vec![8; 24 * many];
            let at = file.put(&table) as u64;
            let words: Vec<u64> = [
                (7, at),
                (8, 24 * many as u64),
                (23, at),
                (2, 24 * many as u64),
                (25, at),
                (27, 24 * many as u64),
            ]
            .iter()
            .flat_map(|&(tag, value)| [tag, if tag % 2 == 0 || tag == 27 { value } else { value + BASE }])
            .chain([0, 0])
            .collect();
            let dynamic: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let size = dynamic.len();
            let at = file.put(&dynamic);
            file.segment(2, at, size);
            let code = file.put(&[0xc3; 8]);
            file.frames(&CALLED, &[(code, 8)], None);
        }
        // Very many functions of one byte
        _ => {
            let code = file.put(&vec![*random.pick(&[0xc3, 0x90, 0x0f, 0xcc]); many * 8]);
            let ranges: Vec<(usize, usize)> = (0..many * 8).map(|n| (code + n, 1)).collect();
            file.frames(&CALLED, &ranges, None);
        }
    }
    file.finish()
}
