//! Reading `.eh_frame` and `.eh_frame_hdr`: descriptions of frames, as a list.

use crate::container::elf::Elf;
use crate::container::read::{Reader, number};
use object::elf::PT_GNU_EH_FRAME;
use units::Svma;

/// What several frame descriptions share.
#[derive(Clone, Debug)]
pub(crate) struct Cie<'d> {
    at: u64,
    pub(crate) version: u8,
    pub(crate) augmentation: &'d [u8],
    pub(crate) code_factor: u64,
    pub(crate) data_factor: i64,
    pub(crate) return_register: u64,
    pub(crate) pointers: u8,
    pub(crate) exceptions: Option<u8>,
    pub(crate) personality: Option<(u8, u64)>,
    pub(crate) program: &'d [u8],
}

impl Cie<'_> {
    /// The same but for where it lies. How a pointer is stored does not matter, what it says does.
    pub(crate) fn same(&self, other: &Cie<'_>) -> bool {
        let indirect = |cie: &Cie<'_>| cie.personality.map(|(encoding, to)| (encoding & 0x80, to));
        self.version == other.version
            && self.augmentation == other.augmentation
            && self.code_factor == other.code_factor
            && self.data_factor == other.data_factor
            && self.return_register == other.return_register
            && self.exceptions.is_some() == other.exceptions.is_some()
            && indirect(self) == indirect(other)
            && strip(self.program) == strip(other.program)
    }
}

/// One frame description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fde<'d> {
    /// Address of the entry itself.
    pub(crate) at: u64,
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) exceptions: u64,
    pub(crate) program: &'d [u8],
    /// Index in [`Frames::shared`].
    pub(crate) shared: u32,
}

impl<'d> Fde<'d> {
    pub(crate) fn bare_program(&self) -> &'d [u8] {
        strip(self.program)
    }
}

/// `DW_CFA_nop`s that pad an entry say nothing.
fn strip(program: &[u8]) -> &[u8] {
    let size = program.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    // A zero may be an operand: it stays where it is needed, since programs are compared with both
    // stripped alike.
    &program[..size]
}

/// All of a module's frame descriptions.
#[derive(Default)]
pub(crate) struct Frames<'d> {
    pub(crate) shared: Vec<Cie<'d>>,
    pub(crate) list: Vec<Fde<'d>>,
    /// Where the table lies, and how much of it was read.
    pub(crate) address: u64,
    pub(crate) index: Option<Index<'d>>,
}

/// The sorted table of `.eh_frame_hdr`.
#[derive(Clone, Copy)]
pub(crate) struct Index<'d> {
    pub(crate) address: u64,
    pub(crate) entries: &'d [u8],
}

impl Index<'_> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len() / 8
    }
    /// Start of code and address of its frame description.
    pub(crate) fn entry(&self, index: usize) -> (u64, u64) {
        let field = |at| number(self.entries, 8 * index + at, 4).unwrap_or(0) as i32;
        let absolute = |value: i32| self.address.wrapping_add_signed(i64::from(value));
        (absolute(field(0)), absolute(field(4)))
    }
}

impl<'d> Frames<'d> {
    /// Reads them all; says where reading failed.
    pub(crate) fn of(image: &Elf<'d>) -> Result<Self, (u64, &'static str)> {
        let segment = image.segments().iter().find(|segment| segment.kind == PT_GNU_EH_FRAME);
        let header = segment.map(|segment| index(image, segment.address)).transpose()?;
        let section = image.section(".eh_frame").filter(|section| section.size > 0);
        let (address, size) = match (&header, section) {
            (Some((address, _)), _) => (*address, None),
            (None, Some(section)) => (section.address, Some(section.size as usize)),
            (None, None) => return Ok(Self::default()),
        };
        let mut bytes =
            image.bytes_from(Svma(address)).ok_or((address, "no unwind table where the header says"))?;
        let section =
            section.filter(|section| section.address == address).map(|section| section.size as usize);
        let size = size.or(section);
        if let Some(size) = size {
            bytes = bytes.get(..size).unwrap_or(bytes);
        }
        let mut frames = Self { address, index: header.and_then(|(_, index)| index), ..Self::default() };
        frames.read(bytes, size.is_some())?;
        Ok(frames)
    }

