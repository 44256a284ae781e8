//! Paths in records: JSON has text only, and names of files may be any bytes but zero.
//!
//! What is text stays as it is. A byte that is not stands as `\\xHH`, and so does a backslash that
//! would be read as the begin of that.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as text, from which [`path_of`] makes the very same path.
pub fn text_of(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        let valid = chunk.valid();
        for (at, c) in valid.char_indices() {
            if c == '\\' && escaped(&valid.as_bytes()[at..]).is_some() {
                text.push_str("\\x5c");
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The path that [`text_of`] made this of.
pub fn path_of(text: &str) -> PathBuf {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(&byte) = rest.first() {
        let (byte, taken) = escaped(rest).map_or((byte, 1), |byte| (byte, 4));
        bytes.push(byte);
        rest = &rest[taken..];
    }
    OsString::from_vec(bytes).into()
}

/// The byte that stands as `\xHH` at the begin of these.
fn escaped(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"\\x")?.get(..2)?;
    let digit = |byte: u8| (byte as char).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    Some((digit(digits[0])? * 16 + digit(digits[1])?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn every_path_comes_back() {
        let told = |bytes: &[u8]| {
            let path = Path::new(OsStr::from_bytes(bytes));
            let text = text_of(path);
            assert_eq!(path_of(&text), path, "{text}");
            text
        };
        assert_eq!(told("/usr/bin/é\n x\\y".as_bytes()), "/usr/bin/é\n x\\y");
        assert_eq!(told(b"/a\xff\xc3/b"), "/a\\xff\\xc3/b");
        assert_eq!(told(b"/a\\xff"), "/a\\x5cxff");
        assert_eq!(told(b"/a\\xFF\\x\\x5\\\\x5c"), "/a\\xFF\\x\\x5\\\\x5cx5c");
        assert_ne!(told(b"\xff"), told(b"\\xff"));
        // A backslash ahead of bytes that are no text cannot become an escape by them.
        assert_eq!(told(b"\\\xff\\x\xff4"), "\\\\xff\\x\\xff4");
        for first in 0..=255u8 {
            for second in [b'\\', b'x', b'5', b'c', 0x80, 0xff, first] {
                told(&[b'\\', first, second, b'5', b'c', second, first, b'x', b'5', b'c']);
            }
        }
    }
}
