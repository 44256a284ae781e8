//! The note: the mark of a rewritten file, which leads to its mapping.

use crate::number::{long, word};
use crate::{FormatError, VERSION, mode};

/// The owner of the note by which a rewritten file is known, and its type.
pub const NOTE_OWNER: [u8; 8] = *b"Gleaner\0";
pub const NOTE_TYPE: u32 = 1;
/// Bytes of the note's contents, and of the whole note: three words, its owner, its contents.
pub const NOTE_CONTENTS_SIZE: usize = 48;
pub const NOTE_SIZE: usize = 3 * 4 + NOTE_OWNER.len() + NOTE_CONTENTS_SIZE;

/// What the note says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// One of [`mode`]; a reader may meet one that it does not know.
    pub mode: u32,
    /// Where the mapping is in the file, and its size.
    pub map_offset: u64,
    pub map_size: u64,
    /// The size of the file that was rewritten.
    pub original_size: u64,
    /// Of harvest twins: how many bytes of vector registers are saved at the most.
    pub vector_bytes: u32,
    /// Of twins that go aboard: what budgets are set to.
    pub quantum: u32,
}

impl Note {
    /// Whether its twins hold yields.
    pub fn harvests(&self) -> bool {
        mode::harvests(self.mode)
    }

    /// Whether its twins may run on another program's kernel thread.
    pub fn goes_aboard(&self) -> bool {
        mode::goes_aboard(self.mode)
    }

    /// The whole note, as a `PT_NOTE` segment holds it.
    pub fn encode(&self) -> [u8; NOTE_SIZE] {
        let mut out = Vec::with_capacity(NOTE_SIZE);
        out.extend((NOTE_OWNER.len() as u32).to_le_bytes());
        out.extend((NOTE_CONTENTS_SIZE as u32).to_le_bytes());
        out.extend(NOTE_TYPE.to_le_bytes());
        out.extend(NOTE_OWNER);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.mode.to_le_bytes());
        for number in [self.map_offset, self.map_size, self.original_size] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.vector_bytes.to_le_bytes());
        out.extend(self.quantum.to_le_bytes());
        out.extend([0; 8]);
        out.try_into().expect("as many bytes as a note has")
    }

    /// Whether a note with this owner and type is that of a rewritten file.
    pub fn is_ours(owner: &[u8], kind: u32) -> bool {
        owner == NOTE_OWNER && kind == NOTE_TYPE
    }

    /// Reads a note's contents, owner and type left out. Fields that do not fit together are
    /// [`Self::check`]'s.
    pub fn decode(contents: &[u8]) -> Result<Self, FormatError> {
        let unknown = FormatError { at: 0, what: "the note is of no known version" };
        let (u32_at, u64_at) =
            (|at| word(contents, at).ok_or(unknown), |at| long(contents, at).ok_or(unknown));
        if contents.len() != NOTE_CONTENTS_SIZE || u32_at(0)? != VERSION || u64_at(40)? != 0 {
            return Err(unknown);
        }
        Ok(Self {
            mode: u32_at(4)?,
            map_offset: u64_at(8)?,
            map_size: u64_at(16)?,
            original_size: u64_at(24)?,
            vector_bytes: u32_at(32)?,
            quantum: u32_at(36)?,
        })
    }

    /// Whether width and quantum are such as the mode has.
    pub fn check(&self) -> Result<(), FormatError> {
        const MOST_QUANTUM: u32 = i32::MAX as u32;
        let width_fits =
            if self.harvests() { matches!(self.vector_bytes, 16 | 32 | 64) } else { self.vector_bytes == 0 };
        let quantum_fits =
            if self.goes_aboard() { (1..=MOST_QUANTUM).contains(&self.quantum) } else { self.quantum == 0 };
        if width_fits && quantum_fits {
            Ok(())
        } else {
            Err(FormatError { at: 32, what: "a width or quantum that does not go with the mode" })
        }
    }

    /// The mapping's bytes in the file.
    pub fn mapping<'f>(&self, file: &'f [u8]) -> Result<&'f [u8], FormatError> {
        let end = self.map_offset.checked_add(self.map_size);
        let bytes = end.and_then(|end| file.get(self.map_offset as usize..end as usize));
        bytes.ok_or(FormatError { at: 0, what: "the mapping lies outside the file" })
    }
}
