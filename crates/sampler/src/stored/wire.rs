//! Protocol Buffers as they are read here: a file from its beginning to its end, in which only
//! messages without messages of their own are held in memory. What is read may be anything: sizes
//! are not believed, and nothing is reserved before it is there.
//! <https://protobuf.dev/programming-guides/encoding/>

use super::StoredError;
use std::io::{BufRead, ErrorKind, Read};

/// The value of a field of a message in memory. A number may be signed or not, of any width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The same in a stream: bytes are still to be read or skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    Number(u64),
    /// As many.
    Bytes(u64),
}

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Larger messages without messages of their own are in no profile.
const LARGEST_MESSAGE: u64 = 16 << 20;

/// The fields of a message, and what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    pub(super) fn of(message: &'b [u8]) -> Self {
        Self { rest: message }
    }

    fn field(&mut self) -> Option<(u64, Field<'b>)> {
        let tag = varint(&mut self.rest)?;
        let value = match tag & 7 {
            VARINT => Field::Number(varint(&mut self.rest)?),
            EIGHT_BYTES => {
                let (word, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Field::Number(u64::from_le_bytes(*word))
            }
            FOUR_BYTES => {
                let (word, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Field::Number(u32::from_le_bytes(*word).into())
            }
            LENGTH => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Field::Bytes(bytes)
            }
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u64, Field<'b>), StoredError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or_else(|| damaged("a message in it has a field that is cut off or of no known kind")))
    }
}

/// A kind of values and their unit, by the numbers of their texts: alike in both formats.
pub(super) fn value_type(message: &[u8]) -> Result<(u64, u64), StoredError> {
    let mut found = (0, 0);
    for field in Fields::of(message) {
        match field? {
            (1, Field::Number(kind)) => found.0 = kind,
            (2, Field::Number(unit)) => found.1 = unit,
            _ => {}
        }
    }
    Ok(found)
}

/// The numbers of a field of numbers, which stand behind each other or one in each field.
pub(super) fn numbers(field: Field<'_>) -> impl Iterator<Item = Result<u64, StoredError>> {
    let (mut one, mut rest) = match field {
        Field::Number(number) => (Some(number), &[][..]),
        Field::Bytes(bytes) => (None, bytes),
    };
    std::iter::from_fn(move || {
        if let Some(number) = one.take() {
            return Some(Ok(number));
        }
        if rest.is_empty() {
            return None;
        }
        let number = varint(&mut rest);
        if number.is_none() {
            rest = &[];
        }
        Some(number.ok_or_else(|| damaged("a list of numbers in it is cut off")))
    })
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (at, &byte) in rest.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *rest = &rest[at + 1..];
            return Some(value);
        }
    }
    None
}

/// A file that is read once, from its beginning.
pub(super) struct Stream<R> {
    from: R,
    at: u64,
    most: u64,
}

/// Where the outermost message ends: with the file.
pub(super) const FILE: u64 = u64::MAX;

impl<R: BufRead> Stream<R> {
    /// No more than `most` bytes are read.
    pub(super) fn of(from: R, most: u64) -> Self {
        Self { from, at: 0, most }
    }

    /// How many bytes were read so far.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The next field of a message that ends there; none behind its last one.
    pub(super) fn field(&mut self, end: u64) -> Result<Option<(u64, Begun)>, StoredError> {
        if self.at >= end || end == FILE && self.is_at_end()? {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            VARINT => Begun::Number(self.varint()?),
            EIGHT_BYTES => Begun::Number(self.word(8)?),
            FOUR_BYTES => Begun::Number(self.word(4)?),
            LENGTH => Begun::Bytes(self.varint()?),
            _ => return Err(damaged("it has a field of no known kind")),
        };
        let behind = match value {
            Begun::Number(_) => Some(self.at),
            Begun::Bytes(length) => self.at.checked_add(length),
        };
        if behind.is_none_or(|behind| behind > end) {
            return Err(damaged("a message in it is longer than the one around it"));
        }
        Ok(Some((tag >> 3, value)))
    }

