//! How much a case may take.
//!
//! Memory: what is refused takes no more than four times the size of its files. What is not refused
//! becomes a new file and goes through all phases, in which every instruction has a place of its
//! own: that is bounded by [`PER_BYTE`]; the new file, in which there may be a hole, by itself; and
//! what is put into twins, which has to be there before any of them is written, by their size. All
//! with a little that does not hang on the size. Time: no case of these sizes takes longer than
//! [`LONGEST`], by far; what does has hung.

use crate::targets::{Case, Made};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

const REFUSED_PER_BYTE: usize = 4;
const PER_BYTE: usize = 40;
/// Threads have scratch space, whatever the file.
const REGARDLESS: usize = 2 << 20;
const LONGEST: Duration = Duration::from_secs(120);

pub(crate) fn too_much(case: &Case, accepted: Option<Made>, taken: usize) -> Option<String> {
    let most = REGARDLESS
        + match accepted {
            None => REFUSED_PER_BYTE * case.size(),
            Some(made) => PER_BYTE * case.size() + made.file + made.twins,
        };
    (taken > most).then(|| {
        format!("took {taken} bytes for files of {}: more than {most} (made: {accepted:?})", case.size())
    })
}

/// Ends the process, with the case's number, if it is not dropped in time.
pub(crate) struct Watch(Option<(Sender<()>, JoinHandle<()>)>);

impl Watch {
    pub(crate) fn begin(target: &'static str, number: u64) -> Self {
        let (done, waiting) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            if waiting.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{target}: case {number:#x} does not end (GLEANER_FUZZ_CASE={number:#x})");
                std::process::abort();
            }
        });
        Self(Some((done, thread)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.0.take() {
            drop(done);
            let _ = thread.join();
        }
    }
}