    fn read(&mut self, bytes: &'d [u8], bounded: bool) -> Result<(), (u64, &'static str)> {
        let address = self.address;
        let mut at = 0;
        while at + 4 <= bytes.len() {
            let mut reader = Reader::new(bytes, at);
            let size = reader.fixed(4).unwrap_or(0);
            if size == 0 && bounded {
                // An end mark; some files have more behind one.
                at += 4;
                continue;
            }
            if size == 0 {
                break;
            }
            let here = address + at as u64;
            let malformed = (here, "a malformed entry of an unwind table");
            let body = reader.at;
            let end = body.checked_add(size as usize).filter(|_| size < 0xffff_fff0);
            let Some(entry) = end.and_then(|end| bytes.get(..end)) else { return Err(malformed) };
            let mut reader = Reader::new(entry, body);
            let back = reader.fixed(4).ok_or(malformed)?;
            if back == 0 {
                self.shared.push(shared(reader, here, address).ok_or(malformed)?);
            } else {
                let to = (address + body as u64).wrapping_sub(back);
                let shared = self.shared.binary_search_by_key(&to, |cie| cie.at).map_err(|_| malformed)?;
                let cie = &self.shared[shared];
                self.list.push(description(reader, here, address, cie, shared as u32).ok_or(malformed)?);
            }
            at = entry.len();
        }
        Ok(())
    }
}

fn shared(mut reader: Reader<'_>, at: u64, base: u64) -> Option<Cie<'_>> {
    let version = reader.byte()?;
    let augmentation = reader.text()?;
    let code_factor = reader.uleb()?;
    let data_factor = reader.sleb()?;
    let return_register = if version == 1 { u64::from(reader.byte()?) } else { reader.uleb()? };
    let mut cie = Cie {
        at,
        version,
        augmentation,
        code_factor,
        data_factor,
        return_register,
        pointers: 0,
        exceptions: None,
        personality: None,
        program: &[],
    };
    if !matches!(version, 1 | 3) {
        return None;
    }
    if let Some(letters) = augmentation.strip_prefix(b"z") {
        let size = reader.uleb()? as usize;
        let end = reader.at.checked_add(size)?;
        for letter in letters {
            match letter {
                b'R' => cie.pointers = reader.byte()?,
                b'L' => cie.exceptions = Some(reader.byte()?),
                b'P' => {
                    let encoding = reader.byte()?;
                    cie.personality = Some((encoding, reader.pointer(encoding & 0x7f, base)?));
                }
                b'S' | b'B' => {}
                _ => return None,
            }
        }
        if reader.at > end {
            return None;
        }
        reader.at = end;
    } else if !augmentation.is_empty() {
        return None;
    }
    cie.program = rest(&mut reader)?;
    Some(cie)
}

fn description<'d>(
    mut reader: Reader<'d>,
    at: u64,
    base: u64,
    cie: &Cie<'d>,
    shared: u32,
) -> Option<Fde<'d>> {
    let start = reader.pointer(cie.pointers, base)?;
    let size = reader.pointer(cie.pointers & 0x0f, base)?;
    let mut exceptions = 0;
    if cie.augmentation.first() == Some(&b'z') {
        let length = reader.uleb()? as usize;
        let end = reader.at.checked_add(length)?;
        if let Some(encoding) = cie.exceptions.filter(|&encoding| encoding != 0xff) {
            exceptions = reader.pointer(encoding, base)?;
        }
        if reader.at > end {
            return None;
        }
        reader.at = end;
    }
    Some(Fde { at, start, size, exceptions, program: rest(&mut reader)?, shared })
}

fn rest<'d>(reader: &mut Reader<'d>) -> Option<&'d [u8]> {
    let size = reader.left()?;
    reader.bytes(size)
}

/// Where the unwind table is, and the index, of `.eh_frame_hdr`.
fn index<'d>(image: &Elf<'d>, address: u64) -> Result<(u64, Option<Index<'d>>), (u64, &'static str)> {
    let malformed = (address, "a malformed unwind header");
    let bytes = image.bytes_from(Svma(address)).ok_or(malformed)?;
    let mut reader = Reader::new(bytes, 0);
    let [Some(1), Some(to), Some(count), Some(table)] = std::array::from_fn(|_| reader.byte()) else {
        return Err(malformed);
    };
    let frames = reader.pointer(to, address).ok_or(malformed)?;
    if count == 0xff || table == 0xff {
        return Ok((frames, None));
    }
    let count = reader.pointer(count, address).ok_or(malformed)?;
    if table != 0x3b {
        return Err(malformed);
    }
    let entries = count.checked_mul(8).and_then(|size| reader.bytes(size as usize)).ok_or(malformed)?;
    Ok((frames, Some(Index { address, entries })))
}

#[cfg(test)]
impl Cie<'static> {
    /// One as compilers write it, with this program.
    pub(crate) fn plain(program: &'static [u8]) -> Self {
        Self {
            at: 0,
            version: 1,
            augmentation: b"zR",
            code_factor: 1,
            data_factor: -8,
            return_register: 16,
            pointers: 0x1b,
            exceptions: None,
            personality: None,
            program,
        }
    }
}
