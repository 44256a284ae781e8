//! A fast walk over `.eh_frame`: common entries (CIEs) and the entry of every function (FDEs).
//!
//! Only what a static reader can know is accepted; an entry with an augmentation or a pointer
//! encoding nobody uses on x86-64 makes the whole table unreadable, since unwinders would also give
//! up on it.

use crate::elf::abi;
use crate::elf::cursor::{Cursor, ENCODED_OMIT, encoded_size};
use crate::{Image, ImageError};
use std::collections::HashMap;
use std::ops::Range;
use units::Svma;

/// A common information entry.
#[derive(Clone, Debug)]
pub struct Cie {
    /// Of its length field, from the start of the table.
    pub offset: u32,
    /// The whole entry with its length field.
    pub size: u32,
    pub pointer_encoding: u8,
    pub lsda_encoding: u8,
    pub personality: Option<Personality>,
    pub code_align: u64,
    pub data_align: i64,
    pub return_register: u64,
    /// Frames of signal handlers' trampolines, which unwinders treat on their own.
    pub is_signal: bool,
    pub has_augmentation: bool,
    /// The initial instructions, as offsets in the table.
    pub program: Range<u32>,
}

impl Cie {
    /// Whether the initial instructions, which are run for every function, are more than anybody
    /// has use for: a few bytes say where the return address is.
    pub fn is_long(&self) -> bool {
        const LONGEST: u32 = 512;
        self.program.end - self.program.start > LONGEST
    }
}

/// Where a CIE names its personality routine.
#[derive(Clone, Copy, Debug)]
pub struct Personality {
    pub encoding: u8,
    /// Of the pointer, from the start of the table.
    pub offset: u32,
    /// What the pointer says, before following an indirection.
    pub pointer: u64,
}

/// A frame description entry: one contiguous piece of code.
#[derive(Clone, Debug)]
pub struct Fde {
    pub offset: u32,
    pub size: u32,
    /// Index into [`Frames::cies`].
    pub cie: u32,
    pub start: Svma,
    pub length: u64,
    pub lsda: Option<Svma>,
    /// Of the pointer to the exception table, from the start of the table; 0 without one.
    pub lsda_offset: u32,
    pub program: Range<u32>,
}

impl Fde {
    pub fn end(&self) -> Svma {
        Svma(self.start.0 + self.length)
    }
}

/// The unwind table of a module.
#[derive(Clone, Debug, Default)]
pub struct Frames<'d> {
    pub address: Svma,
    /// The table up to its end mark.
    pub bytes: &'d [u8],
    pub cies: Vec<Cie>,
    /// In the order of the table.
    pub fdes: Vec<Fde>,
}

impl<'d> Frames<'d> {
    /// Finds and reads the table; an empty one if the module has none.
    pub fn of(image: &Image<'d>) -> Result<Self, ImageError> {
        match locate(image) {
            Some((address, bytes)) => Self::parse(address, bytes),
            None => Ok(Self::default()),
        }
    }

    pub fn parse(address: Svma, bytes: &'d [u8]) -> Result<Self, ImageError> {
        const BAD: ImageError = ImageError::Malformed(".eh_frame");
        let mut frames = Self { address, bytes, ..Self::default() };
        let mut by_offset = HashMap::new();
        let mut at = 0usize;
        while let Some(length) = crate::elf::bytes::u32_at(bytes, at) {
            if length == 0 {
                break;
            }
            if length == u32::MAX {
                return Err(ImageError::Malformed(".eh_frame: 64-bit entries"));
            }
            let end = at + 4 + length as usize;
            let entry = bytes.get(..end).ok_or(BAD)?;
            let mut cursor = Cursor::new(entry, at + 4);
            let id = cursor.u32().ok_or(BAD)?;
            if id == 0 {
                let cie = parse_cie(cursor, at, end, address.0).ok_or(BAD)?;
                by_offset.insert(at, frames.cies.len() as u32);
                frames.cies.push(cie);
            } else {
                let cie_at = (at + 4).checked_sub(id as usize).ok_or(BAD)?;
                let cie = *by_offset.get(&cie_at).ok_or(BAD)?;
                let fde = parse_fde(cursor, at, end, address.0, cie, &frames.cies[cie as usize]);
                frames.fdes.push(fde.ok_or(BAD)?);
            }
            at = end;
        }
        frames.bytes = &bytes[..at.min(bytes.len())];
        Ok(frames)
    }

    pub fn program(&self, range: &Range<u32>) -> &'d [u8] {
        &self.bytes[range.start as usize..range.end as usize]
    }
}

