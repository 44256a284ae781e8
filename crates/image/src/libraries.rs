//! Libraries that a program's loader would not find by itself: rewritten ones, and those that a
//! program looks for beside itself (`$ORIGIN`), where its own rewritten copy is not. It is told the
//! places by `LD_LIBRARY_PATH`, and the runtime gives that variable back before the program looks.
//!
//! The loader takes that list for whatever asks for a library, `DT_RUNPATH` for what the program
//! itself asks for; where a library of the system asks for one whose name is found beside the
//! program too, that one is taken. `DT_RPATH` is for all, as the list is.

use crate::elf::Image;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The loader's variable.
pub const VARIABLE: &str = "LD_LIBRARY_PATH";

/// Where libraries are looked for: those beside a program, made absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// Before all else: where rewritten ones are.
    first: Option<Vec<u8>>,
    places: Vec<u8>,
    /// Before what the user has in the variable (`DT_RPATH`), or behind it (`DT_RUNPATH`).
    before: bool,
}

/// The places, where there are such; an error where they cannot be written so that the loader takes
/// them from the variable.
#[expect(clippy::result_unit_err, reason = "what cannot be written has no other reason")]
pub fn beside(image: &Image<'_>, file: &Path) -> Result<Option<Libraries>, ()> {
    let Some((list, before)) = places(image) else { return Ok(None) };
    if !list.contains(&b'$') {
        return Ok(None);
    }
    let file = file.canonicalize().map_err(|_| ())?;
    let origin = file.parent().ok_or(())?.as_os_str().as_bytes();
    let places = from_origin(list, origin);
    if origin.contains(&b':') || places.iter().any(|&byte| unwritable(byte)) {
        return Err(());
    }
    Ok(Some(Libraries { first: None, places, before }))
}

/// Whether the variable can name this directory.
pub fn can_be_named(directory: &Path) -> bool {
    let bytes = directory.as_os_str().as_bytes();
    !bytes.contains(&b':') && !bytes.iter().any(|&byte| unwritable(byte))
}

/// What separates places there, and what else the loader would replace.
fn unwritable(byte: u8) -> bool {
    matches!(byte, b'$' | b';')
}

/// The places where a file says that its libraries are (`DT_RUNPATH`, else `DT_RPATH`), and whether
/// the loader looks there before the places of the variable.
fn places<'i>(image: &Image<'i>) -> Option<(&'i [u8], bool)> {
    const DT_RPATH: u64 = 15;
    const DT_RUNPATH: u64 = 29;
    let newer = text(image, DT_RUNPATH).map(|list| (list, false));
    newer.or_else(|| Some((text(image, DT_RPATH)?, true)))
}

/// The same, alone.
pub fn places_of<'i>(image: &Image<'i>) -> Option<&'i [u8]> {
    places(image).map(|(list, _)| list)
}

impl Libraries {
    /// These, and first of all a directory, which [`can_be_named`].
    pub fn with_first(others: Option<Self>, directory: &Path) -> Self {
        let first = directory.as_os_str().as_bytes().to_vec();
        Self { first: Some(first), ..others.unwrap_or_default() }
    }

    /// The variable for the loader, beside what the user has there.
    pub fn with(&self, users: Option<&OsStr>) -> OsString {
        let users = users.map(OsStr::as_bytes);
        let (places, first) = (Some(&self.places[..]), self.first.as_deref());
        let parts = if self.before { [first, places, users] } else { [first, users, places] };
        // An empty one would be the working directory.
        let parts: Vec<&[u8]> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        OsString::from_vec(parts.join(&b':'))
    }
}

/// The names of the libraries that a program is linked to, but for libc's.
pub fn needed(image: &Image<'_>) -> Vec<String> {
    const LIBCS: [&str; 7] = ["libc.", "libm.", "libpthread.", "libdl.", "librt.", "ld-linux", "ld-musl"];
    let mut names = needed_by(image);
    names.retain(|name| !LIBCS.iter().any(|libcs| name.starts_with(libcs)));
    names
}

/// The names of all libraries that a file asks for.
pub fn needed_by(image: &Image<'_>) -> Vec<String> {
    const DT_NEEDED: u64 = 1;
    image
        .dynamic()
        .filter(|&(tag, _)| tag == DT_NEEDED)
        .filter_map(|(_, at)| Some(String::from_utf8_lossy(string(image, at)?).into_owned()))
        .collect()
}

/// Whether a file may call a function of this name: whether that is among its dynamic strings.
pub fn asks_for(image: &Image<'_>, name: &[u8]) -> bool {
    const DT_STRTAB: u64 = 5;
    const DT_STRSZ: u64 = 10;
    let strings = || {
        let at = units::Svma(image.dynamic_value(DT_STRTAB)?);
        image.bytes_at(at, image.dynamic_value(DT_STRSZ)? as usize)
    };
    strings().is_none_or(|strings| strings.split(|&byte| byte == 0).any(|string| string == name))
}

fn text<'i>(image: &Image<'i>, tag: u64) -> Option<&'i [u8]> {
    string(image, image.dynamic_value(tag)?)
}

/// What stands so far behind the beginning of the dynamic strings.
fn string<'i>(image: &Image<'i>, offset: u64) -> Option<&'i [u8]> {
    const DT_STRTAB: u64 = 5;
    let at = image.dynamic_value(DT_STRTAB)?.checked_add(offset)?;
    image.bytes_from(units::Svma(at))?.split(|&byte| byte == 0).next()
}

/// Places as a file has them that lies there.
pub fn from_origin(places: &[u8], origin: &[u8]) -> Vec<u8> {
    replaced(&replaced(places, b"${ORIGIN}", origin), b"$ORIGIN", origin)
}

fn replaced(text: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        if let Some(behind) = rest.strip_prefix(what) {
            out.extend_from_slice(by);
            rest = behind;
        } else {
            out.push(byte);
            rest = &rest[1..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_where_the_program_is() {
        let replaced = |text: &str| {
            let text = replaced(text.as_bytes(), b"${ORIGIN}", b"/a/bin");
            String::from_utf8(super::replaced(&text, b"$ORIGIN", b"/a/bin")).unwrap()
        };
        assert_eq!(replaced("$ORIGIN:/x:${ORIGIN}/../lib"), "/a/bin:/x:/a/bin/../lib");
        assert_eq!(replaced("$LIB/y"), "$LIB/y");
    }

    #[test]
    fn the_users_places_keep_their_turn() {
        let with = |before, users: Option<&str>| {
            let libraries = Libraries { first: None, places: b"/a".to_vec(), before };
            libraries.with(users.map(OsStr::new)).into_string().unwrap()
        };
        let first = |others| Libraries::with_first(others, Path::new("/t"));
        let beside = Libraries { first: None, places: b"/a".to_vec(), before: true };
        assert_eq!(first(None).with(None), "/t");
        assert_eq!(first(Some(beside)).with(Some(OsStr::new("/u"))), "/t:/a:/u");
        assert!(can_be_named(Path::new("/a b")) && !can_be_named(Path::new("/a:b")));
        assert_eq!([with(true, None), with(false, Some(""))], ["/a", "/a"]);
        assert_eq!([with(true, Some("/u")), with(false, Some("/u"))], ["/a:/u", "/u:/a"]);
    }
}
