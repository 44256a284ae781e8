//! Ways to spoil a file.
//!
//! To add one: an arm in [`once`].

use crate::anatomy::{Area, Field};
use crate::random::Random;
use crate::soup;

/// Spoils a file in some of its areas, all of them if none are named.
pub(crate) fn damage(data: &mut Vec<u8>, areas: &[Area], wanted: &[&str], random: &mut Random) {
    let areas: Vec<&Area> =
        areas.iter().filter(|area| wanted.is_empty() || wanted.contains(&area.name)).collect();
    let times = if random.once_in(8) { 1 + random.below(60) } else { 1 + random.below(5) };
    for _ in 0..times {
        match areas.as_slice() {
            [] => bytes(data, random),
            areas => {
                let area = *random.pick(areas);
                once(data, area, random);
            }
        }
    }
    if random.once_in(30) {
        data.truncate(random.below(data.len() + 1));
    }
    if random.once_in(60) {
        let size = random.below(5000);
        data.extend(random.bytes(size));
    }
}

fn once(data: &mut [u8], area: &Area, random: &mut Random) {
    let (from, to) = area.range;
    if to > data.len() {
        return bytes(data, random);
    }
    match random.below(16) {
        0 => bytes(&mut data[from..to], random),
        1 => {
            // One record in the place of another, or all of it in the place of others.
            let record = area.record.unwrap_or(1 + random.below(64)).min(to - from);
            let size =
                if random.once_in(4) { record * (1 + random.below(20)) } else { record }.min(to - from);
            let place = |random: &mut Random| from + random.below((to - from - size) / record + 1) * record;
            let (source, target) = (place(random), place(random));
            data.copy_within(source..source + size, target);
        }
        2 if random.once_in(6) => {
            let start = from + random.below(to - from);
            let end = start + random.below(to - start) + 1;
            match random.below(3) {
                0 => random.fill(&mut data[start..end]),
                1 => data[start..end].fill(*random.pick(&[0, 0xff, 0x80, 1])),
                _ => soup::fill(&mut data[start..end], random),
            }
        }
        3 if area.name == "code" => {
            let start = from + random.below(to - from);
            let end = (start + random.below(400) + 1).min(to);
            soup::fill(&mut data[start..end], random);
        }
        4 => {
            // A field gets what another one of its size holds.
            let (a, b) = (*random.pick(&area.fields), *random.pick(&area.fields));
            if a.size == b.size {
                data.copy_within(b.at..b.at + b.size, a.at);
            }
        }
        _ => {
            let field = *random.pick(&area.fields);
            let size = data.len() as u64;
            set(data, field, |old| value(old, size, random));
        }
    }
}

fn set(data: &mut [u8], field: Field, new: impl FnOnce(u64) -> u64) {
    let bytes = &mut data[field.at..field.at + field.size];
    let mut old = [0; 8];
    old[..field.size].copy_from_slice(bytes);
    bytes.copy_from_slice(&new(u64::from_le_bytes(old)).to_le_bytes()[..field.size]);
}

/// Numbers that are likely to be too large.
fn value(old: u64, file_size: u64, random: &mut Random) -> u64 {
    let near = (random.below(33) as u64).wrapping_sub(16);
    match random.below(14) {
        0 => 0,
        1 => 1 + random.below(16) as u64,
        2 => u64::MAX,
        3 => u64::MAX - random.below(4096) as u64,
        4 => 1 << random.below(64),
        5 => (1u64 << random.below(64)).wrapping_sub(1),
        6 => file_size.wrapping_add(near),
        7 | 8 => old.wrapping_add(near),
        9 => old ^ 1 << random.below(64),
        10 => old.wrapping_mul(1 + random.below(300) as u64),
        11 => old.wrapping_neg(),
        12 => random.below(1 << 17) as u64,
        _ => random.next(),
    }
}

/// Single bytes, anywhere.
fn bytes(data: &mut [u8], random: &mut Random) {
    if data.is_empty() {
        return;
    }
    for _ in 0..=random.below(8) {
        let at = random.below(data.len());
        data[at] = match random.below(3) {
            0 => random.next() as u8,
            1 => data[at] ^ 1 << random.below(8),
            _ => *random.pick(&[0, 0xff, 0x7f, 0x80]),
        };
    }
}