/// The table's address and bytes: by the binary-search header if there is one, as at run time, else
/// by section name.
fn locate<'d>(image: &Image<'d>) -> Option<(Svma, &'d [u8])> {
    let header = image.segments().iter().find(|segment| segment.kind == abi::PT_GNU_EH_FRAME);
    if let Some(header) = header {
        let bytes = image.segment_bytes(header)?;
        let mut cursor = Cursor::new(bytes, 0);
        let (version, encoding) = (cursor.u8()?, cursor.u8()?);
        let (_, _) = (cursor.u8()?, cursor.u8()?);
        if version == 1 && encoding != ENCODED_OMIT {
            let address = Svma(cursor.encoded(encoding, header.address)?);
            if let Some(found) = image.bytes_from(address) {
                // Some tables end without an end mark: then the section says where.
                let section = image.sections().iter().find(|section| section.address == address.0);
                let size = section.map_or(found.len(), |section| found.len().min(section.size as usize));
                return Some((address, &found[..size]));
            }
        }
    }
    let section = image.section(".eh_frame")?;
    Some((Svma(section.address), image.section_bytes(section)?))
}

fn parse_cie(mut cursor: Cursor<'_>, at: usize, end: usize, address: u64) -> Option<Cie> {
    let version = cursor.u8()?;
    if version != 1 && version != 3 {
        return None;
    }
    let mut augmentation = [0u8; 8];
    let mut letters = 0;
    loop {
        match cursor.u8()? {
            0 => break,
            letter => {
                *augmentation.get_mut(letters)? = letter;
                letters += 1;
            }
        }
    }
    let code_align = cursor.uleb()?;
    let data_align = cursor.sleb()?;
    let return_register = if version == 1 { u64::from(cursor.u8()?) } else { cursor.uleb()? };
    let mut cie = Cie {
        offset: at as u32,
        size: (end - at) as u32,
        pointer_encoding: 0,
        lsda_encoding: ENCODED_OMIT,
        personality: None,
        code_align,
        data_align,
        return_register,
        is_signal: false,
        has_augmentation: false,
        program: 0..0,
    };
    let mut letters = augmentation[..letters].iter();
    if augmentation[0] == b'z' {
        letters.next();
        cie.has_augmentation = true;
        let size = cursor.uleb()? as usize;
        let program = cursor.position().checked_add(size)?;
        for letter in letters {
            match letter {
                b'R' => cie.pointer_encoding = cursor.u8()?,
                b'L' => cie.lsda_encoding = cursor.u8()?,
                b'P' => {
                    let encoding = cursor.u8()?;
                    encoded_size(encoding)?;
                    let offset = cursor.position() as u32;
                    let pointer = cursor.encoded(encoding, address)?;
                    cie.personality = Some(Personality { encoding, offset, pointer });
                }
                b'S' => cie.is_signal = true,
                _ => return None,
            }
        }
        if cursor.position() > program {
            return None;
        }
        cie.program = program as u32..end as u32;
    } else {
        if letters.next().is_some() {
            return None;
        }
        cie.program = cursor.position() as u32..end as u32;
    }
    encoded_size(cie.pointer_encoding)?;
    (cie.program.start <= cie.program.end).then_some(cie)
}

fn parse_fde(
    mut cursor: Cursor<'_>,
    at: usize,
    end: usize,
    address: u64,
    index: u32,
    cie: &Cie,
) -> Option<Fde> {
    let start = cursor.encoded(cie.pointer_encoding, address)?;
    let length = cursor.encoded(cie.pointer_encoding & 0x0f, 0)?;
    start.checked_add(length)?;
    let (mut lsda, mut lsda_offset) = (None, 0);
    if cie.has_augmentation {
        let size = cursor.uleb()? as usize;
        let program = cursor.position().checked_add(size)?;
        if cie.lsda_encoding != ENCODED_OMIT && size > 0 {
            encoded_size(cie.lsda_encoding)?;
            lsda_offset = cursor.position() as u32;
            lsda = Some(cursor.encoded(cie.lsda_encoding, address)?).filter(|&found| found != 0).map(Svma);
        }
        if cursor.position() > program {
            return None;
        }
        cursor.take(program - cursor.position())?;
    }
    let program = cursor.position() as u32..end as u32;
    Some(Fde {
        offset: at as u32,
        size: (end - at) as u32,
        cie: index,
        start: Svma(start),
        length,
        lsda,
        lsda_offset,
        program,
    })
}
