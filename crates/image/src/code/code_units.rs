//! Where functions are: one [`Unit`] for every contiguous piece of code, from the unwind table,
//! refined by symbols and entry points.
//!
//! A function that the compiler split into a hot and a cold part has two units. A unit without
//! unwind entry is known only so that its branches are; what lies in none (padding, stubs, data
//! among code) is left alone.

use crate::Image;
use crate::elf::abi;
use crate::elf::is_among;
use crate::elf::relocations::Relocation;
use crate::elf::symbols::Symbols;
use crate::go;
use crate::unwind::{cfi, frames::Frames};
use units::Svma;

/// One contiguous piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub start: Svma,
    pub size: u32,
    /// Index into [`Frames::fdes`].
    pub fde: Option<u32>,
    /// A split-off part of another function: entered by jumps in the middle of a frame, not by
    /// calls.
    pub is_part: bool,
    /// Its range overlaps another's; then its size is only as far as to where the next one begins.
    pub is_overlapped: bool,
}

impl Unit {
    pub fn end(&self) -> Svma {
        Svma(self.start.0 + u64::from(self.size))
    }
    pub fn holds(&self, address: Svma) -> bool {
        address.0.wrapping_sub(self.start.0) < u64::from(self.size)
    }
}

/// The unit that holds an address; units ascend by start.
pub fn unit_at(units: &[Unit], address: Svma) -> Option<usize> {
    let after = units.partition_point(|unit| unit.start <= address);
    let index = after.checked_sub(1)?;
    units[index].holds(address).then_some(index)
}

/// All units of a module, by ascending start, non-empty, within executable file bytes.
pub fn discover(
    image: &Image<'_>,
    frames: &Frames<'_>,
    symbols: &Symbols<'_>,
    relocations: &[Relocation],
) -> Vec<Unit> {
    let mut units: Vec<Unit> = frames
        .fdes
        .iter()
        .enumerate()
        .filter(|(_, fde)| fde.length > 0 && is_executable_range(image, fde.start, fde.length))
        .map(|(index, fde)| {
            let cie = &frames.cies[fde.cie as usize];
            let called = !cie.is_long()
                && cfi::starts_as_called(frames.program(&cie.program), frames.program(&fde.program));
            Unit {
                start: fde.start,
                size: fde.length as u32,
                fde: Some(index as u32),
                is_part: !called || is_named_part(symbols, fde.start),
                is_overlapped: false,
            }
        })
        .collect();
    units.sort_by_key(|unit| (unit.start, std::cmp::Reverse(unit.size)));
    units.dedup_by_key(|unit| unit.start);
    mark_overlaps(&mut units);
    add_functions_of_go(image, &mut units);

    let mut starts: Vec<(Svma, u64)> = symbols
        .all()
        .iter()
        .filter(|symbol| symbol.is_function)
        .map(|symbol| (symbol.address, symbol.size))
        .chain(entry_points(image, relocations).into_iter().map(|address| (address, 0)))
        .filter(|&(address, _)| image.is_code(address) && unit_at(&units, address).is_none())
        .collect();
    starts.sort_by_key(|&(address, size)| (address, std::cmp::Reverse(size)));
    starts.dedup_by_key(|&mut (address, _)| address);
    let with_frames = units.len();
    for (index, &(start, size)) in starts.iter().enumerate() {
        let next_start = starts.get(index + 1).map_or(u64::MAX, |&(next, _)| next.0);
        let after = units[..with_frames].partition_point(|unit| unit.start <= start);
        let next_unit = units[..with_frames].get(after).map_or(u64::MAX, |unit| unit.start.0);
        let limit = image.bytes_from(start).map_or(0, |bytes| bytes.len() as u64);
        let most = (next_start.min(next_unit) - start.0).min(limit);
        let size = if size == 0 { most } else { size.min(most) };
        units.push(Unit {
            start,
            size: size.min(u64::from(u32::MAX >> 1)) as u32,
            fde: None,
            is_part: false,
            is_overlapped: false,
        });
    }
    units.sort_by_key(|unit| unit.start);
    units
}

