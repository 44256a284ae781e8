//! Wrong patches, and things that refer into patches.

use crate::Wrong;
use crate::specimen::{Specimen, add, get, put};
use gleaner_proof::Rule::{Entry, Relocations, Unchanged};

/// File offset of the first relative relocation.
fn relative(it: &Specimen) -> Option<usize> {
    let (at, size) = it.section(".rela.dyn")?;
    (at..at + size).step_by(24).find(|&entry| get(&it.rewritten, entry + 8, 8) == 8)
}

fn in_both(old: &mut [u8], new: &mut [u8], at: usize, size: usize, value: u64) {
    put(old, at, size, value);
    put(new, at, size, value);
}

/// Makes a load of eight bytes one from elsewhere, relative to the entry of a patch.
fn load(it: &Specimen, old: &mut [u8], new: &mut [u8], distance: i64) -> Option<()> {
    let (_, unit) = it.patched()?;
    let place = (unit.start + u64::from(unit.patch?)).wrapping_add_signed(distance);
    let is_load = |code: &[u8]| matches!(code, [0x48 | 0x4c, 0x8b, mode, ..] if mode & 0xc7 == 5);
    let (_, item) = it.items().find(|(unit, item)| item.at >= unit.start + 16 && is_load(it.pair(item).0))?;
    for at in [item.at, item.copy] {
        put(new, it.offset(at) + 3, 4, place.wrapping_sub(at + 7));
    }
    put(old, it.offset(item.at) + 3, 4, place.wrapping_sub(item.at + 7));
    Some(())
}

