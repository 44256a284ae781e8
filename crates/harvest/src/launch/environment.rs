//! The whole environment, for the primary. The standard library keeps it as a map, which has no
//! space for a name that occurs twice or for an entry that is no assignment. Such entries go along
//! in variables of their own, and the runtime puts them back.

use runtime_abi::control::ASIDE;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// All entries of this process's environment, in their order.
pub(super) fn whole() -> Vec<OsString> {
    let known: Vec<OsString> = std::env::vars_os().map(|(name, value)| assignment(&name, &value)).collect();
    match std::fs::read("/proc/self/environ") {
        // What this process began with; not if it was changed since.
        Ok(block) => Some(entries(&block)).filter(|all| assignments(all).eq(&known)).unwrap_or(known),
        Err(_) => known,
    }
}

/// Variables that bring the primary the entries that a map has no space for. Of two entries with a
/// name in `replaced` the first counts, else the last.
pub(super) fn aside(replaced: &[&str]) -> Vec<(String, OsString)> {
    let all = whole();
    let lost = lost(&all, replaced);
    lost.into_iter().enumerate().map(|(number, text)| (format!("{ASIDE}{number}"), text.to_owned())).collect()
}

pub(super) fn assignment(name: &OsStr, value: &OsStr) -> OsString {
    let mut text = name.to_owned();
    text.push("=");
    text.push(value);
    text
}

fn entries(block: &[u8]) -> Vec<OsString> {
    let texts = block.split_inclusive(|byte| *byte == 0);
    texts.map(|text| OsString::from_vec(text.strip_suffix(b"\0").unwrap_or(text).to_vec())).collect()
}

/// A name may begin with the sign that ends it.
fn name(text: &OsStr) -> Option<&[u8]> {
    let bytes = text.as_bytes();
    let sign = bytes.iter().skip(1).position(|byte| *byte == b'=')? + 1;
    Some(&bytes[..sign])
}

fn assignments(all: &[OsString]) -> impl Iterator<Item = &OsString> {
    all.iter().filter(|text| name(text).is_some())
}

fn lost<'a>(all: &'a [OsString], replaced: &[&str]) -> Vec<&'a OsStr> {
    let is_lost = |(index, text): &(usize, &'a OsString)| {
        let Some(name) = self::name(text) else { return true };
        let first_counts = replaced.iter().any(|replaced| replaced.as_bytes() == name);
        let others = if first_counts { &all[..*index] } else { &all[index + 1..] };
        others.iter().any(|other| self::name(other) == Some(name))
    };
    all.iter().enumerate().filter(is_lost).map(|(_, text)| text.as_os_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_map_has_no_place_for_is_lost() {
        let all = entries(b"A=1\0none\0A=2\0\0=B=3\0L=4\0A=2\0L=5\0");
        let texts =
            |texts: Vec<&OsStr>| texts.iter().map(|t| t.to_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(texts(lost(&all, &[])), ["A=1", "none", "A=2", "", "L=4"]);
        assert_eq!(texts(lost(&all, &["L", "M"])), ["A=1", "none", "A=2", "", "L=5"]);
        assert_eq!(assignments(&all).count(), 6);
        assert!(entries(b"").is_empty());
    }
}