/// Functions of Go, but where the unwind table has something else to say.
fn add_functions_of_go(image: &Image<'_>, units: &mut Vec<Unit>) {
    let described = units.len();
    for (start, size) in go::functions(image) {
        let end = start.0 + u64::from(size);
        let after = units[..described].partition_point(|unit| unit.start.0 < end);
        let is_apart = units[..after].last().is_none_or(|unit| unit.end() <= start);
        if is_apart && is_executable_range(image, start, u64::from(size)) {
            units.push(Unit { start, size, fde: None, is_part: false, is_overlapped: false });
        }
    }
    units.sort_by_key(|unit| unit.start);
    units.dedup_by_key(|unit| unit.start);
}

fn is_executable_range(image: &Image<'_>, start: Svma, length: u64) -> bool {
    length < u64::from(u32::MAX >> 1)
        && image.is_code(start)
        && image.bytes_from(start).is_some_and(|bytes| length <= bytes.len() as u64)
}

/// gcc and clang name split-off parts after their function.
fn is_named_part(symbols: &Symbols<'_>, start: Svma) -> bool {
    let here = symbols.at(start);
    let part = |name: &[u8]| {
        name.ends_with(b".cold")
            || name.windows(6).any(|window| window == b".cold.")
            || name.ends_with(b".cold.0")
    };
    !here.is_empty() && here.iter().all(|symbol| part(symbol.name))
}

fn mark_overlaps(units: &mut [Unit]) {
    let mut reach = 0;
    let mut last = 0;
    for index in 0..units.len() {
        if units[index].start.0 < reach {
            units[index].is_overlapped = true;
            units[last].is_overlapped = true;
        }
        if units[index].end().0 > reach {
            reach = units[index].end().0;
            last = index;
        }
    }
    // Nothing is decoded twice: what many ranges hold would be decoded as many times.
    for index in 1..units.len() {
        let most = units[index].start.0 - units[index - 1].start.0;
        let before = &mut units[index - 1];
        before.size = u64::from(before.size).min(most) as u32;
    }
}

/// Where the loader or the kernel enters the module.
pub(crate) fn entry_points(image: &Image<'_>, relocations: &[Relocation]) -> Vec<Svma> {
    let mut found = vec![image.entry()];
    let value = |tag| image.dynamic_value(tag);
    found.extend([abi::DT_INIT, abi::DT_FINI].into_iter().filter_map(value).map(Svma));
    let arrays = [
        (abi::DT_INIT_ARRAY, abi::DT_INIT_ARRAYSZ),
        (abi::DT_FINI_ARRAY, abi::DT_FINI_ARRAYSZ),
        (abi::DT_PREINIT_ARRAY, abi::DT_PREINIT_ARRAYSZ),
    ];
    for (at, size) in arrays.map(|(at, size)| (value(at), value(size))) {
        let (Some(at), Some(size)) = (at, size) else { continue };
        let Some(bytes) = image.bytes_from(Svma(at)) else { continue };
        let bytes = &bytes[..bytes.len().min(size as usize)];
        found.extend(bytes.chunks_exact(8).filter_map(|word| crate::elf::bytes::u64_at(word, 0)).map(Svma));
    }
    // Pointers to constants are none to functions, though both may lie in one segment.
    let data = image.data_among_code();
    found.extend(
        relocations
            .iter()
            .filter(|r| matches!(r.kind, abi::R_X86_64_RELATIVE | abi::R_X86_64_IRELATIVE))
            .filter(|r| r.kind == abi::R_X86_64_IRELATIVE || !is_among(&data, r.addend))
            .map(|r| Svma(r.addend)),
    );
    found.retain(|&address| address.0 != 0 && image.is_code(address));
    found
}
