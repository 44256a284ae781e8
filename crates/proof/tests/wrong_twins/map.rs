//! Wrong notes and mappings.

use crate::Wrong;
use crate::specimen::{Unit, add, get, put};
use gleaner_proof::Rule::{Inserted, Mapping, Unchanged};

pub(crate) const ALL: &[Wrong] = &[
    Wrong {
        name: "yields where there are none",
        rule: Mapping,
        make: |it, _, new| {
            // They lie where the first stream does.
            put(new, it.map + 48, 8, 1);
            Some(())
        },
    },
    Wrong {
        name: "yields ahead of the jump tables",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.map + 56, 8, 96);
            Some(())
        },
    },
    Wrong {
        name: "origins where there are no yields",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.map + 64, 8, 1);
            Some(())
        },
    },
    Wrong {
        name: "origins ahead of the yields",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.map + 72, 8, 96);
            Some(())
        },
    },
    Wrong {
        name: "labels where there are none",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.map + 80, 8, 1);
            Some(())
        },
    },
    Wrong {
        name: "a note of another version",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.note, 4, 2);
            Some(())
        },
    },
    Wrong {
        name: "a mapping of another mode",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.map + 12, 4, 2);
            Some(())
        },
    },
    Wrong {
        name: "another size of the original",
        rule: Unchanged,
        make: |it, _, new| {
            add(new, it.note + 24, 8, -1);
            Some(())
        },
    },
    Wrong {
        name: "a mapping outside the file",
        rule: Mapping,
        make: |it, _, new| {
            let size = new.len() as u64;
            put(new, it.note + 8, 8, size - 8);
            Some(())
        },
    },
    Wrong {
        name: "a mapping without end",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.note + 16, 8, u64::MAX);
            Some(())
        },
    },
    Wrong {
        name: "more units than anything holds",
        rule: Mapping,
        make: |it, _, new| {
            put(new, it.map + 16, 8, u64::MAX / 40);
            Some(())
        },
    },
    Wrong {
        name: "a unit listed twice",
        rule: Mapping,
        make: |it, _, new| {
            let record = it.units[0].record;
            let bytes = new[record..record + 40].to_vec();
            new[record + 40..record + 80].copy_from_slice(&bytes);
            Some(())
        },
    },
    Wrong {
        name: "the last unit missing",
        rule: Mapping,
        make: |it, _, new| {
            // Its tables go with it, so that it is not them that are noticed.
            let last = it.units.last()?;
            let inside = |load: u64| load.wrapping_sub(last.start) < u64::from(last.size);
            let tables = it.tables.iter().filter(|table| !inside(table.load)).count();
            put(new, it.map + 24, 8, tables as u64);
            add(new, it.map + 16, 8, -1);
            Some(())
        },
    },
    Wrong {
        name: "units exchanged",
        rule: Mapping,
        make: |it, _, new| {
            let record = it.units[0].record;
            let (a, b) = (new[record..record + 40].to_vec(), new[record + 40..record + 80].to_vec());
            new[record..record + 40].copy_from_slice(&b);
            new[record + 40..record + 80].copy_from_slice(&a);
            Some(())
        },
    },
    Wrong {
        name: "a unit shorter than its function",
        rule: Mapping,
        make: |it, _, new| {
            let unit = it.units.iter().find(|unit| {
                unit.items
                    .last()
                    .is_some_and(|last| last.at + (last.len as u64) < unit.start + u64::from(unit.size))
            });
            let unit = unit.or(it.units.last())?;
            add(new, unit.record + 24, 4, -1);
            Some(())
        },
    },
    Wrong {
        name: "an instruction fewer",
        rule: Mapping,
        make: |it, _, new| {
            add(new, it.units[0].record + 32, 4, -1);
            Some(())
        },
    },
    Wrong {
        name: "an instruction of another length",
        rule: Mapping,
        make: |it, _, new| {
            let pair = |unit: &'_ Unit| {
                let mut pairs = unit.items.windows(2);
                let found = pairs.find(|pair| pair[0].len == 1 && pair[1].len > 2 && pair[1].gap == 0)?;
                Some([found[0], found[1]])
            };
            let pair = it.units.iter().find_map(pair)?;
            // One byte goes over to the neighbour, so that all sums stay.
            new[pair[0].record] += 1;
            new[pair[1].record] -= 1;
            Some(())
        },
    },
    Wrong {
        name: "twins that overlap",
        rule: Mapping,
        make: |it, _, new| {
            add(new, it.units[0].record + 28, 4, 4096);
            Some(())
        },
    },
    Wrong {
        name: "a twin elsewhere",
        rule: Mapping,
        make: |it, _, new| {
            let unit = it.units.last()?;
            put(new, unit.record + 8, 8, unit.start);
            Some(())
        },
    },
    Wrong {
        name: "streams that overlap",
        rule: Mapping,
        make: |it, _, new| {
            let stream = get(new, it.units[0].record + 16, 8);
            put(new, it.units[1].record + 16, 8, stream);
            Some(())
        },
    },
    Wrong {
        name: "an instruction said to be inserted code",
        rule: Inserted,
        make: |it, _, new| {
            // Items of 16 bytes together, and the one behind: of as many bytes as a single one that
            // has them inserted before it, behind a gap without padding.
            let plain =
                |item: &crate::specimen::Item| item.gap == 0 && !item.escape && item.len == item.twin_len;
            let found = it.units.iter().find_map(|unit| {
                (3..8).find_map(|count| {
                    let fits = |run: &[crate::specimen::Item]| {
                        run.iter().all(plain) && run[..count].iter().map(|item| item.len).sum::<usize>() == 16
                    };
                    let at = unit.items.windows(count + 1).position(fits)?;
                    Some((unit, &unit.items[at..=at + count], count))
                })
            });
            let (unit, run, count) = found?;
            let at = run[0].record;
            new[at] = new[run[count].record] | 0x30;
            new[at + 1..at + count].fill(0x80);
            new[at + 2] |= 8;
            new[at + count - 1] &= 0x7f;
            new[at + count] = 16;
            add(new, unit.record + 32, 4, 1 - run.len() as i64);
            Some(())
        },
    },
    Wrong {
        name: "something else than traps in the padding",
        rule: Mapping,
        make: |it, _, new| {
            let image = image::Image::parse(&it.rewritten).ok()?;
            let padded = it.units.iter().flat_map(|unit| unit.items.windows(2)).find(|pair| {
                let [before, item] = pair else { return false };
                item.gap > 0 && !before.escape && before.copy + (before.twin_len as u64) < item.copy
            })?;
            let at = image.file_offset(units::Svma(padded[1].copy - 1))?.0 as usize;
            new[at] = 0x90;
            Some(())
        },
    },
    Wrong {
        name: "less padding than it takes",
        rule: Mapping,
        make: |it, _, new| {
            let unit = it.units.iter().find(|unit| {
                unit.items.windows(2).any(|pair| {
                    let (before, item) = (&pair[0], &pair[1]);
                    item.gap > 0 && !before.escape && before.copy + (before.twin_len as u64) < item.copy
                })
            })?;
            add(new, unit.record + 28, 4, -1);
            Some(())
        },
    },
];
