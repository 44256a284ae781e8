//! The programs and libraries of this system, one process of `gleaner twin --identity` each, and
//! one with `--poison`: none may crash, none may make what is not proven, and nearly all functions
//! have twins. A sample in every test run; everything when asked for: `cargo test --release -p
//! gleaner-cli --test cli -- survey:: --ignored --nocapture`. `SURVEY_FOLDERS` names other folders,
//! `SURVEY_PART=2/5` the second fifth of what lies there, `SURVEY_GLEANER` another build than this
//! one.
//!
//! To tell of one more thing: a field of [`Survey`], filled in [`Survey::add`].

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One path for each ELF file below a folder; hard links count once.
fn files(folder: &Path, found: &mut BTreeMap<(u64, u64), PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (Ok(kind), Ok(metadata)) = (entry.file_type(), entry.metadata()) else { continue };
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() && is_elf(&entry.path()) {
            found.insert((metadata.dev(), metadata.ino()), entry.path());
        }
    }
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

#[derive(Debug, Default)]
struct Survey {
    rewritten: usize,
    functions: u64,
    twinned: u64,
    instructions: u64,
    instructions_twinned: u64,
    /// Why functions have no twin.
    without: BTreeMap<String, u64>,
    /// Why files were refused, and how many; the reason without what differs between files.
    refused: BTreeMap<String, usize>,
    /// What must not be.
    wrong: Vec<String>,
}

impl Survey {
    fn add(&mut self, path: &Path, mode: &str, folder: &Path) {
        let output = folder.join("rewritten");
        let gleaner = std::env::var("SURVEY_GLEANER");
        let ran = Command::new(gleaner.as_deref().unwrap_or(env!("CARGO_BIN_EXE_gleaner")))
            .arg("twin")
            .args(mode.split(' '))
            .args(["--json", "-q", "-o"])
            .args([&output, path])
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let left = std::fs::remove_file(&output).is_ok();
        let said = String::from_utf8_lossy(&ran.stderr).trim_end().to_owned();
        match (ran.status.code(), left) {
            (Some(0), true) => self.count(&serde_json::from_slice(&ran.stdout).expect("JSON")),
            (Some(2), false) if said.lines().count() == 1 => {
                let why = said.rsplit_once(": ").map_or(said.as_str(), |(_, why)| why);
                *self.refused.entry(why.to_owned()).or_default() += 1;
            }
            (code, _) => self.wrong.push(format!("{}: {code:?}, file left: {left}: {said}", path.display())),
        }
    }

    fn count(&mut self, coverage: &Value) {
        let number = |key: &str| coverage[key].as_u64().unwrap_or_else(|| panic!("no {key}"));
        self.rewritten += 1;
        // Linkage tables are pieces of code, but no functions.
        let stubs = coverage["refusals"]["linkage_stub"].as_u64().unwrap_or(0);
        self.functions += number("functions") - stubs;
        self.twinned += number("functions_twinned");
        self.instructions += number("instructions_known");
        self.instructions_twinned += number("instructions_twinned");
        for (reason, count) in coverage["refusals"].as_object().into_iter().flatten() {
            *self.without.entry(reason.clone()).or_default() += count.as_u64().unwrap_or(0);
        }
    }

    fn merge(mut self, other: Self) -> Self {
        self.rewritten += other.rewritten;
        self.functions += other.functions;
        self.twinned += other.twinned;
        self.instructions += other.instructions;
        self.instructions_twinned += other.instructions_twinned;
        self.wrong.extend(other.wrong);
        for (reason, count) in other.without {
            *self.without.entry(reason).or_default() += count;
        }
        for (reason, count) in other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        self
    }