pub(crate) const ALL: &[Wrong] = &[
    Wrong {
        name: "a load that begins with a patch",
        rule: Entry,
        make: |it, old, new| load(it, old, new, 0),
    },
    Wrong {
        name: "a load that ends with the first byte of a patch",
        rule: Entry,
        make: |it, old, new| load(it, old, new, -7),
    },
    Wrong { name: "a load around a patch", rule: Entry, make: |it, old, new| load(it, old, new, -2) },
    Wrong {
        name: "a patch one byte further",
        rule: Entry,
        make: |it, _, new| {
            add(new, it.patched()?.0 + 1, 4, 1);
            Some(())
        },
    },
    Wrong {
        name: "a patch to another function's twin",
        rule: Entry,
        make: |it, _, new| {
            let (at, unit) = it.patched()?;
            let end = unit.start + u64::from(unit.patch?) + 5;
            put(new, at + 1, 4, it.units[0].twin.wrapping_sub(end));
            Some(())
        },
    },
    Wrong {
        name: "a patch that calls",
        rule: Entry,
        make: |it, _, new| {
            new[it.patched()?.0] = 0xe8;
            Some(())
        },
    },
    Wrong {
        name: "a patch six bytes long",
        rule: Unchanged,
        make: |it, _, new| {
            new[it.patched()?.0 + 5] ^= 0x10;
            Some(())
        },
    },
    Wrong {
        name: "a byte changed inside a function",
        rule: Unchanged,
        make: |it, _, new| {
            let unit = it.units.iter().find(|unit| unit.size > 40)?;
            new[it.offset(unit.start) + 30] ^= 0x80;
            Some(())
        },
    },
    Wrong {
        name: "a patch that the mapping does not know",
        rule: Unchanged,
        make: |it, _, new| {
            let (_, unit) = it.patched()?;
            put(new, unit.record + 36, 4, 0xffff_ffff);
            Some(())
        },
    },
    Wrong {
        name: "a patch that is not there",
        rule: Entry,
        make: |it, old, new| {
            let (at, _) = it.patched()?;
            new[at..at + 5].copy_from_slice(&old[at..at + 5]);
            Some(())
        },
    },
    Wrong {
        name: "a patch over endbr64",
        rule: Entry,
        make: |it, _, new| {
            let unit = it.units.iter().find(|unit| unit.patch == Some(4))?;
            put(new, unit.record + 36, 4, 0);
            let at = it.offset(unit.start);
            new[at] = 0xe9;
            put(new, at + 1, 4, unit.twin.wrapping_sub(unit.start + 5));
            Some(())
        },
    },
    Wrong {
        name: "a patch in the middle of a function",
        rule: Entry,
        make: |it, _, new| {
            let unit = it.units.iter().find(|unit| unit.patch.is_some() && unit.items.len() > 8)?;
            let item = unit.items.iter().skip(5).find(|item| item.len >= 5)?;
            put(new, unit.record + 36, 4, item.at - unit.start);
            let at = it.offset(item.at);
            new[at] = 0xe9;
            put(new, at + 1, 4, item.copy.wrapping_sub(item.at + 5));
            Some(())
        },
    },
    Wrong {
        name: "a patch at an odd place of the entry",
        rule: Entry,
        make: |it, _, new| {
            let (_, unit) = it.patched()?;
            put(new, unit.record + 36, 4, u64::from(unit.patch?) + 1);
            Some(())
        },
    },
    Wrong {
        name: "the program's entry inside a patch",
        rule: Entry,
        make: |it, old, new| {
            let unit = it.patched()?.1;
            in_both(old, new, 24, 8, unit.start + u64::from(unit.patch?) + 1);
            Some(())
        },
    },
    Wrong {
        name: "a relocation that refers into a patch",
        rule: Entry,
        make: |it, old, new| {
            let unit = it.patched()?.1;
            in_both(old, new, relative(it)? + 16, 8, unit.start + u64::from(unit.patch?) + 2);
            Some(())
        },
    },
    Wrong {
        name: "a symbol inside a patch",
        rule: Entry,
        make: |it, old, new| {
            let unit = it.patched()?.1;
            let (at, size) = it.section(".dynsym")?;
            let entry = (at..at + size).step_by(24).find(|&entry| get(&it.rewritten, entry + 6, 2) != 0)?;
            in_both(old, new, entry + 8, 8, unit.start + u64::from(unit.patch?) + 4);
            Some(())
        },
    },
    Wrong {
        name: "a jump of the linkage table into a patch",
        rule: Entry,
        make: |it, old, new| {
            let unit = it.patched()?.1;
            let (at, _) = it.section(".plt")?;
            let address = unit.start - it.offset(unit.start) as u64 + at as u64;
            put(old, at, 1, 0xe9);
            put(new, at, 1, 0xe9);
            let target = unit.start + u64::from(unit.patch?) + 3;
            in_both(old, new, at + 1, 4, target.wrapping_sub(address + 5));
            Some(())
        },
    },
    Wrong {
        name: "a word of data that refers into a patch",
        rule: Entry,
        make: |it, old, new| {
            if get(&it.original, 16, 2) != 2 {
                return None;
            }
            let unit = it.patched()?.1;
            let (at, size) = it.section(".data")?;
            let at = (at..at + size - 7).find(|at| at % 8 == 0)?;
            in_both(old, new, at, 8, unit.start + u64::from(unit.patch?) + 1);
            Some(())
        },
    },
    Wrong {
        name: "a relocation that writes into a function with a twin",
        rule: Relocations,
        make: |it, old, new| {
            let unit = it.units.iter().find(|unit| unit.size > 40)?;
            in_both(old, new, relative(it)?, 8, unit.start + 20);
            Some(())
        },
    },
    Wrong {
        name: "a relocation that writes into the new code",
        rule: Relocations,
        make: |it, old, new| {
            in_both(old, new, relative(it)?, 8, it.units[0].twin);
            Some(())
        },
    },
    Wrong {
        name: "a relocation that writes into a patch",
        rule: Relocations,
        make: |it, old, new| {
            let unit = it.patched()?.1;
            in_both(old, new, relative(it)?, 8, unit.start + 1);
            Some(())
        },
    },
    Wrong {
        name: "a relocation dropped",
        rule: Unchanged,
        make: |it, _, new| {
            let at = relative(it)?;
            new[at..at + 24].fill(0);
            Some(())
        },
    },
    Wrong {
        name: "another build id",
        rule: Unchanged,
        make: |it, _, new| {
            let (at, size) = it.section(".note.gnu.build-id")?;
            new[at + size - 1] ^= 1;
            Some(())
        },
    },
    Wrong {
        name: "another start of the program",
        rule: Unchanged,
        make: |it, _, new| {
            put(new, 24, 8, it.units[0].twin);
            Some(())
        },
    },
    Wrong {
        name: "another entry of the dynamic section",
        rule: Unchanged,
        make: |it, _, new| {
            let (at, _) = it.section(".dynamic")?;
            add(new, at + 8, 8, 1);
            Some(())
        },
    },
];
