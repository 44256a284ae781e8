//! The watchdog: a process that outlives this one for long enough to put changed settings back.
//!
//! ```text
//! this process                     watchdog (the same binary, started again)
//! start ────────────────────────►  starts a session, takes the lock, and puts back what a
//!                                  killed watchdog left in the journal
//!   ◄───────────────────────────── ready | taken by PID
//! + NUMBER OFFSET FILE ORIGINAL ►  writes it to the journal
//!   ◄───────────────────────────── ok
//! (the setting is changed, and put back)
//! - NUMBER ─────────────────────►  strikes it out
//!   ◄───────────────────────────── ok
//! end of file: done, or dead ───►  puts back what is left, latest first; frees the lock
//! ```
//!
//! Being in a session of its own and deaf to the signals that end programs, it is not reached by
//! Ctrl-C nor by a kill of our process group. The lock is its own, so that it lasts until
//! everything is put back, whichever process died before. If both are killed, the journal is left,
//! and the next one that takes the lock begins by putting back what it says.
//!
//! A program that changes settings calls [`serve_if_asked`] first in its `main`.

use crate::setting_place::SettingPlace;
use crate::sys;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The first argument that makes a program the watchdog; for this program alone.
const WATCHDOG_ARGUMENT: &str = "--gleaner-watchdog";
/// How often, and how far apart, restoring is tried: huge pages of a dying process are free only
/// when it is gone.
const RESTORE_TRIES: u32 = 40;
const RESTORE_PAUSE: Duration = Duration::from_millis(50);
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Why there is no watchdog.
#[derive(Debug)]
pub enum NoWatchdog {
    /// Another process holds the lock, the watchdog of this number.
    Taken(Option<u32>),
    Broken(io::Error),
}

/// Our end of it.
#[derive(Debug)]
pub struct Watchdog {
    journal: PathBuf,
    line: Mutex<WatchdogPipe>,
    numbers: AtomicU64,
}

#[derive(Debug)]
struct WatchdogPipe {
    child: Child,
    /// Taken when it is time to end.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl WatchdogPipe {
    fn ask(&mut self, message: &str) -> io::Result<()> {
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the watchdog is gone");
        self.to.as_mut().ok_or_else(gone)?.write_all(message.as_bytes())?;
        let answer = self.hear()?;
        if answer == "ok" { Ok(()) } else { Err(io::Error::other(format!("the watchdog says: {answer}"))) }
    }

    fn hear(&mut self) -> io::Result<String> {
        let mut answer = String::new();
        if self.from.read_line(&mut answer)? == 0 {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the watchdog is gone"));
        }
        Ok(answer.trim().to_owned())
    }
}

impl Watchdog {
    /// Starts one and waits until it holds the lock.
    pub fn start(journal: &Path) -> Result<Self, NoWatchdog> {
        let mut child = Command::new("/proc/self/exe")
            .arg(WATCHDOG_ARGUMENT)
            .arg(journal)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(NoWatchdog::Broken)?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = BufReader::new(from.expect("its standard output is a pipe"));
        let mut line = WatchdogPipe { child, to, from };
        let heard = line.hear().unwrap_or_default();
        if let Some(("ready", _)) = heard.split_once(' ') {
            return Ok(Self {
                journal: journal.to_owned(),
                line: Mutex::new(line),
                numbers: AtomicU64::new(0),
            });
        }
        // Whatever it says, it is of no use: a program that forgot to call `serve_if_asked` might
        // even go on running.
        let _ = line.child.kill();
        let _ = line.child.wait();
        Err(match heard.split_once(' ') {
            Some(("taken", pid)) => NoWatchdog::Taken(pid.parse().ok()),
            Some(("no", why)) => NoWatchdog::Broken(io::Error::other(why.to_owned())),
            _ => NoWatchdog::Broken(io::Error::other("this program does not answer as a watchdog")),
        })
    }

    pub fn journal(&self) -> &Path {
        &self.journal
    }

    /// Once this returns, the watchdog will put `original` back if we are not there to do it.
    pub fn remember(&self, place: &SettingPlace, original: &[u8]) -> io::Result<u64> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let entry = JournalEntry { number, place: place.clone(), original: original.to_owned() };
        self.line().ask(&entry.line())?;
        Ok(number)
    }

    /// The setting has its original value again.
    pub fn forget(&self, number: u64) {
        if self.line().ask(&format!("- {number}\n")).is_err() {
            // Another process killed it. Its journal has been worked off by now; strike the entry
            // out, unless the journal already belongs to another watchdog.
            if let Ok(mut file) = open_journal(&self.journal) {
                if sys::lock_file(&file).is_ok() && strike_out(&mut file, number).is_err() {
                    let _ = writeln!(io::stderr(), "gleaner: {} cannot be kept", self.journal.display());
                }
            }
        }
    }

    fn line(&self) -> std::sync::MutexGuard<'_, WatchdogPipe> {
        self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Watchdog {
    /// Everything is restored, or the watchdog does it now: so wait for it.
    fn drop(&mut self) {
        let mut line = self.line();
        line.to = None;
        let _ = line.child.wait();
    }
}

