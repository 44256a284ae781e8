//! What trace twins write down: where in a thread's memory the code finds its words, and the layout
//! of an entry. `docs/twin-format.md` has the code itself.
//!
//! The words lie in the part of glibc's thread control block that glibc keeps free and that every
//! thread has (`tcbhead_t`: 512 bytes from `fs:0x80` on, once for the registers of lazy binding). A
//! thread that nobody has set up finds zeros there and writes nothing down.

/// Of `fs`: two registers while inserted code runs, and where the writing of a full chunk returns.
pub const FIRST: u32 = 0x80;
pub const SECOND: u32 = 0x88;
pub const RETURN: u32 = 0x90;
/// Where the next entry goes; a multiple of [`CHUNK_BYTES`] if the chunk is full, or there is none.
pub const CURSOR: u32 = 0x98;
/// What takes a full chunk and sets the cursor anew; 0 while this thread writes nothing down.
pub const FULL: u32 = 0xa0;

/// A chunk begins at a multiple of its size, and its first entry stays free.
pub const CHUNK_BYTES: usize = 1 << 16;
/// An address, and a place.
pub const ENTRY_BYTES: usize = 16;

/// The number in a place that says: the address is the count of a string instruction, RCX.
pub const COUNT: u8 = 15;

/// What accessed memory: the address of an instruction in the file, the number of the module, and
/// which of the instruction's accesses it is. An instruction is never at address 0, so no place is
/// 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub address: u32,
    pub module: u16,
    pub access: u8,
}

impl Place {
    pub const fn encode(self) -> u64 {
        self.address as u64 | (self.module as u64) << 32 | (self.access as u64) << 48
    }

    pub const fn decode(word: u64) -> Self {
        Self { address: word as u32, module: (word >> 32) as u16, access: (word >> 48) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Place { address: 0xdead_beef, module: 513, access: COUNT };
        assert_eq!(place.encode(), 0x000f_0201_dead_beef);
        assert_eq!(Place::decode(place.encode()), place);
    }
}
