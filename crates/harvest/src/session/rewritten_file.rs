//! A rewritten file of a harvest, and how it is found.

use crate::rewrite::Entry;
use records::plan::Role;
use std::path::{Path, PathBuf};

/// One rewritten file, of this original in this role.
#[derive(Debug)]
pub(super) struct RewrittenFile {
    pub(super) original: PathBuf,
    pub(super) role: Role,
    pub(super) entry: Entry,
}

pub(super) fn entry<'e>(files: &'e [RewrittenFile], original: &Path, role: Role) -> Option<&'e Entry> {
    files.iter().find(|file| file.original == original && file.role == role).map(|file| &file.entry)
}