/// An original to be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JournalEntry {
    number: u64,
    place: SettingPlace,
    original: Vec<u8>,
}

impl JournalEntry {
    fn line(&self) -> String {
        let offset = self.place.register.map_or("-".to_owned(), |o| o.to_string());
        let file = hex(self.place.file.as_os_str().as_bytes());
        format!("+ {} {offset} {file} {}\n", self.number, hex(&self.original))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (Some("+"), Some(number), Some(offset), Some(file), Some(original), None) =
            (words.next(), words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            return None;
        };
        let register = if offset == "-" { None } else { Some(offset.parse().ok()?) };
        let file = PathBuf::from(std::ffi::OsStr::from_bytes(&unhex(file)?));
        Some(Self {
            number: number.parse().ok()?,
            place: SettingPlace { file, register },
            original: unhex(original)?,
        })
    }

    fn put_back(&self) -> io::Result<()> {
        let mut last = Ok(());
        for attempt in 0..RESTORE_TRIES {
            if attempt > 0 {
                std::thread::sleep(RESTORE_PAUSE);
            }
            last = self.place.write_verified(&self.original);
            match &last {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {}
                _ => break,
            }
        }
        last
    }
}

/// The empty sequence is `.`, so that there is always a word.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::from(if bytes.is_empty() { "." } else { "" });
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text == "." {
        return Some(Vec::new());
    }
    if text.len() % 2 != 0 || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

/// If this process was started to be a watchdog, it is one until its starter is done or dead, and
/// then this returns what to exit with. To be called before anything else.
pub fn serve_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WATCHDOG_ARGUMENT {
        return None;
    }
    let Some(journal) = arguments.next() else { return Some(ExitCode::from(2)) };
    sys::stand_alone();
    Some(serve(Path::new(&journal), &mut io::stdin().lock(), &mut io::stdout().lock()))
}

