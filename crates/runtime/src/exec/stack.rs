//! What the kernel puts on a new program's stack: strings, pointers to them, the auxiliary vector.
//! Pure but for the memory it is given.

use core::ffi::CStr;

pub(crate) const AT_NULL: u64 = 0;
pub(crate) const AT_PHDR: u64 = 3;
pub(crate) const AT_PHENT: u64 = 4;
pub(crate) const AT_PHNUM: u64 = 5;
pub(crate) const AT_BASE: u64 = 7;
pub(crate) const AT_ENTRY: u64 = 9;
pub(crate) const AT_SECURE: u64 = 23;
pub(crate) const AT_RANDOM: u64 = 25;
pub(crate) const AT_EXECFN: u64 = 31;

/// A stack that is filled from its top downwards.
pub(crate) struct Stack<'a> {
    memory: &'a mut [u8],
    at: usize,
}

/// It does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StackFull;

impl<'a> Stack<'a> {
    pub(crate) fn new(memory: &'a mut [u8]) -> Self {
        let at = memory.len();
        Self { memory, at }
    }

    fn take(&mut self, size: usize) -> Result<usize, StackFull> {
        self.at = self.at.checked_sub(size).ok_or(StackFull)?;
        Ok(self.at)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<u64, StackFull> {
        let at = self.take(bytes.len())?;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(self.memory.as_ptr() as u64 + at as u64)
    }

    /// Space for `size` bytes of strings, the first of which is the lowest: programs that write
    /// their title over their arguments rely on that.
    pub(crate) fn strings(&mut self, size: usize) -> Result<Strings<'_>, StackFull> {
        let at = self.take(size)?;
        Ok(Strings { memory: &mut self.memory[at..at + size], at: 0 })
    }

    /// Space for `count` words, the first of them where the program's stack pointer will be.
    /// Strings must be there already.
    pub(crate) fn words(&mut self, count: usize) -> Result<&mut [u64], StackFull> {
        self.take(count * 8)?;
        let down = (self.memory.as_ptr() as usize + self.at) % 16;
        self.take(down)?;
        let at = self.at;
        // SAFETY: inside the memory, aligned to 16, and any bytes are numbers.
        Ok(unsafe { core::slice::from_raw_parts_mut(self.memory[at..].as_mut_ptr().cast(), count) })
    }
}

/// Strings, one behind the other.
pub(crate) struct Strings<'a> {
    memory: &'a mut [u8],
    at: usize,
}

impl Strings<'_> {
    /// A string made of pieces, with its zero.
    pub(crate) fn push(&mut self, pieces: &[&[u8]]) -> Result<u64, StackFull> {
        let address = self.memory.as_ptr() as u64 + self.at as u64;
        for piece in pieces.iter().chain(&[&[0][..]]) {
            self.memory.get_mut(self.at..self.at + piece.len()).ok_or(StackFull)?.copy_from_slice(piece);
            self.at += piece.len();
        }
        Ok(address)
    }
}

/// The program's view of itself: argc, argv, envp, auxv, in the order in which they lie.
pub(crate) struct Words<'a> {
    words: &'a mut [u64],
    at: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a mut [u64]) -> Self {
        Self { words, at: 0 }
    }

    pub(crate) fn push(&mut self, word: u64) -> Result<(), StackFull> {
        *self.words.get_mut(self.at).ok_or(StackFull)? = word;
        self.at += 1;
        Ok(())
    }
}

/// Copies strings, and says how many bytes they take.
pub(crate) fn size_of_all<'a>(texts: impl Iterator<Item = &'a CStr>) -> usize {
    texts.map(|text| text.to_bytes_with_nul().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_words_lie_as_the_kernel_lays_them() {
        let mut memory = vec![0xaa_u8; 256];
        let end = memory.as_ptr() as u64 + 256;
        let mut stack = Stack::new(&mut memory);
        let mut strings = stack.strings(7).unwrap();
        assert_eq!(strings.push(&[b"p"]).unwrap(), end - 7);
        let name = strings.push(&[b"A=", b"bc"]).unwrap();
        assert_eq!(name, end - 5);
        assert_eq!(strings.push(&[b""]), Err(StackFull));
        let words = stack.words(3).unwrap();
        assert_eq!(words.as_ptr() as u64 % 16, 0);
        let mut words = Words::new(words);
        for word in [1, name, 0] {
            words.push(word).unwrap();
        }
        assert_eq!(words.push(4), Err(StackFull));
        assert_eq!(&memory[249..], b"p\0A=bc\0");
    }

    #[test]
    fn too_much_is_refused() {
        let mut memory = [0_u8; 16];
        let mut stack = Stack::new(&mut memory);
        assert_eq!(stack.bytes(&[1; 17]), Err(StackFull));
        assert!(Stack::new(&mut [0_u8; 16]).words(3).is_err());
    }
}
