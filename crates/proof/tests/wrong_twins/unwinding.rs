//! Wrong unwind tables, indexes and exception tables.

use crate::Wrong;
use crate::specimen::{Specimen, add, get, put};
use gleaner_proof::Rule::Unwind;

/// File offset of the program of a twin's frame description, and its end: past the augmentation.
fn program(it: &Specimen, description: usize) -> (usize, usize) {
    let end = description + 4 + get(&it.rewritten, description, 4) as usize;
    let augmentation = description + 16;
    (augmentation + 1 + usize::from(it.rewritten[augmentation]), end)
}

/// File offset of the first operation among those of twins that is such, walking operations as
/// compilers write them.
fn operation(it: &Specimen, wanted: impl Fn(&[u8]) -> bool) -> Option<usize> {
    it.descriptions().into_iter().find_map(|description| {
        let (mut at, end) = program(it, description);
        while at < end {
            let bytes = &it.rewritten[at..end];
            if wanted(bytes) {
                return Some(at);
            }
            at += match bytes[0] {
                0x00 | 0x0a | 0x0b | 0x40..=0x7f | 0xc0..=0xff => 1,
                0x02 | 0x0d | 0x0e | 0x80..=0xbf => 2,
                0x03 | 0x0c => 3,
                0x04 => 5,
                _ => return None,
            };
        }
        None
    })
}

