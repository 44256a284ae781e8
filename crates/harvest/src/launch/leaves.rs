//! Where a scavenger left its twins, as the runtime counted it, by the files that it runs.

use super::page::{Page, row};
use super::request::Program;
use runtime_abi::control::{LEAVES, LeaveRow, ModuleRow, ScavengerRow};
use std::mem::offset_of;
use std::path::PathBuf;

/// A place at which a scavenger went home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// The program itself or a library of its, as it was before it was rewritten, and rewritten.
    pub original: PathBuf,
    pub rewritten: PathBuf,
    /// Where it went on at home, as the rewritten file has it.
    pub address: u64,
    /// How often, at most.
    pub leaves: u64,
}

/// The rewritten files of a program, in the order of their rows: what each was, and what it is.
#[derive(Clone, Debug)]
pub(super) struct ProgramFiles(Vec<[PathBuf; 2]>);

impl ProgramFiles {
    pub(super) fn of(program: &Program) -> Self {
        let own = [program.original.as_ref().unwrap_or(&program.file), &program.file].map(PathBuf::clone);
        let libraries = program.modules.iter().map(|module| [module.original.clone(), module.file.clone()]);
        Self(std::iter::once(own).chain(libraries).collect())
    }
}

impl Leaves {
    /// Those of one scavenger, most frequent first.
    pub(super) fn of(page: &Page, index: usize, files: &ProgramFiles) -> Vec<Self> {
        let first = page.u32(row(index) + offset_of!(ScavengerRow, first_module)) as usize;
        let loaded: Vec<Loaded<'_>> = (files.0.iter().enumerate())
            .filter_map(|(at, file)| Loaded::of(page, first + at * size_of::<ModuleRow>(), file))
            .collect();
        let rows = row(index) + offset_of!(ScavengerRow, leave);
        let counted = (0..LEAVES).map(|at| rows + at * size_of::<LeaveRow>()).filter_map(|row| {
            let place = page.u64(row + offset_of!(LeaveRow, place));
            let its = loaded.iter().find(|it| it.holds(place))?;
            let [original, rewritten] = its.file.clone();
            let leaves = page.u64(row + offset_of!(LeaveRow, leaves));
            Some(Self { original, rewritten, address: place.wrapping_sub(its.bias), leaves })
        });
        let mut counted: Vec<Self> = counted.collect();
        counted.sort_by_key(|it| (std::cmp::Reverse(it.leaves), it.address));
        counted
    }
}

/// A rewritten file in the scavenger's memory.
struct Loaded<'f> {
    file: &'f [PathBuf; 2],
    bias: u64,
    /// Its twins and their originals, as the file has them.
    code: [[u64; 2]; 2],
}

impl<'f> Loaded<'f> {
    fn of(page: &Page, row: usize, file: &'f [PathBuf; 2]) -> Option<Self> {
        let ends = |field: usize| [0, 1].map(|end| page.u64(row + field + end * size_of::<u64>()));
        let code = [ends(offset_of!(ModuleRow, twins)), ends(offset_of!(ModuleRow, originals))];
        let is_there = page.u32(row + offset_of!(ModuleRow, found)) != 0;
        is_there.then(|| Self { file, bias: page.u64(row + offset_of!(ModuleRow, bias)), code })
    }

    fn holds(&self, place: u64) -> bool {
        let address = place.wrapping_sub(self.bias);
        self.code.iter().any(|[begin, end]| (*begin..*end).contains(&address))
    }
}
