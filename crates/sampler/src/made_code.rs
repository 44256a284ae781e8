//! The maps of code that programs make while they run: `/tmp/perf-PID.map`, as `perf` reads them.
//!
//! Any user can write any file to `/tmp`. So a map counts only if it is a regular file
//! that the program's user or root owns, and that was written since the program began: numbers of
//! processes are used again. It is opened while the program runs, since a container's `/tmp` goes
//! with it, and read at the end, when it is complete.
//!
//! ```text
//! asked      what runtimes are asked for, so that they tell
//! pages      the bytes of such code, read while the program runs
//! functions  names and bytes put together: what was sampled
//! dumps      code that a runtime itself writes down, with its lines
//! ```

mod asked;
mod dumps;
mod functions;
mod pages;

pub(crate) use asked::Asked;
pub(crate) use functions::functions;
pub(crate) use pages::Pages;

use insight::MadeCode;
use insight::samples::Tally;
use records::run::Refused;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Of a larger map the rest is not read.
const LARGEST_BYTES: u64 = 256 << 20;
/// A longer line is none.
const LONGEST_LINE: u64 = 64 << 10;
/// Maps that are open at a time; the others are looked for at the end.
const MOST_OPEN: usize = 64;
/// The clock of files goes by ticks, and the start of a process is known by hundredths of a second.
const TOLERANCE: Duration = Duration::from_secs(2);
const ROOT: u32 = 0;

/// The processes that may run code of their own making, and the maps of it.
#[derive(Debug)]
pub(crate) struct Maps {
    makers: BTreeMap<u32, Maker>,
    /// Dumps of code that processes have mapped, as the format asks for.
    dumps: BTreeMap<u32, PathBuf>,
    /// Those that are deleted already.
    deleted: BTreeMap<u32, File>,
    began: SystemTime,
    open: usize,
}

#[derive(Debug)]
struct Maker {
    user: u32,
    began: SystemTime,
    /// Its number in its own name space, which names its map.
    own_number: u32,
    map: Option<File>,
}

impl Default for Maps {
    fn default() -> Self {
        Self {
            makers: BTreeMap::new(),
            dumps: BTreeMap::new(),
            deleted: BTreeMap::new(),
            began: SystemTime::now(),
            open: 0,
        }
    }
}

impl Maps {
    /// A process has executable memory that is of no file.
    pub(crate) fn expect(&mut self, process: u32) {
        let began = self.began;
        self.makers.entry(process).or_insert_with(|| Maker::of(process, began));
    }

    /// A process has mapped a file; a dump of code says by that where it is.
    pub(crate) fn mapped(&mut self, process: u32, path: &[u8]) {
        let path = std::path::Path::new(OsStr::from_bytes(path));
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if name.starts_with("jit-") && name.ends_with(".dump (deleted)") {
            self.deleted.extend(deleted(process).map(|dump| (process, dump)));
            self.expect(process);
        }
        let is_dump = name.strip_prefix("jit-").is_some_and(|name| name.strip_suffix(".dump").is_some());
        if path.is_absolute() && is_dump {
            self.dumps.insert(process, path.to_owned());
            self.expect(process);
        }
    }

    /// A process writes a dump to this file.
    pub(crate) fn dumps_to(&mut self, process: u32, path: &std::path::Path) {
        self.dumps.insert(process, path.to_owned());
        self.expect(process);
    }

    /// For the same processes, without what is open.
    pub(crate) fn of_the_same(&self) -> Self {
        let mut next = Self::default();
        for &process in
            self.makers.keys().filter(|process| PathBuf::from(format!("/proc/{process}")).exists())
        {
            next.expect(process);
        }
        next
    }

    /// Opens the maps that are there by now.
    pub(crate) fn look(&mut self) {
        for (&process, maker) in self.makers.iter_mut().filter(|(_, maker)| maker.map.is_none()) {
            if self.open == MOST_OPEN {
                return;
            }
            maker.map = maker.inside(process);
            self.open += usize::from(maker.map.is_some());
        }
    }

    /// The names of what was sampled.
    pub(crate) fn names(mut self, tally: &Tally) -> MadeCode {
        let mut names = MadeCode::default();
        for (process, asked) in MadeCode::asked_for(tally) {
            let Some(maker) = self.makers.get_mut(&process) else { continue };
            let map = maker.map.take().or_else(|| maker.inside(process)).or_else(|| maker.outside(process));
            if let Some(map) = map {
                let name = format!("/tmp/perf-{}.map", maker.own_number);
                read(map, |line| names.line(process, &asked, &name, line));
            }
            let dump = self.dumps.get(&process).and_then(|path| {
                let dump = maker.checked(open(path, flags(), Mode::empty()).ok()?.into());
                dump.zip(Some(path.to_str()?.to_owned()))
            });
            let deleted = self.deleted.remove(&process).and_then(|dump| maker.checked(dump));
            let deleted = deleted.map(|dump| (dump, format!("jit-{}.dump", maker.own_number)));
            for (dump, path) in dump.into_iter().chain(deleted) {
                let path = path.as_str();
                // It ends where the runtime stopped writing, in the middle of a record or not.
                let _ = dumps::read(dump, process, &asked, path, &mut names);
            }
        }
        names
    }
}

