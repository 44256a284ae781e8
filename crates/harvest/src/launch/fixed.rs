//! Programs that are linked to fixed addresses: all of them must find their places free in one
//! address space.

use super::error::LaunchError;
use super::request::Harvest;
use image::Image;
use image::elf::abi::ET_DYN;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Refuses programs of which two want the same addresses. What cannot be read is refused when it is
/// started.
pub(super) fn check(harvest: &Harvest) -> Result<(), LaunchError> {
    let mut taken: Vec<(PathBuf, (u64, u64))> = Vec::new();
    let programs = std::iter::once(&harvest.primary).chain(harvest.scavengers.iter().map(|s| &s.program));
    for program in programs {
        let Some(span) = fixed_span(&program.file) else { continue };
        // By the name that the user knows: the file is a rewritten one in the cache.
        let name = program.argv.first().map_or_else(|| program.file.clone(), PathBuf::from);
        if let Some((first, _)) = taken.iter().find(|(_, other)| overlap(*other, span)) {
            return Err(LaunchError::Overlap { first: first.clone(), second: name });
        }
        taken.push((name, span));
    }
    Ok(())
}

fn overlap(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

/// The addresses that a file insists on. Most do not, and say so at their beginning.
fn fixed_span(file: &Path) -> Option<(u64, u64)> {
    let mut head = [0; 18];
    File::open(file).and_then(|mut file| file.read_exact(&mut head)).ok()?;
    if head[16..] == ET_DYN.to_le_bytes() {
        return None;
    }
    let bytes = std::fs::read(file).ok()?;
    let image = Image::parse(&bytes).ok()?;
    (!image.is_position_independent()).then(|| image.span())
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn neighbours_do_not_overlap() {
        assert!(overlap((0x400000, 0x500000), (0x4ff000, 0x600000)));
        assert!(overlap((0x400000, 0x500000), (0x400000, 0x401000)));
        assert!(!overlap((0x400000, 0x500000), (0x500000, 0x600000)));
    }
}
