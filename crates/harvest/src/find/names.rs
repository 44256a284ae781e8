//! A place in a plan, completed for people: its instruction and its line of source.

use image::names::Names;
use records::plan::{Place, SourceLine};
use std::path::PathBuf;
use units::Svma;

/// Completes a place by what its file says.
pub fn complete(place: &mut Place, names: &Names<'_>) {
    place.instruction = names.instruction(Svma(place.address));
    let line = names.line(Svma(place.address));
    place.source = line.map(|line| SourceLine { file: line.file, line: line.line });
}

/// The separate debug information of a file with this build id, where there is any.
pub(crate) fn separate(build_id: &[u8]) -> Option<PathBuf> {
    image::names::separate_debug_file(build_id).filter(|path| path.is_file())
}