impl Maker {
    /// What can be known of a process, which may have ended.
    fn of(process: u32, since: SystemTime) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let field = |name: &str, index: Option<usize>| -> Option<u32> {
            let mut words = status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
            let word = match index {
                Some(index) => words.nth(index),
                None => words.next_back(),
            };
            word?.parse().ok()
        };
        Self {
            // Real, effective, …
            user: field("Uid:", Some(1)).unwrap_or_else(|| rustix::process::geteuid().as_raw()),
            began: began(process).unwrap_or(since),
            own_number: field("NSpid:", None).unwrap_or(process),
            map: None,
        }
    }

    /// The map as the process itself names it: below its own root.
    fn inside(&self, process: u32) -> Option<File> {
        let root = open(format!("/proc/{process}/root"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let path = format!("tmp/perf-{}.map", self.own_number);
        // A link in there cannot lead outside; the last name must not be a link at all.
        let map = openat2(root.ok()?, path, flags(), Mode::empty(), ResolveFlags::IN_ROOT);
        self.checked(map.ok()?.into())
    }

    /// The map of a process that has ended, or whose root may not be looked into.
    fn outside(&self, process: u32) -> Option<File> {
        let path = PathBuf::from(format!("/tmp/perf-{process}.map"));
        self.checked(open(path, flags(), Mode::empty()).ok()?.into())
    }

    /// Only what this process, or root, has written there.
    fn checked(&self, map: File) -> Option<File> {
        let about = map.metadata().ok()?;
        let is_of_user = about.uid() == self.user || about.uid() == ROOT;
        let is_new = about.modified().is_ok_and(|written| written + TOLERANCE >= self.began);
        (about.is_file() && is_of_user && is_new).then_some(map)
    }
}

/// The dump that a process has deleted, and writes all the same.
fn deleted(process: u32) -> Option<File> {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let is_it = |path: &PathBuf| {
        let to = std::fs::read_link(path).unwrap_or_default();
        let name = to.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("jit-") && name.ends_with(".dump (deleted)")
    };
    let path = entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_it)?;
    Some(open(path, flags() - OFlags::NOFOLLOW, Mode::empty()).ok()?.into())
}

/// A pipe must not stop the profiler.
fn flags() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// When a process began, by the clock of files.
fn began(process: u32) -> Option<SystemTime> {
    /// Of the fields behind the name, which may hold spaces.
    const START_TIME: usize = 19;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let ticks: u64 = text.rsplit_once(") ")?.1.split(' ').nth(START_TIME)?.parse().ok()?;
    let since_boot = ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let ago = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9 - since_boot;
    SystemTime::now().checked_sub(Duration::try_from_secs_f64(ago.max(0.0)).ok()?)
}

/// Each line of a map.
fn read(map: File, mut each: impl FnMut(&[u8])) {
    let mut reader = BufReader::new(map.take(LARGEST_BYTES));
    let mut line = Vec::new();
    let mut is_begun = false;
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = line.last() == Some(&b'\n');
        // The last line may lack its end: it is being written, or the file is cut off.
        if !is_begun && is_whole {
            each(&line);
        }
        is_begun = !is_whole;
    }
}

/// Less of all samples is not worth a word.
const WORTH_A_WORD: f64 = 0.01;

/// Says how names are had for code that has none.
pub(crate) fn refusal(names: &MadeCode, tally: &Tally) -> Option<Refused> {
    let unnamed = names.unnamed(tally);
    let samples: u64 = unnamed.values().sum();
    let share = samples as f64 / tally.samples.max(1) as f64;
    if share < WORTH_A_WORD {
        return None;
    }
    let named = |process: &u32| Some((*process, &tally.processes.get(process)?.name));
    let programs: BTreeMap<u32, String> = unnamed
        .keys()
        .filter_map(named)
        .map(|(process, name)| (process, String::from_utf8_lossy(name).into_owned()))
        .collect();
    let runs_on = |process: u32| PathBuf::from(format!("/proc/{process}")).exists();
    Some(Refused {
        what: "names of code made at run time".to_owned(),
        why: format!(
            "{:.1}% of the samples are in code that the program made itself, which no /tmp/perf-PID.map describes",
            100.0 * share
        ),
        would_help: Some(help(&programs, runs_on)),
    })
}

