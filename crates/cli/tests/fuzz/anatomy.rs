//! Where in a sound file the numbers stand that readers go by, in areas: so that damage hits what
//! matters.
//!
//! To add an area: a line in [`of`].

use image::Image;
use image::elf::Section;

/// A number in a file.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) at: usize,
    pub(crate) size: usize,
}

/// Fields of one kind of thing.
pub(crate) struct Area {
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<Field>,
    /// Where it begins and ends.
    pub(crate) range: (usize, usize),
    /// The size of one record, where all have the same.
    pub(crate) record: Option<usize>,
}

/// All areas that the file has; it must be sound.
pub(crate) fn of(data: &[u8]) -> Vec<Area> {
    let image = Image::parse(data).expect("a sound file");
    let header = image.header();
    let mut areas = vec![
        records("header", 0, 64, 64, &[4, 1, 1, 1, 1, 8, 2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2]),
        records(
            "segments",
            header.program_headers.0 as usize,
            56 * header.program_header_count,
            56,
            &[4, 4, 8, 8, 8, 8, 8, 8],
        ),
        records(
            "sections",
            header.section_headers.0 as usize,
            64 * header.section_header_count,
            64,
            &[4, 4, 8, 8, 8, 8, 4, 4, 8, 8],
        ),
    ];
    let mut section = |name: &str, area: &dyn Fn(&Section<'_>) -> Area| {
        let section = image.section(name).filter(|section| section.size > 0 && section.kind != 8);
        areas.extend(section.map(area));
    };
    let table = |name, record, fields: &'static [usize]| {
        move |s: &Section<'_>| records(name, s.offset as usize, s.size as usize, record, fields)
    };
    section(".dynamic", &table("dynamic", 16, &[8, 8]));
    section(".rela.dyn", &table("relocations", 24, &[8, 4, 4, 8]));
    section(".rela.plt", &table("relocations", 24, &[8, 4, 4, 8]));
    section(".dynsym", &table("symbols", 24, &[4, 1, 1, 2, 8, 8]));
    section(".symtab", &table("symbols", 24, &[4, 1, 1, 2, 8, 8]));
    section(".init_array", &table("constructors", 8, &[8]));
    section(".eh_frame_hdr", &table("unwind index", 4, &[4]));
    section(".eh_frame_hdr", &table("unwind index", 1, &[1]));
    section(".rodata", &table("constants", 4, &[4]));
    section(".text", &table("code", 1, &[1]));
    section(".text", &table("code", 4, &[4]));
    section(".note.gleaner", &table("note", 4, &[4]));
    section(".text.twin", &table("twins", 1, &[1]));
    section(".rodata.twin", &table("twin tables", 4, &[4]));
    section(".gleaner.map", &table("mapping", 8, &[8]));
    section(".gleaner.map", &table("mapping", 1, &[1]));
    for name in [".gcc_except_table", ".gcc_except_table.twin"] {
        section(name, &table("exceptions", 1, &[1]));
    }
    for name in [".eh_frame", ".eh_frame.original"] {
        section(name, &|s| frames(data, s.offset as usize, s.size as usize));
    }
    areas.retain(|area| !area.fields.is_empty());
    areas
}

fn records(name: &'static str, at: usize, size: usize, record: usize, fields: &[usize]) -> Area {
    let mut all = Vec::new();
    for start in (at..(at + size + 1).saturating_sub(record)).step_by(record) {
        let mut place = start;
        for &size in fields {
            all.push(Field { at: place, size });
            place += size;
        }
    }
    Area { name, fields: all, range: (at, at + size), record: Some(record) }
}

/// The entries of an unwind table: length, reference to the common entry, two pointers, and every
/// byte behind.
fn frames(data: &[u8], at: usize, size: usize) -> Area {
    let mut fields = Vec::new();
    let mut here = at;
    while here + 4 <= at + size {
        let length = u32::from_le_bytes(data[here..here + 4].try_into().expect("four bytes")) as usize;
        fields.push(Field { at: here, size: 4 });
        if length == 0 {
            break;
        }
        let end = here + 4 + length;
        fields.extend((1..4).map(|word| Field { at: here + 4 * word, size: 4 }));
        fields.extend((here + 8..end).map(|at| Field { at, size: 1 }));
        here = end;
    }
    Area { name: "frames", fields, range: (at, at + size), record: None }
}