    /// What a record of a survey holds, in Markdown.
    fn told(&self, mode: &str) -> String {
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let mut text = format!(
            "| {mode} | |\n|---|---|\n| files rewritten and proven | {} |\n| functions twinned | {} of {} ({:.3} %) |\n\
             | instructions twinned | {} of {} ({:.3} %) |\n",
            self.rewritten,
            self.twinned,
            self.functions,
            share(self.twinned, self.functions),
            self.instructions_twinned,
            self.instructions,
            share(self.instructions_twinned, self.instructions),
        );
        for (reason, count) in &self.without {
            text += &format!("| functions without twin: {reason} | {count} |\n");
        }
        for (reason, count) in &self.refused {
            text += &format!("| files refused: {reason} | {count} |\n");
        }
        for wrong in &self.wrong {
            text += &format!("| **wrong** | {wrong} |\n");
        }
        text
    }
}

fn survey(paths: &[PathBuf], mode: &str) -> Survey {
    let (next, whole) = (AtomicUsize::new(0), Mutex::new(Survey::default()));
    // Each process uses every CPU by itself; two at a time hide the parts of it that do not.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                let mut own = Survey::default();
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    own.add(path, mode, folder.path());
                }
                let mut whole = whole.lock().unwrap();
                *whole = std::mem::take(&mut *whole).merge(own);
            });
        }
    });
    whole.into_inner().unwrap()
}

fn all() -> Vec<PathBuf> {
    let folders =
        std::env::var("SURVEY_FOLDERS").unwrap_or_else(|_| "/usr/bin:/usr/sbin:/usr/lib".to_owned());
    let mut found = BTreeMap::new();
    for folder in folders.split(':') {
        files(Path::new(folder), &mut found);
    }
    let mut paths: Vec<PathBuf> = found.into_values().collect();
    paths.sort();
    if let Ok(part) = std::env::var("SURVEY_PART") {
        let (which, of) = part.split_once('/').expect("SURVEY_PART=WHICH/OF");
        let (which, of): (usize, usize) = (which.parse().unwrap(), of.parse().unwrap());
        // Every `of`-th program: large ones lie together.
        paths = paths.into_iter().skip(which - 1).step_by(of).collect();
    }
    assert!(!paths.is_empty(), "no programs in {folders}");
    paths
}

/// `least` of a hundred functions are to have twins.
fn judge(paths: &[PathBuf], mode: &str, least: u64) {
    let survey = survey(paths, mode);
    println!("{}", survey.told(mode));
    assert!(survey.wrong.is_empty(), "{}", survey.wrong.join("\n"));
    assert!(survey.twinned * 100 >= survey.functions * least, "{} of {}", survey.twinned, survey.functions);
}

/// A part may have more than its share of odd files, as one library full of assembly is:
/// `scripts/test-long.sh` asks for 99 of a hundred of all together.
const OF_A_PART: u64 = 94;

fn of_all() -> u64 {
    if std::env::var("SURVEY_PART").is_ok() { OF_A_PART } else { 99 }
}

#[test]
fn a_sample_of_this_system_is_rewritten_and_proven() {
    const LARGEST: u64 = 4 << 20;
    let small = |path: &PathBuf| path.metadata().is_ok_and(|metadata| metadata.len() < LARGEST);
    let paths: Vec<PathBuf> = all().into_iter().filter(small).collect();
    let sample: Vec<PathBuf> = paths.iter().step_by(paths.len().div_ceil(30)).cloned().collect();
    judge(&sample, "--identity", OF_A_PART);
    judge(&sample, "--poison", OF_A_PART);
}

#[test]
#[ignore = "minutes: every program and library of this system"]
fn all_of_this_system_is_rewritten_and_proven() {
    judge(&all(), "--identity", of_all());
}

#[test]
#[ignore = "minutes: every program and library of this system"]
fn all_of_this_system_is_poisoned_and_proven() {
    judge(&all(), "--poison", of_all());
}

/// Yields at every load, in primaries.
#[test]
#[ignore = "minutes: large programs"]
fn yields_at_every_load_are_proven() {
    let names = ["bash", "sqlite3", "redis-server", "gdb", "perl", "git", "python3.11"];
    let paths: Vec<PathBuf> =
        names.iter().map(|name| Path::new("/usr/bin").join(name)).filter(|path| path.exists()).collect();
    for mode in ["--every-load", "--every-load=all"] {
        judge(&paths, mode, 99);
    }
}
