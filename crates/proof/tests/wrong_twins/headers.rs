//! Wrong program headers, section headers and symbols.

use crate::Wrong;
use crate::specimen::{add, find, get, put};
use gleaner_proof::Rule::{Headers, Mapping, Symbols};

const GNU_STACK: u32 = 0x6474_e551;
const GNU_RELRO: u32 = 0x6474_e552;

pub(crate) const ALL: &[Wrong] = &[
    Wrong {
        name: "writable code",
        rule: Headers,
        make: |it, _, new| {
            put(new, it.added().1 + 4, 4, 7);
            Some(())
        },
    },
    Wrong {
        name: "executable data",
        rule: Headers,
        make: |it, _, new| {
            put(new, it.added().0 + 4, 4, 5);
            Some(())
        },
    },
    Wrong {
        name: "new segments that share a page",
        rule: Headers,
        make: |it, _, new| {
            // The code begins a little earlier, in the last page of the data, which ends before it.
            let (data, text) = it.added();
            for field in [8, 16, 24] {
                add(new, text + field, 8, -16);
            }
            add(new, text + 32, 8, 16);
            add(new, text + 40, 8, 16);
            let size = get(new, text + 16, 8) - get(new, data + 16, 8);
            put(new, data + 32, 8, size);
            put(new, data + 40, 8, size);
            Some(())
        },
    },
    Wrong {
        name: "an old segment longer than it was",
        rule: Headers,
        make: |it, _, new| {
            add(new, it.segment(1, 0)? + 40, 8, 1);
            Some(())
        },
    },
    Wrong {
        name: "a file offset that does not suit its address",
        rule: Headers,
        make: |it, _, new| {
            add(new, it.added().0 + 8, 8, 8);
            Some(())
        },
    },
    Wrong {
        name: "a new segment not aligned to pages",
        rule: Headers,
        make: |it, _, new| {
            put(new, it.added().1 + 48, 8, 16);
            Some(())
        },
    },
    Wrong {
        name: "a new segment longer in memory than in the file",
        rule: Headers,
        make: |it, _, new| {
            add(new, it.added().1 + 40, 8, 8);
            Some(())
        },
    },
    Wrong {
        name: "other permissions of an old segment",
        rule: Headers,
        make: |it, _, new| {
            put(new, it.segment(1, 0)? + 4, 4, 7);
            Some(())
        },
    },
    Wrong {
        name: "an executable stack",
        rule: Headers,
        make: |it, _, new| {
            put(new, it.segment(GNU_STACK, 0)? + 4, 4, 7);
            Some(())
        },
    },
    Wrong {
        name: "memory no longer protected after relocation",
        rule: Headers,
        make: |it, _, new| {
            put(new, it.segment(GNU_RELRO, 0)?, 4, 0);
            Some(())
        },
    },
    Wrong {
        name: "a dynamic section elsewhere",
        rule: Headers,
        make: |it, _, new| {
            add(new, it.segment(2, 0)? + 16, 8, 16);
            Some(())
        },
    },
    Wrong {
        name: "a program header for the program headers that is wrong",
        rule: Headers,
        make: |it, _, new| {
            add(new, it.segment(6, 0)? + 32, 8, -56);
            Some(())
        },
    },
    Wrong {
        name: "the new data at another distance than the first segment",
        rule: Headers,
        make: |it, _, new| {
            let (data, page) = (it.added().0, 4096);
            let last = it.segment(1, image::Image::parse(&it.original).ok()?.loads().len() - 1)?;
            let end = get(new, last + 16, 8) + get(new, last + 40, 8);
            if end.next_multiple_of(page) > get(new, data + 16, 8) - page {
                return None;
            }
            for field in [16, 24] {
                add(new, data + field, 8, -(page as i64));
            }
            Some(())
        },
    },
    Wrong {
        name: "padding that is not zero",
        rule: Headers,
        make: |it, _, new| {
            let at = get(new, it.added().1 + 8, 8) as usize - 1;
            new[at] = 1;
            Some(())
        },
    },
    Wrong {
        name: "a section of the original at another address",
        rule: Headers,
        make: |_, _, new| {
            let at = get(new, 40, 8) as usize + 64;
            add(new, at + 16, 8, 16);
            Some(())
        },
    },
    Wrong {
        name: "a section of the original with another name",
        rule: Headers,
        make: |_, _, new| {
            let at = get(new, 40, 8) as usize + 64;
            add(new, at, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "a new section outside its segment",
        rule: Headers,
        make: |_, _, new| {
            let count = get(new, 60, 2) as usize;
            let table = get(new, 40, 8) as usize;
            let text = (0..count).map(|index| table + 64 * index).rfind(|&at| get(new, at + 8, 8) == 6)?;
            add(new, text + 16, 8, 4096);
            Some(())
        },
    },
    Wrong {
        name: "code between twins",
        rule: Mapping,
        make: |it, _, new| {
            let pair = it
                .units
                .windows(2)
                .find(|pair| pair[0].twin + u64::from(pair[0].twin_size) < pair[1].twin)?;
            new[it.offset(pair[1].twin) - 1] = 0x90;
            Some(())
        },
    },
    Wrong {
        name: "a twin's symbol at another address",
        rule: Symbols,
        make: |it, _, new| {
            let (at, size) = it.section(".symtab")?;
            add(new, at + size - 24 + 8, 8, 1);
            Some(())
        },
    },
    Wrong {
        name: "a twin's symbol of another size",
        rule: Symbols,
        make: |it, _, new| {
            let (at, size) = it.section(".symtab")?;
            add(new, at + size - 24 + 16, 8, 1);
            Some(())
        },
    },
    Wrong {
        name: "a symbol of the original that has moved",
        rule: Symbols,
        make: |it, old, new| {
            let (at, _) = it.section(".symtab")?;
            let had = image::Image::parse(old).ok()?.section(".symtab").is_some();
            add(new, at + 24 + 8, 8, 1);
            had.then_some(())
        },
    },
    Wrong {
        name: "a twin named after another function",
        rule: Symbols,
        make: |it, old, new| {
            image::Image::parse(old).ok()?.section(".symtab")?;
            let (at, size) = it.section(".symtab")?;
            let (last, other) = (at + size - 24, at + size - 48);
            let name = get(new, other, 4);
            put(new, last, 4, name);
            Some(())
        },
    },
    Wrong {
        name: "bytes behind the end",
        rule: Headers,
        make: |_, _, new| {
            new.extend(b"appended");
            Some(())
        },
    },
    Wrong {
        name: "padding behind the end",
        rule: Headers,
        make: |_, _, new| {
            new.push(0);
            Some(())
        },
    },
    Wrong {
        name: "a new segment aligned to more than a page",
        rule: Headers,
        make: |it, _, new| {
            put(new, it.added().1 + 48, 8, 1 << 13);
            Some(())
        },
    },
    Wrong {
        name: "a new section with another name",
        rule: Headers,
        make: |_, _, new| {
            let at = find(new, b".rodata.twin\0")?;
            new[at + 1] = b'R';
            Some(())
        },
    },
    Wrong {
        name: "a name of a section that is not a section's",
        rule: Headers,
        make: |_, _, new| {
            // The last name loses its end.
            let names = section(new, get(new, 62, 2) as usize);
            add(new, names + 32, 8, -1);
            Some(())
        },
    },
    Wrong {
        name: "a new section aligned otherwise",
        rule: Headers,
        make: |_, _, new| {
            let last = section(new, get(new, 60, 2) as usize - 1);
            add(new, last + 48, 8, 8);
            Some(())
        },
    },
];

/// Where in the file the header of a section lies.
fn section(file: &[u8], index: usize) -> usize {
    get(file, 40, 8) as usize + 64 * index
}
