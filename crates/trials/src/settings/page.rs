//! What the preloaded library says that it has done.

use heap::changes::layout::{Done, WORDS};
use std::fs;
use std::path::PathBuf;

/// What a run must have done, or nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Aligned,
    Mapped,
    CodeMoved,
    Placed,
}

/// The page that the library counts in, as a file.
#[derive(Debug)]
pub(crate) struct Page {
    path: PathBuf,
    expected: Vec<Expected>,
}

impl Page {
    pub(crate) fn new(path: PathBuf, expected: Vec<Expected>) -> Self {
        Self { path, expected }
    }

    /// Why the runs so far have changed nothing, if they have not.
    pub(crate) fn did_nothing(&self) -> Option<String> {
        let bytes = fs::read(&self.path).unwrap_or_default();
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        let done = Done::of(&words);
        if done.processes == 0 {
            return Some(
                "no library comes into the program: it is linked statically, or has more rights".to_owned(),
            );
        }
        self.expected.iter().find_map(|&expected| nothing_done(&done, expected)).map(str::to_owned)
    }
}

fn nothing_done(done: &Done, expected: Expected) -> Option<&'static str> {
    let (count, nothing) = match expected {
        Expected::Aligned => {
            (done.aligned, "nothing is allocated there by libc: has the program an allocator of its own?")
        }
        Expected::Mapped => (done.mapped, "the program maps no memory itself that is large enough"),
        Expected::CodeMoved => {
            (done.moved, "no code of two megabytes and more lies together, or the kernel refused to move it")
        }
        Expected::Placed => (done.placed, "the kernel refused it"),
    };
    (count == 0).then_some(nothing)
}