    /// All bytes of a message that has begun, in place of what the buffer held.
    pub(super) fn message<'b>(
        &mut self,
        bytes: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], StoredError> {
        if bytes > LARGEST_MESSAGE {
            return Err(damaged(&format!("a message in it says that it has {bytes} bytes")));
        }
        buffer.clear();
        self.count(bytes)?;
        let read = self.from.by_ref().take(bytes).read_to_end(buffer).map_err(|e| unreadable(&e))?;
        if (read as u64) < bytes { Err(cut_off()) } else { Ok(buffer) }
    }

    /// Leaves out that many bytes.
    pub(super) fn skip(&mut self, mut bytes: u64) -> Result<(), StoredError> {
        while bytes > 0 {
            let there = self.from.fill_buf().map_err(|e| unreadable(&e))?.len() as u64;
            if there == 0 {
                return Err(cut_off());
            }
            let now = there.min(bytes);
            self.from.consume(now as usize);
            self.count(now)?;
            bytes -= now;
        }
        Ok(())
    }

    /// The next byte, which is not taken.
    pub(super) fn first(&mut self) -> Result<Option<u8>, StoredError> {
        Ok(self.from.fill_buf().map_err(|e| unreadable(&e))?.first().copied())
    }

    /// Four bytes in front of a message: its length, the highest byte first. None at the end.
    pub(super) fn length_in_front(&mut self) -> Result<Option<u64>, StoredError> {
        if self.is_at_end()? {
            return Ok(None);
        }
        (0..4).try_fold(0, |length, _| Ok(length << 8 | u64::from(self.byte()?))).map(Some)
    }

    /// A line, in place of what the buffer held; whether there was one.
    pub(super) fn line(&mut self, buffer: &mut Vec<u8>, longest: u64) -> Result<bool, StoredError> {
        buffer.clear();
        let read =
            self.from.by_ref().take(longest + 1).read_until(b'\n', buffer).map_err(|e| unreadable(&e))?;
        self.count(read as u64)?;
        if read as u64 > longest {
            return Err(damaged(&format!("a line in it is longer than {}", units::Bytes(longest))));
        }
        Ok(read > 0)
    }

    fn is_at_end(&mut self) -> Result<bool, StoredError> {
        Ok(self.from.fill_buf().map_err(|e| unreadable(&e))?.is_empty())
    }

    fn count(&mut self, bytes: u64) -> Result<(), StoredError> {
        self.at = self.at.saturating_add(bytes);
        if self.at <= self.most {
            return Ok(());
        }
        Err(StoredError::NotRead { why: format!("it holds more than {}", units::Bytes(self.most)) })
    }

    fn byte(&mut self) -> Result<u8, StoredError> {
        let byte = *self.from.fill_buf().map_err(|e| unreadable(&e))?.first().ok_or_else(cut_off)?;
        self.from.consume(1);
        self.count(1)?;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, StoredError> {
        // Most are in the buffer, whole.
        let mut there = self.from.fill_buf().map_err(|e| unreadable(&e))?;
        let before = there.len();
        if let Some(value) = varint(&mut there) {
            let used = before - there.len();
            self.from.consume(used);
            self.count(used as u64)?;
            return Ok(value);
        }
        let mut value = 0_u64;
        for at in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged("a number in it has no end"))
    }

    fn word(&mut self, bytes: u32) -> Result<u64, StoredError> {
        (0..bytes).try_fold(0, |word, at| Ok(word | u64::from(self.byte()?) << (8 * at)))
    }
}

pub(super) fn damaged(why: &str) -> StoredError {
    StoredError::Damaged { why: why.to_owned() }
}

pub(super) fn cut_off() -> StoredError {
    damaged("it is cut off")
}

/// What went wrong while a file was read or decompressed.
pub(super) fn unreadable(error: &std::io::Error) -> StoredError {
    match error.kind() {
        ErrorKind::UnexpectedEof => cut_off(),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => damaged("what it has compressed is damaged"),
        _ => StoredError::NotRead { why: records::plain(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification, with a message in a message and a list.
    const BYTES: &[u8] = b"\x1a\x0c\x08\x96\x01\x12\x07testing\x32\x06\x03\x8e\x02\x9e\xa7\x05";

    #[test]
    fn messages_read_as_the_specification_says() {
        let mut stream = Stream::of(BYTES, 1000);
        let mut buffer = Vec::new();
        let Some((3, Begun::Bytes(12))) = stream.field(FILE).unwrap() else { panic!("the first field") };
        let inner: Vec<_> =
            Fields::of(stream.message(12, &mut buffer).unwrap()).map(Result::unwrap).collect();
        assert_eq!(inner, [(1, Field::Number(150)), (2, Field::Bytes(b"testing"))]);
        let Some((6, Begun::Bytes(6))) = stream.field(FILE).unwrap() else { panic!("the second field") };
        let list = Field::Bytes(stream.message(6, &mut buffer).unwrap());
        assert_eq!(numbers(list).map(Result::unwrap).collect::<Vec<_>>(), [3, 270, 86942]);
        assert_eq!(numbers(Field::Number(7)).map(Result::unwrap).collect::<Vec<_>>(), [7]);
        assert_eq!(stream.field(FILE).unwrap(), None);
        assert_eq!(stream.at(), BYTES.len() as u64);
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_refused() {
        let read_all = |bytes: &[u8], most: u64| -> Result<(), StoredError> {
            let mut stream = Stream::of(bytes, most);
            let mut buffer = Vec::new();
            while let Some((_, value)) = stream.field(FILE)? {
                if let Begun::Bytes(length) = value {
                    for field in Fields::of(stream.message(length, &mut buffer)?) {
                        field?;
                    }
                }
            }
            Ok(())
        };
        for length in 1..BYTES.len() {
            assert_eq!(read_all(&BYTES[..length], 1000).is_ok(), length == 14, "{length}");
        }
        let says = |bytes: &[u8], most| read_all(bytes, most).unwrap_err().to_string();
        assert!(says(BYTES, 10).contains("more than 10 B"), "{}", says(BYTES, 10));
        assert!(
            says(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 1000).contains("9223372036854775807 bytes")
        );
        assert!(says(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1000).contains("longer than"));
        assert!(says(&[0xff; 20], 1000).contains("no end"));
        assert!(says(b"\x0b", 1000).contains("no known kind"));
    }

    #[test]
    fn a_message_does_not_reach_beyond_the_one_around_it() {
        let mut stream = Stream::of(BYTES, 1000);
        stream.field(FILE).unwrap();
        assert_eq!(stream.field(stream.at() + 3).unwrap(), Some((1, Begun::Number(150))));
        assert_eq!(stream.field(stream.at()).unwrap(), None);
        assert!(stream.field(stream.at() + 4).is_err(), "seven bytes are no part of four");
    }
}
