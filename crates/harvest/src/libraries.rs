//! Libraries that a program looks for beside itself (`$ORIGIN`). The rewritten copy is elsewhere, so its loader is told the places by
//! `LD_LIBRARY_PATH`, and the runtime gives that variable back before the program looks.
//!
//! The loader takes that list for whatever asks for a library, `DT_RUNPATH` for what the program itself asks for; where a library of the
//! system asks for one whose name is found beside the program too, that one is taken. `DT_RPATH` is for all, as the list is.

use image::Image;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The loader's variable.
pub(crate) const VARIABLE: &str = "LD_LIBRARY_PATH";

/// Where libraries are looked for beside a program, made absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Libraries {
    places: Vec<u8>,
    /// Before what the user has in the variable (`DT_RPATH`), or behind it (`DT_RUNPATH`).
    before: bool,
}

/// The places, where there are such; an error where they cannot be written so that the loader takes them from the variable.
pub(crate) fn beside(image: &Image<'_>, file: &Path) -> Result<Option<Libraries>, ()> {
    const DT_RPATH: u64 = 15;
    const DT_RUNPATH: u64 = 29;
    // Who has both is served by the newer one.
    let (list, before) = match (text(image, DT_RUNPATH), text(image, DT_RPATH)) {
        (Some(list), _) => (list, false),
        (None, Some(list)) => (list, true),
        (None, None) => return Ok(None),
    };
    if !list.contains(&b'$') {
        return Ok(None);
    }
    let file = file.canonicalize().map_err(|_| ())?;
    let origin = file.parent().ok_or(())?.as_os_str().as_bytes();
    let places = replaced(&replaced(list, b"${ORIGIN}", origin), b"$ORIGIN", origin);
    // What separates places there, and what else the loader would replace.
    let unwritable = |byte: &u8| matches!(byte, b'$' | b';');
    if origin.contains(&b':') || places.iter().any(unwritable) {
        return Err(());
    }
    Ok(Some(Libraries { places, before }))
}

impl Libraries {
    /// The variable for the loader, beside what the user has there.
    pub(crate) fn with(&self, users: Option<&OsStr>) -> OsString {
        let users = users.filter(|users| !users.is_empty()).map(OsStr::as_bytes);
        let parts = match users {
            None => vec![&self.places[..]],
            Some(users) if self.before => vec![&self.places[..], users],
            Some(users) => vec![users, &self.places[..]],
        };
        OsString::from_vec(parts.join(&b':'))
    }
}

/// The names of the libraries that a program is linked to, but for libc's.
pub(crate) fn needed(image: &Image<'_>) -> Vec<String> {
    const DT_NEEDED: u64 = 1;
    const LIBCS: [&str; 7] = ["libc.", "libm.", "libpthread.", "libdl.", "librt.", "ld-linux", "ld-musl"];
    image
        .dynamic()
        .filter(|&(tag, _)| tag == DT_NEEDED)
        .filter_map(|(_, at)| Some(String::from_utf8_lossy(string(image, at)?).into_owned()))
        .filter(|name| !LIBCS.iter().any(|libcs| name.starts_with(libcs)))
        .collect()
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
            let libraries = Libraries { places: b"/a".to_vec(), before };
            libraries.with(users.map(OsStr::new)).into_string().unwrap()
        };
        assert_eq!([with(true, None), with(false, Some(""))], ["/a", "/a"]);
        assert_eq!([with(true, Some("/u")), with(false, Some("/u"))], ["/a:/u", "/u:/a"]);
    }
}