fn open_journal(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// The journal: the number of the process that holds it, then a line an entry. A last line cut
/// short by a kill was never acknowledged, so nothing was changed for it.
fn read_journal(file: &mut File) -> (Option<u32>, Vec<JournalEntry>) {
    let mut text = String::new();
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut lines = whole.lines();
    let holder = lines.next().and_then(|l| l.parse().ok());
    (holder, lines.filter_map(JournalEntry::parse).collect())
}

fn write_journal(file: &mut File, entries: &[JournalEntry]) -> io::Result<()> {
    let mut text = format!("{}\n", std::process::id());
    for entry in entries {
        text.push_str(&entry.line());
    }
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// Appends: what is written already stays whole, whatever happens meanwhile.
fn append_journal(file: &mut File, entry: &JournalEntry) -> io::Result<()> {
    file.seek(io::SeekFrom::End(0))?;
    file.write_all(entry.line().as_bytes())
}

fn strike_out(file: &mut File, number: u64) -> io::Result<()> {
    let (_, mut entries) = read_journal(file);
    entries.retain(|e| e.number != number);
    write_journal(file, &entries)
}

fn serve(journal: &Path, from: &mut dyn BufRead, to: &mut dyn Write) -> ExitCode {
    let mut say = |text: &str| writeln!(to, "{text}").and_then(|()| to.flush());
    let mut file = match open_journal(journal) {
        Ok(file) => file,
        Err(error) => {
            let _ = say(&format!("no {}: {error}", journal.display()));
            return ExitCode::FAILURE;
        }
    };
    // One that is about to end is waited for.
    let locked = (0..LOCK_TRIES).find_map(|attempt| match sys::lock_file(&file) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock && attempt + 1 < LOCK_TRIES => {
            std::thread::sleep(LOCK_PAUSE);
            None
        }
        done => Some(done),
    });
    if let Some(Err(error)) = locked {
        let _ = match error.kind() {
            io::ErrorKind::WouldBlock => {
                say(&format!("taken {}", read_journal(&mut file).0.map_or("?".to_owned(), |p| p.to_string())))
            }
            _ => say(&format!("no lock on {}: {error}", journal.display())),
        };
        return ExitCode::FAILURE;
    }
    let left = put_back_all(read_journal(&mut file).1, "an earlier run left it changed: ");
    if let Err(error) = write_journal(&mut file, &left) {
        let _ = say(&format!("no {}: {error}", journal.display()));
        return ExitCode::FAILURE;
    }
    let _ = say(&format!("ready {}", std::process::id()));

    let mut entries: Vec<JournalEntry> = Vec::new();
    let mut line = String::new();
    // A line without its end is one whose writer was killed while writing: no change has followed
    // it.
    while from.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
        let text = line.trim_end_matches('\n');
        let done = if let Some(entry) = JournalEntry::parse(text) {
            let appended = append_journal(&mut file, &entry);
            // Remembered in any case: to put back what was never changed does no harm.
            entries.push(entry);
            appended
        } else if let Some(number) = text.strip_prefix("- ").and_then(|n| n.parse::<u64>().ok()) {
            entries.retain(|e| e.number != number);
            let all: Vec<JournalEntry> = left.iter().chain(&entries).cloned().collect();
            write_journal(&mut file, &all)
        } else {
            Err(io::Error::other("not understood"))
        };
        let _ = match done {
            Ok(()) => say("ok"),
            Err(error) => say(&format!("no: {error}")),
        };
        line.clear();
    }
    let mut stuck = put_back_all(entries, "");
    stuck.extend(left);
    let kept = write_journal(&mut file, &stuck);
    if stuck.is_empty() && kept.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Latest first. Returns those that could not be put back, each of which was complained about.
fn put_back_all(entries: Vec<JournalEntry>, remark: &str) -> Vec<JournalEntry> {
    let mut stuck = Vec::new();
    for entry in entries.into_iter().rev() {
        if let Err(error) = entry.put_back() {
            let JournalEntry { place, original, .. } = &entry;
            let _ = writeln!(
                io::stderr(),
                "gleaner: WARNING: {remark}{place} could not be set back to {}: {error}; set it back by hand",
                place.show(original)
            );
            // A setting that is not there any more cannot be wrong any more.
            if error.kind() != io::ErrorKind::NotFound {
                stuck.insert(0, entry);
            }
        }
    }
    stuck
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_the_journal() {
        for (file, register, original) in [
            ("/a b/c\n", None, b"128\n".to_vec()),
            ("/dev/cpu/0/msr", Some(0x1a4), vec![0; 8]),
            ("x", None, vec![]),
        ] {
            let place = SettingPlace { file: file.into(), register };
            let entry = JournalEntry { number: 7, place, original };
            assert_eq!(JournalEntry::parse(entry.line().trim_end_matches('\n')), Some(entry));
        }
        for garbage in
            ["", "+", "+ 1 - zz 00", "+ 1 - 6 00", "+ x - 61 00", "- 3", "+ 1 - 61 00 1", "+ 1 - é 00"]
        {
            assert_eq!(JournalEntry::parse(garbage), None, "{garbage}");
        }
    }

    /// Serves these messages; returns what was answered and what the file then holds.
    fn served(messages: impl Fn(&Path) -> String) -> (String, String) {
        let directory = tempfile::tempdir().unwrap();
        let setting = directory.path().join("setting");
        fs::write(&setting, "changed\n").unwrap();
        let mut said = Vec::new();
        let journal = directory.path().join("journal");
        serve(&journal, &mut messages(&setting).as_bytes(), &mut said);
        assert_eq!(read_journal(&mut open_journal(&journal).unwrap()).1, []);
        (String::from_utf8(said).unwrap(), fs::read_to_string(setting).unwrap())
    }

    fn entry(number: u64, file: &Path, original: &str) -> String {
        JournalEntry { number, place: SettingPlace::text(file), original: original.into() }.line()
    }

    #[test]
    fn what_is_left_at_the_end_is_put_back_and_what_was_struck_out_is_not() {
        let (said, now) = served(|f| entry(0, f, "first\n") + &entry(1, f, "second\n"));
        assert!(said.starts_with("ready ") && said.ends_with("ok\nok\n"), "{said}");
        assert_eq!(now, "first\n", "latest first: the oldest original wins");
        assert_eq!(served(|f| entry(0, f, "old\n") + "- 0\n").1, "changed\n");
        // Cut short by a kill: never acknowledged, so nothing was changed after it.
        assert_eq!(served(|f| entry(0, f, "old\n").trim_end().to_owned()).1, "changed\n");
        assert!(served(|_| "nonsense\n".to_owned()).0.contains("no: not understood"));
    }

    #[test]
    fn a_journal_left_behind_is_worked_off_first() {
        let directory = tempfile::tempdir().unwrap();
        let (setting, journal) = (directory.path().join("setting"), directory.path().join("journal"));
        fs::write(&setting, "changed\n").unwrap();
        fs::write(&journal, format!("12345\n{}+ 1 - 6", entry(0, &setting, "old\n"))).unwrap();
        serve(&journal, &mut io::empty(), &mut io::sink());
        assert_eq!(fs::read_to_string(setting).unwrap(), "old\n");
        assert_eq!(read_journal(&mut open_journal(&journal).unwrap()).1, []);
    }

    #[test]
    fn the_lock_admits_one() {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("journal");
        let mut held = open_journal(&journal).unwrap();
        sys::lock_file(&held).unwrap();
        write_journal(&mut held, &[]).unwrap();
        let mut said = Vec::new();
        serve(&journal, &mut io::empty(), &mut said);
        assert_eq!(String::from_utf8(said).unwrap(), format!("taken {}\n", std::process::id()));
    }
}
