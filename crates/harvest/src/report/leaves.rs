//! The places at which a scavenger went home, with names.

use crate::find::names;
use crate::launch::Leaves;
use crate::rewrite::rewritten::RewrittenFile;
use image::Image;
use image::elf::symbols::Symbols;
use image::names::Names;
use records::plan::Place;
use records::run::Leave;
use std::path::Path;
use units::Svma;

/// Most places that a record tells.
const MOST: usize = 16;

/// The most frequent places.
pub(super) fn named(leaves: &[Leaves]) -> Vec<Leave> {
    let mut told: Vec<(usize, Leave)> = Vec::new();
    let all: Vec<&Leaves> = leaves.iter().take(MOST).collect();
    let mut files: Vec<[&Path; 2]> = all.iter().map(|it| [&*it.original, &*it.rewritten]).collect();
    files.sort_unstable();
    files.dedup();
    for [file, rewritten] in files {
        let (Ok(data), Ok(twins)) = (std::fs::read(file), std::fs::read(rewritten)) else { continue };
        let Some(twins) = RewrittenFile::of(&twins) else { continue };
        let Ok(image) = Image::parse(&data) else { continue };
        let debug = image.build_id().and_then(names::separate).and_then(|path| std::fs::read(path).ok());
        let debug_image = debug.as_deref().and_then(|debug| Image::parse(debug).ok());
        let symbols = Symbols::of(&image, debug_image.as_ref());
        let names = Names::of(&data, debug.as_deref());
        for (rank, leaves) in all.iter().enumerate().filter(|(_, it)| it.original == file) {
            let mut place = place(&symbols, twins.original_of(leaves.address));
            names::complete(&mut place, &names);
            told.push((rank, Leave { file: records::text_of(file), place, count: leaves.leaves }));
        }
    }
    told.sort_by_key(|(rank, _)| *rank);
    told.into_iter().map(|(_, leave)| leave).collect()
}

fn place(symbols: &Symbols<'_>, address: u64) -> Place {
    let before = symbols.all().partition_point(|symbol| symbol.address <= Svma(address));
    // One that has no size, as in hand-written assembly, may go on to here.
    let its = symbols.all()[..before].iter().rev().take_while(|it| it.is_function || it.size == 0);
    let its = its.take(8).find(|it| it.size == 0 || address - it.address.0 < it.size);
    Place {
        address,
        instruction: String::new(),
        function: its.map(|it| String::from_utf8_lossy(it.name).into_owned()),
        offset: its.map_or(0, |it| (address - it.address.0) as u32),
        source: None,
    }
}
