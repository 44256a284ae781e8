//! Wrong instructions, branches, calls, escapes and jump tables in twins.

use crate::Wrong;
use crate::specimen::{add, get, put};
use gleaner_proof::Rule::{Calls, Copy, Flow, Tables};

fn is_short_condition(old: &[u8]) -> bool {
    matches!(old, [0x70..=0x7f, _])
}

pub(crate) const ALL: &[Wrong] = &[
    Wrong {
        name: "another immediate or register",
        rule: Copy,
        make: |it, _, new| {
            let (at, item) = it.copy(|old, new| old == new && old.len() == 3 && old[0] == 0x48)?;
            new[at + item.twin_len - 1] ^= 1;
            Some(())
        },
    },
    Wrong {
        name: "another operation of the same length",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| old == new && old[0] == 0x48 && old[1] == 0x89)?;
            new[at + 1] = 0x8b;
            Some(())
        },
    },
    Wrong {
        name: "an instruction left out",
        rule: Copy,
        make: |it, _, new| {
            let (at, item) = it.copy(|old, new| old == new && old.len() == 3 && old[0] == 0x48)?;
            new[at..at + item.twin_len].fill(0x90);
            Some(())
        },
    },
    Wrong {
        name: "32 bits instead of 64",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| old == new && old[0] == 0x48 && old[1] == 0x89)?;
            new[at] = 0x40;
            Some(())
        },
    },
    Wrong {
        name: "a relative operand one byte further",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, _| old.len() == 7 && old[..3] == [0x48, 0x8d, 0x3d])?;
            add(new, at + 3, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "a relative operand not adjusted",
        rule: Copy,
        make: |it, _, new| {
            let (at, item) = it.copy(|old, _| old.len() == 7 && old[..3] == [0x48, 0x8d, 0x3d])?;
            new[at..at + 7].copy_from_slice(it.pair(&item).0);
            Some(())
        },
    },
    Wrong {
        name: "a relative operand in another register",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, _| old.len() == 7 && old[..3] == [0x48, 0x8d, 0x3d])?;
            new[at + 2] = 0x35;
            Some(())
        },
    },
    Wrong {
        name: "a condition inverted",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| is_short_condition(old) && old[0] == new[0])?;
            new[at] ^= 1;
            Some(())
        },
    },
    Wrong {
        name: "a longer condition inverted",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, _| old.len() == 6 && old[0] == 0x0f && old[1] & 0xf0 == 0x80)?;
            new[at + 1] ^= 1;
            Some(())
        },
    },
    Wrong {
        name: "a call for a jump",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| old[0] == 0xe9 && new[0] == 0xe9)?;
            new[at] = 0xe8;
            Some(())
        },
    },
    Wrong {
        name: "a branch one byte further",
        rule: Flow,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| is_short_condition(old) && new.len() == 2)?;
            add(new, at + 1, 1, 1);
            Some(())
        },
    },
    Wrong {
        name: "a long branch one byte back",
        rule: Flow,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, _| old.len() == 6 && old[0] == 0x0f && old[1] & 0xf0 == 0x80)?;
            add(new, at + 2, 4, -1);
            Some(())
        },
    },
    Wrong {
        name: "a branch to where it would fall through",
        rule: Flow,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| is_short_condition(old) && new.len() == 2 && old[1] != 0)?;
            new[at + 1] = 0;
            Some(())
        },
    },
    Wrong {
        name: "a branch into the original where there is a twin",
        rule: Flow,
        make: |it, _, new| {
            let (at, item) = it.copy(|old, _| old.len() == 6 && old[0] == 0x0f && old[1] & 0xf0 == 0x80)?;
            let distance = get(it.pair(&item).0, 2, 4) as i32;
            let target = (item.at + 6).wrapping_add_signed(i64::from(distance));
            put(new, at + 2, 4, target.wrapping_sub(item.copy + 6));
            Some(())
        },
    },
    Wrong {
        name: "a call one byte further",
        rule: Calls,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| old[0] == 0xe8 && new.len() == 5)?;
            add(new, at + 1, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "a call of another function's twin",
        rule: Calls,
        make: |it, _, new| {
            let (at, item) = it.copy(|old, new| old[0] == 0xe8 && new.len() == 5)?;
            let now = (item.copy + 5).wrapping_add_signed(i64::from(get(new, at + 1, 4) as i32));
            let other = it.units.iter().find(|unit| unit.twin != now)?;
            put(new, at + 1, 4, other.twin.wrapping_sub(item.copy + 5));
            Some(())
        },
    },
    Wrong {
        name: "a call not adjusted",
        rule: Calls,
        make: |it, _, new| {
            let (at, item) = it.copy(|old, new| old[0] == 0xe8 && new.len() == 5)?;
            new[at..at + 5].copy_from_slice(it.pair(&item).0);
            Some(())
        },
    },
    Wrong {
        name: "a call through the next slot",
        rule: Calls,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| old[0] == 0xe8 && new.len() == 6)?;
            add(new, at + 2, 4, 8);
            Some(())
        },
    },
    Wrong {
        name: "a call through a slot that became a jump",
        rule: Copy,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| old[0] == 0xe8 && new.len() == 6)?;
            new[at + 1] = 0x25;
            Some(())
        },
    },
    Wrong {
        name: "a call through the slot of what is no stub",
        rule: Calls,
        make: |it, original, new| {
            let (_, item) = it.copy(|old, new| old[0] == 0xe8 && new.len() == 6)?;
            let distance = get(it.pair(&item).0, 1, 4) as i32;
            let stub = it.offset((item.at + 5).wrapping_add_signed(i64::from(distance)));
            for file in [original, new] {
                put(file, stub, 2, 0x9090);
            }
            Some(())
        },
    },
    Wrong {
        name: "an escape behind a call one byte further",
        rule: Calls,
        make: |it, _, new| {
            let (_, item) = it.items().find(|(_, item)| item.escape && it.pair(item).0[0] == 0xe8)?;
            add(new, it.offset(item.copy) + item.twin_len + 1, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "an escape that is a call",
        rule: Calls,
        make: |it, _, new| {
            let (_, item) = it.items().find(|(_, item)| item.escape && it.pair(item).0[0] == 0xe8)?;
            new[it.offset(item.copy) + item.twin_len] = 0xe8;
            Some(())
        },
    },
    Wrong {
        name: "an escape to the function's begin",
        rule: Calls,
        make: |it, _, new| {
            let (unit, item) = it.items().find(|(_, item)| item.escape && it.pair(item).0[0] == 0xe8)?;
            let end = item.copy + item.twin_len as u64 + 5;
            put(new, it.offset(item.copy) + item.twin_len + 1, 4, unit.twin.wrapping_sub(end));
            Some(())
        },
    },
    Wrong {
        name: "two entries of a jump table exchanged",
        rule: Tables,
        make: |it, _, new| {
            let (at, size) = it.tables.iter().find_map(|table| {
                let at = it.offset(table.twin);
                let entry = |index| get(&it.rewritten, at + index * table.entry, table.entry);
                let index = (1..table.count).find(|&index| entry(index) != entry(index - 1))?;
                Some((at + index * table.entry, table.entry))
            })?;
            let (a, b) = (get(new, at, size), get(new, at - size, size));
            put(new, at, size, b);
            put(new, at - size, size, a);
            Some(())
        },
    },
    Wrong {
        name: "an entry of a jump table one byte further",
        rule: Tables,
        make: |it, _, new| {
            let table = it.tables.last()?;
            add(new, it.offset(table.twin) + (table.count - 1) * table.entry, table.entry, 1);
            Some(())
        },
    },
    Wrong {
        name: "the load of a jump table beside it",
        rule: Tables,
        make: |it, _, new| {
            let table = it.tables.first()?;
            let (_, item) = it.items().find(|(_, item)| item.at == table.load)?;
            add(new, it.offset(item.copy) + item.twin_len - 4, 4, 4);
            Some(())
        },
    },
    Wrong {
        name: "the load of a jump table not adjusted",
        rule: Tables,
        make: |it, _, new| {
            let table = it.tables.iter().find(|table| table.entry == 4)?;
            let (_, item) = it.items().find(|(_, item)| item.at == table.load)?;
            put(new, it.offset(item.copy) + item.twin_len - 4, 4, 0);
            Some(())
        },
    },
    Wrong {
        name: "the load of a jump table into another register",
        rule: Tables,
        make: |it, _, new| {
            let (at, _) = it.copy(|old, new| old.len() == 4 && old[..2] == [0x48, 0x63] && new.len() == 8)?;
            new[at + 2] ^= 0x08;
            Some(())
        },
    },
    Wrong {
        name: "a jump table of the mapping elsewhere",
        rule: Tables,
        make: |it, _, new| {
            add(new, it.tables.first()?.record + 16, 8, 4);
            Some(())
        },
    },
    Wrong {
        name: "another base of a jump table",
        rule: Tables,
        make: |it, _, new| {
            let table = it.tables.iter().find(|table| table.entry == 4)?;
            add(new, table.record + 32, 8, 1);
            Some(())
        },
    },
    Wrong {
        name: "overlapping jump tables",
        rule: Tables,
        make: |it, _, new| {
            let pair = it.tables.windows(2).find(|pair| pair[0].twin < pair[1].twin)?;
            put(new, pair[1].record + 24, 8, pair[0].twin + 4);
            Some(())
        },
    },
    Wrong {
        name: "a jump table outside the new data",
        rule: Tables,
        make: |it, _, new| {
            put(new, it.tables.first()?.record + 24, 8, it.units[0].start);
            Some(())
        },
    },
    Wrong {
        name: "a jump table of an instruction that does not jump",
        rule: Tables,
        make: |it, _, new| {
            let table = it.tables.first()?;
            let unit = it.units.iter().find(|unit| unit.items.iter().any(|item| item.at == table.load))?;
            put(new, table.record, 8, unit.start);
            Some(())
        },
    },
];
