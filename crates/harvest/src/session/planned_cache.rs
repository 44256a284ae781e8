//! Plans for single files, kept beside what they were made from: of a large program's loads, which
//! are told by the hundred thousand, a plan names a few.

use super::input::InputFile;
use super::terms::Terms;
use records::plan::PlannedModule;
use std::ffi::OsStr;
use store::cache::{Cache, Key, Made};

/// Of an entry's file.
const NAME: &str = "planned";

/// What a file's part of a plan hangs on. None where the plan is to be explained, or says what a
/// user has to know of all loads.
pub(super) fn key(input: &InputFile, terms: &Terms<'_>) -> Option<Key> {
    let Terms { prices, rates, wishes, .. } = *terms;
    if wishes.explained || !wishes.excluded.is_empty() || !rates.is_empty() {
        return None;
    }
    Some(Key::of(&[
        b"planned",
        input.checksums.data.as_bytes(),
        input.checksums.debug.as_bytes(),
        input.role.word().as_bytes(),
        &serde_json::to_vec(prices).ok()?,
        format!("{wishes:?}").as_bytes(),
    ]))
}

/// For the file at this path.
pub(super) fn kept(cache: &Cache, key: &Key, path: &str) -> Option<PlannedModule> {
    let entry = cache.find::<()>(key, OsStr::new(NAME))?;
    let module: PlannedModule = serde_json::from_slice(&std::fs::read(&entry.file).ok()?).ok()?;
    Some(PlannedModule { path: path.to_owned(), ..module })
}

/// What cannot be kept is planned again.
pub(super) fn keep(cache: &Cache, key: &Key, module: &PlannedModule) {
    let made = || Ok::<_, std::io::Error>(Made { bytes: serde_json::to_vec(module)?, note: () });
    let _ = cache.get(key, OsStr::new(NAME), made);
}
