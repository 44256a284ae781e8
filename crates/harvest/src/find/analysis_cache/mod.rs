//! What was seen of a file, kept beside the rewritten ones: looking through a large program takes
//! longer than most of its runs.
//!
//! Kept is what does not hang on where the file lies, what is wanted of a plan, or what memory
//! costs.

use crate::find::checksums::Checksums;
use crate::plan::{Candidate, Function, Saved, Subject};
use records::plan::{LoadClass, Prefetch, Role};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use store::cache::{Cache, Entry, Key, Made};

/// Of an entry's file.
const NAME: &str = "seen";

/// What the analysis sees in a file with these checksums: it runs now, or ran before.
pub(crate) fn seen<E>(
    cache: &Cache,
    path: &str,
    role: Role,
    checksums: &Checksums,
    mut look: impl FnMut() -> Result<Subject, E>,
) -> Result<Subject, E> {
    let key = key(role, checksums);
    let mut looked = None;
    let entry = cache.get(&key, OsStr::new(NAME), || {
        let subject = look().map_err(Unkept::File)?;
        let made = to_keep(&subject)?;
        looked = Some(subject);
        Ok(made)
    });
    match (looked, entry) {
        (Some(subject), _) => Ok(subject),
        (None, Err(Unkept::File(why))) => Err(why),
        // What cannot be kept can still be seen.
        (None, Err(Unkept::Cache)) => look(),
        (None, Ok(entry)) => of_entry(entry, path, role).map_or_else(look, Ok),
    }
}

/// What the analysis saw in a file when it ran before.
pub(crate) fn kept(cache: &Cache, path: &str, role: Role, checksums: &Checksums) -> Option<Subject> {
    of_entry(cache.find(&key(role, checksums), OsStr::new(NAME))?, path, role)
}

fn of_entry(entry: Entry<Head>, path: &str, role: Role) -> Option<Subject> {
    let rows = std::fs::read(&entry.file).ok()?;
    entry.note.subject(path, role, &rows)
}

fn key(role: Role, Checksums { data, debug }: &Checksums) -> Key {
    Key::of(&[b"seen, with sizes of loops", data.as_bytes(), role.word().as_bytes(), debug.as_bytes()])
}

enum Unkept<E> {
    File(E),
    Cache,
}

impl<E> From<io::Error> for Unkept<E> {
    fn from(_: io::Error) -> Self {
        Self::Cache
    }
}

/// All but the candidates.
#[derive(Serialize, Deserialize)]
struct Head {
    build_id: Option<String>,
    content: String,
    size: units::Bytes,
    functions: usize,
    accesses: usize,
    names: Vec<Function>,
}

/// A candidate, without the names of its fields: there are many.
#[derive(Serialize, Deserialize)]
struct Row(
    u64,
    u32,
    LoadClass,
    Prefetch,
    (u32, Option<u32>),
    Option<u32>,
    (u16, u8, u8, bool),
    u32,
    bool,
    bool,
);

impl From<&Candidate> for Row {
    fn from(c: &Candidate) -> Self {
        Self(
            c.address,
            c.function,
            c.class,
            c.prefetch,
            (c.loop_depth, c.loop_size),
            c.round,
            (c.saved.general, c.saved.vectors, c.saved.masks, c.saved.flags),
            c.group,
            c.same_line,
            c.without_twin,
        )
    }
}

impl From<Row> for Candidate {
    fn from(row: Row) -> Self {
        let Row(
            address,
            function,
            class,
            prefetch,
            (loop_depth, loop_size),
            round,
            (general, vectors, masks, flags),
            group,
            same_line,
            without_twin,
        ) = row;
        Self {
            address,
            function,
            class,
            prefetch,
            loop_depth,
            loop_size,
            round,
            saved: Saved { general, vectors, masks, flags },
            group,
            same_line,
            without_twin,
        }
    }
}

fn to_keep(subject: &Subject) -> io::Result<Made<Head>> {
    let rows: Vec<Row> = subject.candidates.iter().map(Row::from).collect();
    let note = Head {
        build_id: subject.build_id.clone(),
        content: subject.content.clone(),
        size: subject.size,
        functions: subject.functions,
        accesses: subject.accesses,
        names: subject.names.clone(),
    };
    Ok(Made { bytes: serde_json::to_vec(&rows)?, note })
}

impl Head {
    fn subject(self, path: &str, role: Role, rows: &[u8]) -> Option<Subject> {
        let rows: Vec<Row> = serde_json::from_slice(rows).ok()?;
        let candidates: Vec<Candidate> = rows.into_iter().map(Candidate::from).collect();
        let named = |candidate: &Candidate| (candidate.function as usize) < self.names.len();
        candidates.iter().all(named).then_some(())?;
        let Self { build_id, content, size, functions, accesses, names } = self;
        Some(Subject {
            path: path.to_owned(),
            role,
            build_id,
            content,
            size,
            functions,
            accesses,
            names,
            candidates,
        })
    }
}

#[cfg(test)]
mod tests;
