//! Twins that are right only because no code relies on what their yields lose. Then the test makes
//! code rely on it: one instruction, word or name becomes another, in the original and in its
//! rewriting alike, and the same yields are wrong.
//!
//! To add one: something that may be relied on in `reliance.c`, and what makes it so in
//! [`CHANGES`].

use crate::{compile, rejected, rewrite};
use gleaner_proof::{Rule, check};
use image::Image;
use twin::VectorWidth;

/// What is put in the place of what.
struct Change {
    name: &'static str,
    from: &'static [u8],
    to: To,
    /// How often it is in the rewritten file: in the original's place, and in the twin where it is
    /// code.
    times: usize,
}

enum To {
    Bytes(&'static [u8]),
    /// The address of this function.
    Address(&'static str),
    /// How far this function is from here, in four bytes.
    Distance(&'static str),
    /// A direct call of it.
    Call(&'static str),
}

/// An instruction with the marker of this number behind it.
macro_rules! marked {
    ($number:literal: $($byte:literal)*) => { &[$($byte,)* 0x41, 0xb9, $number, 0, 0x5a, 0x5a] };
}

/// The same, with a marker that writes flags alone.
macro_rules! signed {
    ($number:literal: $($byte:literal)*) => { &[$($byte,)* 0xf7, 0xc2, $number, 0, 0x5a, 0x5a] };
}

const CHANGES: &[Change] = &[
    Change {
        name: "a caller keeps rcx over a call",
        from: marked!(1: 0x89 0xc1),
        to: To::Bytes(&[0x01, 0xc1]),
        times: 2,
    },
    Change {
        name: "a caller reads the result",
        from: marked!(2: 0x44 0x89 0xe0),
        to: To::Bytes(&[0x44, 0x01, 0xe0]),
        times: 2,
    },
    Change {
        name: "something is written behind a call by the ABI, and may be passed on",
        from: marked!(4: 0x89 0xc0),
        to: To::Bytes(&[0x89, 0xc1]),
        times: 2,
    },
    Change {
        name: "a register is read right behind a call by a pointer",
        from: marked!(7: 0x41 0x89 0xc3),
        to: To::Bytes(&[0x41, 0x01, 0xc3]),
        times: 2,
    },
    Change {
        name: "a caller of who jumps there keeps rcx",
        from: marked!(8: 0x89 0xc1),
        to: To::Bytes(&[0x01, 0xc1]),
        times: 2,
    },
    Change {
        name: "a register is read right behind a call of who jumps to a pointer",
        from: marked!(9: 0x41 0x89 0xc2),
        to: To::Bytes(&[0x41, 0x01, 0xc2]),
        times: 2,
    },
    Change {
        name: "a load becomes a call by a pointer, which may be passed something in r12 and xmm9",
        from: marked!(10: 0x8b 0x16),
        to: To::Bytes(&[0xff, 0x16]),
        times: 2,
    },
    Change {
        name: "nobody reads what a function writes that is called by a pointer",
        from: marked!(11: 0x89 0xf1),
        to: To::Bytes(&[0x89, 0xd1]),
        times: 2,
    },
    Change {
        name: "a function that others call leaves all general registers alone",
        from: signed!(12: 0x89 0xd1),
        to: To::Bytes(&[0x89, 0xd0]),
        times: 2,
    },
    Change {
        name: "a function that others call leaves all vectors but results alone",
        from: signed!(13: 0x66 0x0f 0x6e 0xf2),
        to: To::Bytes(&[0x66, 0x0f, 0x6e, 0xc2]),
        times: 2,
    },
    Change {
        name: "a function that others call is passed nothing in rdi",
        from: signed!(14: 0x89 0xf9),
        to: To::Bytes(&[0x89, 0xd1]),
        times: 2,
    },
    Change {
        name: "a function that others call is passed something in rax",
        from: signed!(15: 0x89 0xd1),
        to: To::Bytes(&[0x89, 0xc1]),
        times: 2,
    },
    Change {
        name: "a function that another calls for others leaves all general registers alone",
        from: signed!(16: 0x89 0xd1),
        to: To::Bytes(&[0x89, 0xd0]),
        times: 2,
    },
    Change {
        name: "what goes on in another module may leave all registers alone",
        from: signed!(17: 0x89 0xd1),
        to: To::Bytes(&[0x89, 0xd0]),
        times: 2,
    },
    Change {
        name: "what calls another module may leave all registers alone",
        from: signed!(18: 0x89 0xd1),
        to: To::Bytes(&[0x89, 0xd0]),
        times: 2,
    },
    Change {
        name: "what a call by a pointer leaves may be handed back",
        from: signed!(19: 0x89 0xd1),
        to: To::Bytes(&[0x89, 0xc1]),
        times: 2,
    },
    Change {
        name: "a function of no known type is passed more",
        from: b"\0strdup\0",
        to: To::Bytes(b"\0strdux\0"),
        times: 1,
    },
    Change {
        name: "the address of a private function is in data",
        from: &[0x5c, 0x5c, 0x5c, 0x5c, 0x5b, 0x5b, 0x5b, 0x5b],
        to: To::Address("silent"),
        times: 1,
    },
    Change {
        name: "the way to a private function is in data",
        from: &[0x5d; 4],
        to: To::Distance("silent"),
        times: 1,
    },
    Change {
        name: "code that nobody knows calls a function",
        from: &[0xb8, 0x51, 0x51, 0x51, 0x51],
        to: To::Call("leaf"),
        times: 1,
    },
];

fn places(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    bytes.windows(wanted.len()).enumerate().filter(|(_, found)| *found == wanted).map(|(at, _)| at).collect()
}

/// The address of a function, by its name.
fn address(file: &[u8], name: &str) -> u64 {
    let image = Image::parse(file).expect("sound");
    let symbols = image.section(".symtab").expect("symbols");
    let strings = image.section_bytes(image.section(".strtab").expect("names")).expect("names");
    let wanted = [name.as_bytes(), b"\0"].concat();
    let mut entries = image.section_bytes(symbols).expect("symbols").chunks_exact(24);
    let is_it = |entry: &&[u8]| strings[crate::pieces::get(entry, 0, 4) as usize..].starts_with(&wanted);
    crate::pieces::get(entries.find(is_it).expect("a function of this name"), 8, 8)
}

fn place_in_memory(file: &[u8], at: usize) -> u64 {
    let image = Image::parse(file).expect("sound");
    let at_offset = at as u64;
    let mut loads = image.loads().iter();
    let load =
        loads.find(|load| (load.offset..load.offset + load.file_size).contains(&at_offset)).expect("loaded");
    load.address + (at_offset - load.offset)
}

impl Change {
    fn make(&self, original: &[u8], file: &[u8], times: usize) -> Vec<u8> {
        let mut changed = file.to_vec();
        let found = places(file, self.from);
        assert_eq!(found.len(), times, "{}", self.name);
        for at in found {
            let distance =
                |name, behind: u64| (address(original, name).wrapping_sub(behind) as u32).to_le_bytes();
            let place = || place_in_memory(file, at);
            let bytes = match self.to {
                To::Bytes(bytes) => bytes.to_vec(),
                To::Address(name) => address(original, name).to_le_bytes().to_vec(),
                To::Distance(name) => distance(name, place()).to_vec(),
                To::Call(name) => [&[0xe8], distance(name, place() + 5).as_slice()].concat(),
            };
            changed[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        changed
    }
}

#[test]
fn what_code_relies_on_is_not_lost() {
    let original = compile("tests/harvest/reliance.c", &["-O2", "-no-pie"]);
    for scavenger in [false, true] {
        let rewritten = rewrite(&original, scavenger, VectorWidth::Avx512, false).expect("can be rewritten");
        check(&original, &rewritten).unwrap_or_else(|refusal| panic!("right as it is: {refusal:#?}"));
        let missed: Vec<&str> = CHANGES
            .iter()
            .filter(|change| {
                let both =
                    (change.make(&original, &original, 1), change.make(&original, &rewritten, change.times));
                !rejected(&both.0, &both.1, Rule::Yields)
            })
            .map(|change| change.name)
            .collect();
        assert!(missed.is_empty(), "accepted, scavenger {scavenger}: {missed:#?}");
    }
}