/// File offsets in the exception table of the first twin whose first call site with a landing pad
/// is found: of the call site (three numbers of 4 bytes, then the action) and of the type table's
/// end.
fn call_site(it: &Specimen) -> Option<(usize, usize)> {
    it.descriptions().into_iter().find_map(|description| {
        let pointer = description + 17;
        if it.rewritten[description + 16] != 4 || get(&it.rewritten, pointer, 4) == 0 {
            return None;
        }
        let frames = it.section(".eh_frame")?.0;
        let base = image::Image::parse(&it.rewritten).ok()?.section(".eh_frame")?.address - frames as u64;
        let address =
            (base + pointer as u64).wrapping_add_signed(i64::from(get(&it.rewritten, pointer, 4) as i32));
        let mut at = it.offset(address);
        // The base of landing pads, where it is given.
        at += 1 + match it.rewritten[at] {
            0xff => 0,
            encoding if matches!(encoding & 0xf, 0x3 | 0xb) => 4,
            _ => 8,
        };
        if it.rewritten[at] == 0xff {
            return None;
        }
        at += 1;
        let leb = |at: &mut usize| {
            let (mut value, mut shift) = (0usize, 0);
            loop {
                let byte = it.rewritten[*at];
                *at += 1;
                value |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        };
        let distance = leb(&mut at);
        let types = at + distance;
        assert_eq!(it.rewritten[at], 3, "numbers of 4 bytes");
        at += 1;
        let length = leb(&mut at);
        let end = at + length;
        while at < end {
            if get(&it.rewritten, at + 8, 4) != 0 && it.rewritten[at + 12] != 0 {
                return Some((at, types));
            }
            at += 13;
        }
        None
    })
}

/// File offset of the index's first entry, and the number of entries.
fn index(it: &Specimen) -> Option<(usize, usize)> {
    let (at, _) = it.section(".eh_frame_hdr")?;
    Some((at + 12, get(&it.rewritten, at + 8, 4) as usize))
}

pub(crate) const ALL: &[Wrong] = &[
    Wrong {
        name: "a frame description of other code",
        rule: Unwind,
        make: |it, _, new| {
            add(new, it.descriptions()[0] + 8, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "a frame description that is too short",
        rule: Unwind,
        make: |it, _, new| {
            add(new, it.descriptions()[1] + 12, 4, -1);
            Some(())
        },
    },
    Wrong {
        name: "another offset of the frame",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| bytes[0] == 0x0e)?;
            new[at + 1] += 8;
            Some(())
        },
    },
    Wrong {
        name: "another register of the frame",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| bytes[0] == 0x0d)?;
            new[at + 1] = 3;
            Some(())
        },
    },
    Wrong {
        name: "another saved register",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| bytes[0] == 0x86)?;
            new[at] = 0x83;
            Some(())
        },
    },
    Wrong {
        name: "a saved register elsewhere",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| bytes[0] & 0xc0 == 0x80)?;
            new[at + 1] += 1;
            Some(())
        },
    },
    Wrong {
        name: "a rule that begins a byte late",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| (0x41..0x7f).contains(&bytes[0]))?;
            new[at] += 1;
            Some(())
        },
    },
    Wrong {
        name: "a rule that begins a byte early",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| (0x42..0x7f).contains(&bytes[0]))?;
            new[at] -= 1;
            Some(())
        },
    },
    Wrong {
        name: "a state remembered and not restored",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| bytes[0] == 0x0b)?;
            new[at] = 0;
            Some(())
        },
    },
    Wrong {
        name: "a program that restores what it never remembered",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| bytes[0] == 0x0a)?;
            new[at] = 0x0b;
            Some(())
        },
    },
    Wrong {
        name: "an operation nobody knows",
        rule: Unwind,
        make: |it, _, new| {
            let at = operation(it, |bytes| bytes[0] == 0x0e)?;
            new[at] = 0x3e;
            Some(())
        },
    },
    Wrong {
        name: "a frame description of the original changed",
        rule: Unwind,
        make: |it, _, new| {
            // The second entry: the first is what the descriptions share.
            let (at, _) = it.section(".eh_frame")?;
            let second = at + 4 + get(new, at, 4) as usize;
            add(new, second + 12, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "what descriptions share changed",
        rule: Unwind,
        make: |it, _, new| {
            let (at, _) = it.section(".eh_frame")?;
            let found = it.rewritten[at..at + 40].windows(3).position(|bytes| bytes == [0x0c, 7, 8])?;
            new[at + found + 2] = 16;
            Some(())
        },
    },
    Wrong {
        name: "an index out of order",
        rule: Unwind,
        make: |it, _, new| {
            let (at, count) = index(it)?;
            let at = at + 8 * (count / 2);
            let (a, b) = (get(new, at, 8), get(new, at + 8, 8));
            put(new, at, 8, b);
            put(new, at + 8, 8, a);
            Some(())
        },
    },
    Wrong {
        name: "an index that leads to another description",
        rule: Unwind,
        make: |it, _, new| {
            let (at, count) = index(it)?;
            let at = at + 8 * (count - 1) + 4;
            let before = get(new, at - 8, 4);
            put(new, at, 4, before);
            Some(())
        },
    },
    Wrong {
        name: "an index without the last twin",
        rule: Unwind,
        make: |it, _, new| {
            add(new, index(it)?.0 - 4, 4, -1);
            Some(())
        },
    },
    Wrong {
        name: "an index without the original's first function",
        rule: Unwind,
        make: |it, _, new| {
            let (at, _) = index(it)?;
            let second = get(new, at + 8, 8);
            put(new, at, 8, second);
            Some(())
        },
    },
    Wrong {
        name: "an index of another table",
        rule: Unwind,
        make: |it, _, new| {
            add(new, index(it)?.0 - 8, 4, 4);
            Some(())
        },
    },
    Wrong {
        name: "another landing pad",
        rule: Unwind,
        make: |it, _, new| {
            add(new, call_site(it)?.0 + 8, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "no landing pad",
        rule: Unwind,
        make: |it, _, new| {
            put(new, call_site(it)?.0 + 8, 4, 0);
            Some(())
        },
    },
    Wrong {
        name: "another action",
        rule: Unwind,
        make: |it, _, new| {
            let at = call_site(it)?.0 + 12;
            new[at] ^= 1;
            Some(())
        },
    },
    Wrong {
        name: "a call site that ends before its call",
        rule: Unwind,
        make: |it, _, new| {
            add(new, call_site(it)?.0 + 4, 4, -1);
            Some(())
        },
    },
    Wrong {
        name: "a call site that begins late",
        rule: Unwind,
        make: |it, _, new| {
            let at = call_site(it)?.0;
            let length = get(new, at + 4, 4);
            add(new, at, 4, length as i64 - 1);
            put(new, at + 4, 4, 1);
            // The last byte of the call is still in it, the first is not.
            Some(())
        },
    },
    Wrong {
        name: "another type to catch",
        rule: Unwind,
        make: |it, _, new| {
            let types = call_site(it)?.1;
            add(new, types - 4, 4, 8);
            Some(())
        },
    },
    Wrong {
        name: "an exception table of another function",
        rule: Unwind,
        make: |it, _, new| {
            let mut with = it
                .descriptions()
                .into_iter()
                .filter(|&at| it.rewritten[at + 16] == 4 && get(&it.rewritten, at + 17, 4) != 0);
            let (a, b) = (with.next()?, with.next()?);
            let to = get(new, b + 17, 4).wrapping_add(b as u64).wrapping_sub(a as u64);
            put(new, a + 17, 4, to);
            Some(())
        },
    },
    Wrong {
        name: "an exception table lost",
        rule: Unwind,
        make: |it, _, new| {
            let at = it
                .descriptions()
                .into_iter()
                .find(|&at| it.rewritten[at + 16] == 4 && get(&it.rewritten, at + 17, 4) != 0)?;
            put(new, at + 17, 4, 0);
            Some(())
        },
    },
];
