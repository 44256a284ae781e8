//! Files of which not all is read.

use super::{Segment, program_headers};
use crate::elf::bytes::{u16_at, u64_at};
use std::ops::Range;

/// Where the last segment of code lies in a file as large as `data`. Its headers are all that is
/// needed: `read` puts what lies at an offset of the file into the place that it is given, which is
/// at the same offset of `data`.
pub fn last_code(data: &mut [u8], read: impl Fn(&mut [u8], u64) -> Option<()>) -> Option<Range<usize>> {
    const HEADER: usize = 64;
    const ENTRY: usize = 56;
    read(data.get_mut(..HEADER)?, 0)?;
    let (at, count) = (u64_at(data, 32)? as usize, u16_at(data, 56)?);
    let table = data.get_mut(at..at.checked_add(ENTRY * usize::from(count))?)?;
    read(table, at as u64)?;
    let segments = program_headers(data).ok()?;
    let code = segments.into_iter().rfind(Segment::is_executable)?;
    let end = code.offset.checked_add(code.file_size).filter(|&end| end <= data.len() as u64)?;
    Some(code.offset as usize..end as usize)
}