/// How runtimes are asked for a map, by what names of their processes begin with.
const OPTIONS: [(&[&str], &str); 5] = [
    (&["node", "MainThread", "chrome", "electron"], "node --perf-basic-prof"),
    (
        &[JAVA],
        "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit, or jcmd PID Compiler.perfmap",
    ),
    (&["python"], "python3 -X perf (from 3.12 on)"),
    (&["php"], "php -d opcache.jit_debug=16"),
    (&["dotnet"], "DOTNET_PerfMapEnabled=1"),
];

/// Java writes one whenever it is asked to; the others must be asked as they begin.
const JAVA: &str = "java";

fn help(programs: &BTreeMap<u32, String>, runs_on: impl Fn(u32) -> bool) -> String {
    let java = programs.iter().find(|(process, program)| program.starts_with(JAVA) && runs_on(**process));
    if let Some((process, _)) = java {
        return format!(
            "run jcmd {process} Compiler.perfmap as the user of that process (JDK 17 or later), then profile it again; \
             from the start on: java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
        );
    }
    let is_of = |beginnings: &[&str]| {
        programs.values().any(|program| beginnings.iter().any(|beginning| program.starts_with(beginning)))
    };
    let mut options: Vec<&str> =
        OPTIONS.iter().filter(|(beginnings, _)| is_of(beginnings)).map(|(_, option)| *option).collect();
    if options.is_empty() {
        options = OPTIONS.iter().map(|(_, option)| *option).collect();
    }
    format!("the runtime's option that writes one: {}", options.join("; "))
}

/// Names of memory that processes share: it has a number like a file's, and no file.
const SHARED_MEMORY: [&[u8]; 4] = [b"/dev/zero", b"/anon_hugepage", b"/memfd:", b"/SYSV"];

/// Whether a mapping of this name is of memory, and not of a file.
pub(crate) fn is_memory(name: &[u8]) -> bool {
    SHARED_MEMORY.iter().any(|memory| name.starts_with(memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn maker() -> Maker {
        let process = std::process::id();
        Maker::of(process, SystemTime::now())
    }

    #[test]
    fn this_process_is_known() {
        let maker = maker();
        assert_eq!(maker.user, rustix::process::geteuid().as_raw());
        let age = maker.began.elapsed().expect("it began before");
        assert!(age < Duration::from_secs(24 * 3600), "{age:?}");
        let gone = Maker::of(u32::MAX, maker.began);
        assert_eq!((gone.own_number, gone.began), (u32::MAX, maker.began));
    }

    #[test]
    fn only_regular_files_of_the_user_that_are_new_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        std::fs::write(&path, "1000 10 name\n").unwrap();
        let opened = |path: &Path| open(path, flags(), Mode::empty()).map(File::from);
        let maker = maker();
        assert!(maker.checked(opened(&path).unwrap()).is_some());
        let other = Maker { user: maker.user + 1, ..self::maker() };
        assert_eq!(other.checked(opened(&path).unwrap()).is_some(), maker.user == ROOT);
        let later = Maker { began: SystemTime::now() + Duration::from_secs(60), ..self::maker() };
        assert!(later.checked(opened(&path).unwrap()).is_none(), "of a process before it");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(opened(&link).is_err());
        assert!(maker.checked(opened(folder.path()).unwrap()).is_none());
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(maker.checked(opened(&pipe).unwrap()).is_none(), "and it does not wait");
    }

    #[test]
    fn what_runs_on_can_still_be_asked() {
        let programs = BTreeMap::from([(7, "java".to_owned()), (8, "node".to_owned())]);
        let told = help(&programs, |process| process == 7);
        assert!(told.starts_with("run jcmd 7 Compiler.perfmap") && !told.contains("node"), "{told}");
        let told = help(&programs, |_| false);
        assert!(told.contains("node --perf-basic-prof") && told.contains("DumpPerfMapAtExit"), "{told}");
        assert!(!told.contains("jcmd 7"), "{told}");
    }

    #[test]
    fn lines_without_an_end_are_left_out() {
        let mut file = tempfile::tempfile().unwrap();
        let long = vec![b'x'; LONGEST_LINE as usize + 10];
        file.write_all(&[b"1 2 a\n", &long[..], b"\n3 4 b\n5 6 c"].concat()).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut lines = Vec::new();
        read(file, |line| lines.push(String::from_utf8_lossy(line).into_owned()));
        assert_eq!(lines, ["1 2 a\n", "3 4 b\n"]);
    }
}
