//! `-o FILE`: tried before a long run, so that the run need not end in vain; and nothing is lost if
//! it fails after all.

use crate::failure::{self, Refusal};
use lab::stop::Stop;
use records::machine::Machine;
use records::{Document, Record};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Refuses, before anything is done, a file that cannot be written.
pub(crate) fn check(path: &Path) -> Result<(), Refusal> {
    records::check_writable(path).map_err(|e| refusal(path, &e.why))
}

/// Writes the record; not to `-`, which the console does. Where that fails (a full disk), the
/// record is kept in the directory for temporary files.
pub(crate) fn record<R: Record>(path: &Path, document: &Document<R>) -> Result<(), Refusal> {
    if path.as_os_str() == "-" {
        return Ok(());
    }
    record_or_rescue(path, document, &std::env::temp_dir())
}

fn record_or_rescue<R: Record>(path: &Path, document: &Document<R>, rescue: &Path) -> Result<(), Refusal> {
    let Err(error) = written(path, document, Stop::of_process()) else { return Ok(()) };
    Err(rescued_in(refusal(path, &error.why), document, rescue))
}

/// A pipe's reader may come later than the record: it is waited for, as everywhere, but with a
/// message, and until Ctrl-C.
fn written<R: Record>(path: &Path, document: &Document<R>, stop: Stop) -> Result<(), records::WriteError> {
    let mut told = false;
    loop {
        match records::write_atomically(path, document) {
            Err(error) if error.has_no_reader() && !stop.asked() => {
                if !told {
                    failure::tell(&format!("no program reads the pipe {}; waiting for one", path.display()));
                    told = true;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            done => return done,
        }
    }
}

/// Where the record of a stopped run goes: beside a file that is there already, unless that is the
/// record of another stopped run.
pub(crate) fn beside_finished(path: &Path) -> PathBuf {
    let streams = ["-", "/dev/stdout", "/dev/stderr"].map(Path::new);
    let stream = streams.contains(&path) || path.starts_with("/dev/fd") || path.starts_with("/proc");
    let something = std::fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0);
    if stream || !something || records::read::<Machine>(path).is_ok_and(|old| old.body.run.interrupted) {
        return path.to_owned();
    }
    let mut name = path.file_stem().map_or_else(OsString::new, OsString::from);
    name.push(".interrupted");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    beside_finished(&path.with_file_name(name))
}

/// Keeps a record that would be lost by what is refused, and says where.
pub(crate) fn rescued<R: Record>(refusal: Refusal, document: &Document<R>) -> Refusal {
    rescued_in(refusal, document, &std::env::temp_dir())
}

fn rescued_in<R: Record>(refusal: Refusal, document: &Document<R>, directory: &Path) -> Refusal {
    match keep(directory, document) {
        Some(kept) => refusal.would_help(format!("the record is kept in {}", kept.display())),
        None => refusal,
    }
}

fn refusal(path: &Path, why: &std::io::Error) -> Refusal {
    let refusal = failure::unwritable(format!("cannot write {}", path.display()), why);
    if why.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
        return Refusal { why: "no program reads this pipe".to_owned(), ..refusal };
    }
    refusal
}

/// Writes what is no record, whole or not at all.
pub(crate) fn bytes(path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    records::write_bytes_atomically(path, bytes).map_err(|e| refusal(path, &e.why))
}

/// Writes a program, with this mode.
pub(crate) fn program(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
    records::write_program_atomically(path, bytes, mode).map_err(|e| refusal(path, &e.why))
}

/// Reads a file, and nothing that may never end or never begin.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    let refuse = |why: String| Refusal::wrong_use(path.display().to_string(), why);
    let metadata = std::fs::metadata(path).map_err(|e| refuse(records::plain(&e)))?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(refuse("not a regular file".to_owned()));
    }
    std::fs::read(path).map_err(|e| refuse(records::plain(&e)))
}

/// Makes this directory, and those above it. Returns its name, links followed.
pub(crate) fn directory(path: &Path) -> Result<PathBuf, Refusal> {
    records::create_directory(path).map_err(|error| {
        let refusal = failure::unwritable(format!("cannot create {}", path.display()), &error);
        match error.kind() {
            ErrorKind::AlreadyExists => Refusal { why: "it is not a directory".to_owned(), ..refusal },
            _ => refusal,
        }
    })
}

fn keep<R: Record>(directory: &Path, document: &Document<R>) -> Option<PathBuf> {
    let mut file = tempfile::Builder::new()
        .prefix(&format!("gleaner-{}-", R::KIND))
        .suffix(".json")
        .tempfile_in(directory)
        .ok()?;
    std::io::Write::write_all(&mut file, document.to_json().as_bytes()).ok()?;
    file.as_file().sync_all().ok()?;
    file.keep().ok().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Note {
        text: String,
    }

    impl Record for Note {
        const KIND: &'static str = "note";
        const VERSION: u32 = 1;
        records::body_by_serde!();
    }

    #[test]
    fn what_cannot_be_written_is_kept() {
        let rescue = tempfile::tempdir().unwrap();
        let document = Document::now(Note { text: "six minutes of work".to_owned() });
        let refusal = record_or_rescue(Path::new("/dev/full"), &document, rescue.path()).unwrap_err();
        let told = refusal.to_string();
        let begin = "cannot write /dev/full: No space left on device; the record is kept in ";
        let kept = told.strip_prefix(begin).unwrap_or_else(|| panic!("{told}"));
        assert_eq!(records::read::<Note>(Path::new(kept)).unwrap(), document);
    }

    #[test]
    fn a_stopped_run_replaces_only_another_one_s() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine.json");
        let beside = dir.path().join("machine.interrupted.json");
        assert_eq!(beside_finished(&path), path, "nothing is there");
        std::fs::write(&path, "").unwrap();
        assert_eq!(beside_finished(&path), path, "as good as nothing is there");
        let stopped = include_str!("../../records/fixtures/machine.v1.interrupted.json");
        std::fs::write(&path, stopped).unwrap();
        assert_eq!(beside_finished(&path), path);
        let whole = stopped.replace("\"interrupted\": true", "\"interrupted\": false");
        assert_ne!(whole, stopped);
        for there in [whole.as_str(), "no record at all"] {
            std::fs::write(&path, there).unwrap();
            assert_eq!(beside_finished(&path), beside, "{there:.20}");
            std::fs::write(&beside, stopped).unwrap();
            assert_eq!(beside_finished(&path), beside);
            std::fs::write(&beside, there).unwrap();
            assert_eq!(beside_finished(&path), dir.path().join("machine.interrupted.interrupted.json"));
            std::fs::remove_file(&beside).unwrap();
        }
        for stream in ["-", "/dev/null", "/dev/stdout"] {
            assert_eq!(beside_finished(Path::new(stream)), Path::new(stream));
        }
    }
}
