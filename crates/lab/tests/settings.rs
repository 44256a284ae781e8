//! Settings are put back: at the end, on a panic, on SIGKILL at any moment, and when the kernel
//! grants less than asked.
//!
//! This program is also the victim (`victim DIRECTORY`) that changes settings until it is killed,
//! and the watchdog.

#![allow(clippy::zombie_processes, reason = "a test that fails before it has waited ends the program")]

use gleaner_lab as lab;
use lab::rigs::{Rig, SharedSetting, WithSettingRig};
use lab::settings::{Change, SettingError, SettingPlace, reserve_huge_pages, reserve_huge_pages_under};
use libtest_mimic::{Arguments, Failed, Trial};
use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::Duration;
use testkit::wait_until;
use units::Bytes;

const FILES: usize = 4;
const ORIGINAL: &str = "original\n";
const KILLS: u64 = 60;
/// For what a watchdog does within milliseconds where the processors are free.
const LIMIT: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    if let Some(exit) = lab::watchdog::serve_if_asked() {
        return exit;
    }
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|w| w == "victim") {
        victim(Path::new(&words[2]));
    }
    let trials = vec![
        Trial::test("put_back_at_the_end_and_on_a_panic", put_back_at_the_end_and_on_a_panic),
        Trial::test("put_back_after_sigkill_at_any_moment", put_back_after_sigkill_at_any_moment),
        Trial::test("put_back_after_a_kill_of_the_whole_group", put_back_after_a_kill_of_the_whole_group),
        Trial::test("a_second_process_is_refused", a_second_process_is_refused),
        Trial::test("a_killed_watchdog_is_noticed", a_killed_watchdog_is_noticed),
        Trial::test("registers_keep_their_neighbours", registers_keep_their_neighbours),
        Trial::test("rigs_run_under_their_setting", rigs_run_under_their_setting),
        Trial::test("what_cannot_be_put_back_is_said", what_cannot_be_put_back_is_said),
        Trial::test("huge_pages_under_a_root", huge_pages_under_a_root),
        Trial::test("huge_pages_of_this_kernel", huge_pages_of_this_kernel),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn journal(directory: &Path) -> std::path::PathBuf {
    directory.join("state/journal")
}

fn change(directory: &Path, name: &str) -> Result<Change, SettingError> {
    Change::with_journal(SettingPlace::text(directory.join(name)), &journal(directory))
}

fn prepare() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for i in 0..FILES {
        fs::write(directory.path().join(format!("setting{i}")), ORIGINAL).unwrap();
    }
    directory
}

/// Changes and restores settings in all orders, for ever.
fn victim(directory: &Path) -> ! {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: no handler is installed, only the default action; a shell's background jobs
        // inherit that SIGINT is ignored.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    for round in 0_u64.. {
        let changes: Vec<Change> = (0..FILES)
            .filter(|i| (round >> i) & 1 == 0)
            .map(|i| change(directory, &format!("setting{i}")).expect("the victim may change its own files"))
            .collect();
        for (i, change) in changes.iter().enumerate() {
            change.set(format!("changed {round} {i}\n").as_bytes()).expect("it may be written");
            if round == 0 && i == 0 {
                println!("changed");
            }
        }
    }
    unreachable!("rounds do not end")
}

fn start_victim(directory: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("victim").arg(directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "changed\n", "the victim must have begun");
    child
}

/// The watchdog is through when it gives the lock back, which is when the next one may begin.
fn all_original(directory: &Path) -> Result<(), Failed> {
    wait_until("the lock is given back", LIMIT, || change(directory, "setting0").is_ok());
    for i in 0..FILES {
        let now = fs::read_to_string(directory.join(format!("setting{i}")))?;
        if now != ORIGINAL {
            return Err(format!("setting{i} is {now:?}").into());
        }
    }
    Ok(())
}

fn put_back_at_the_end_and_on_a_panic() -> Result<(), Failed> {
    let directory = prepare();
    let path = directory.path();
    {
        let changed = change(path, "setting0")?;
        let now = changed.set(b"other\n")?;
        assert_eq!(now, b"other\n");
        assert_eq!(fs::read_to_string(path.join("setting0"))?, "other\n");
    }
    all_original(path)?;
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let panicked = std::panic::catch_unwind(|| {
        let changed = change(path, "setting1").unwrap();
        changed.set(b"other\n").unwrap();
        panic!("on purpose");
    });
    std::panic::set_hook(hook);
    assert!(panicked.is_err());
    all_original(path)
}

fn put_back_after_sigkill_at_any_moment() -> Result<(), Failed> {
    let directory = prepare();
    for i in 0..KILLS {
        let mut child = start_victim(directory.path());
        // Spread over a few rounds of the victim, in no simple ratio to them.
        std::thread::sleep(Duration::from_micros(i * 7919 % 6000));
        child.kill()?;
        child.wait()?;
        all_original(directory.path())?;
    }
    Ok(())
}

fn put_back_after_a_kill_of_the_whole_group() -> Result<(), Failed> {
    let directory = prepare();
    for signal in ["KILL", "INT", "TERM"] {
        let mut child = start_victim(directory.path());
        let group = format!("-{}", child.id());
        assert!(testkit::kill(signal, &group));
        child.wait()?;
        all_original(directory.path())?;
    }
    Ok(())
}

fn a_second_process_is_refused() -> Result<(), Failed> {
    let directory = prepare();
    let mut child = start_victim(directory.path());
    // The victim lets go of the lock between its rounds, so stop it where it holds it.
    wait_until("the victim holds the lock while it stands still", LIMIT, || {
        let pid = child.id().to_string();
        let _ = testkit::kill("STOP", &pid);
        let held = change(directory.path(), "setting0");
        let refused = matches!(held, Err(SettingError::InUse(Some(_))));
        drop(held);
        if !refused {
            let _ = testkit::kill("CONT", &pid);
        }
        refused
    });
    let error = change(directory.path(), "setting3").unwrap_err().to_string();
    assert!(error.contains("another process is changing settings"), "{error}");
    child.kill()?;
    child.wait()?;
    all_original(directory.path())
}

fn a_killed_watchdog_is_noticed() -> Result<(), Failed> {
    let directory = prepare();
    let path = directory.path();
    let changed = change(path, "setting0")?;
    changed.set(b"other\n")?;
    let watchdog = fs::read_to_string(journal(path))?.lines().next().unwrap_or_default().to_owned();
    assert!(testkit::kill("KILL", &watchdog));
    wait_until("the next change is refused", LIMIT, || {
        matches!(change(path, "setting1"), Err(SettingError::NoWatchdog(..)))
    });
    drop(changed);
    all_original(path)
}

fn registers_keep_their_neighbours() -> Result<(), Failed> {
    let directory = prepare();
    let msr = directory.path().join("dev/cpu/3/msr");
    fs::create_dir_all(msr.parent().unwrap())?;
    fs::write(&msr, [7_u8; 0x200])?;
    {
        let place = SettingPlace::msr(directory.path(), 3, 0x1a4);
        let changed = Change::with_journal(place, &journal(directory.path()))?;
        assert_eq!(changed.original(), [7; 8]);
        changed.set(&0xf_u64.to_le_bytes())?;
        let now = fs::read(&msr)?;
        assert_eq!((now[0x1a3], &now[0x1a4..0x1ac], now[0x1ac]), (7, &0xf_u64.to_le_bytes()[..], 7));
    }
    assert_eq!(fs::read(&msr)?, [7; 0x200]);
    Ok(())
}

/// What a rig sees of the setting when it runs.
struct Reader(std::path::PathBuf, Rc<RefCell<Vec<String>>>);

impl Rig for Reader {
    fn warm(&mut self) {}

    fn run(&mut self, _loops: u64) -> Vec<f64> {
        self.1.borrow_mut().push(fs::read_to_string(&self.0).unwrap().trim().to_owned());
        vec![1.0]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        1.0
    }
}

fn rigs_run_under_their_setting() -> Result<(), Failed> {
    let directory = prepare();
    let path = directory.path();
    let seen = Rc::default();
    {
        let switch = SharedSetting::new(change(path, "setting0")?);
        let under = |value: &str| {
            let rig = Box::new(Reader(path.join("setting0"), Rc::clone(&seen)));
            WithSettingRig::new(rig, switch.clone(), value.as_bytes().to_vec())
        };
        let mut rigs = [under("7\n"), under("10\n"), under(ORIGINAL)];
        for i in [0, 1, 1, 0, 2] {
            rigs[i].warm();
            rigs[i].run(1);
        }
        assert_eq!(switch.failure(), None);
        fs::remove_file(path.join("setting0"))?;
        rigs[0].warm();
        assert!(switch.failure().is_some_and(|why| why.contains("setting0")), "{:?}", switch.failure());
        fs::write(path.join("setting0"), "7\n")?;
    }
    assert_eq!(*seen.borrow(), ["7", "10", "10", "7", "original"]);
    all_original(path)
}

/// A setting that turns unwritable after it was changed: a pipe in its place takes nothing and
/// gives nothing back.
fn what_cannot_be_put_back_is_said() -> Result<(), Failed> {
    let directory = prepare();
    let path = directory.path();
    let changed = change(path, "setting0")?;
    changed.set(b"other\n")?;
    fs::remove_file(path.join("setting0"))?;
    fs::create_dir(path.join("setting0"))?;
    let error = changed.restore().unwrap_err().to_string();
    assert!(error.contains("setting0 cannot be changed"), "{error}");
    // The watchdog gave up too and left it in the journal; now that it is writable again, the next
    // one succeeds.
    fs::remove_dir(path.join("setting0"))?;
    fs::write(path.join("setting0"), "other\n")?;
    all_original(path)
}

fn pool(root: &Path, size: Bytes, total: u64, free: u64) -> std::path::PathBuf {
    let pool = root.join(format!("sys/kernel/mm/hugepages/hugepages-{}kB", size.0 >> 10));
    fs::create_dir_all(&pool).unwrap();
    for (name, value) in [("nr_hugepages", total), ("free_hugepages", free), ("resv_hugepages", 0)] {
        fs::write(pool.join(name), format!("{value}\n")).unwrap();
    }
    pool
}

fn huge_pages_under_a_root() -> Result<(), Failed> {
    let directory = prepare();
    let root = directory.path();
    let size = Bytes::mib(2);
    let pool = pool(root, size, 10, 4);
    fs::create_dir_all(root.join("proc"))?;
    fs::write(root.join("proc/meminfo"), "MemTotal: 9999999 kB\nMemAvailable:  98304 kB\n")?;
    let total = || fs::read_to_string(pool.join("nr_hugepages")).unwrap();
    {
        let enough = reserve_huge_pages_under(root, size, 4, &journal(root))?;
        assert_eq!((enough.free, total().trim()), (4, "10"), "nothing needs to be changed");
        let pages = reserve_huge_pages_under(root, size, 20, &journal(root))?;
        assert_eq!((pages.free, total().trim()), (20, "26"), "the free ones count");
    }
    assert_eq!(total(), "10\n");
    let error = reserve_huge_pages_under(root, size, 29, &journal(root)).unwrap_err();
    assert!(error.to_string().contains("more than half"), "24 are half, and 4 there are already: {error}");
    let error = reserve_huge_pages_under(root, Bytes::gib(1), 1, &journal(root)).unwrap_err();
    assert!(error.to_string().contains("no pool of 1 GiB pages"), "{error}");
    Ok(())
}

fn huge_pages_of_this_kernel() -> Result<(), Failed> {
    let file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    if lab::effective_uid() != 0 || fs::OpenOptions::new().write(true).open(file).is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: {file} may not be written here");
        return Ok(());
    }
    let before = fs::read_to_string(file)?;
    let size = Bytes::mib(2);
    let reserve = |count| reserve_huge_pages(size, count);
    match reserve(4) {
        Ok(pages) => {
            let arena = lab::arena::Arena::new(Bytes::mib(8), lab::arena::PageKind::Huge2M)?;
            assert_eq!(arena.given.share(), 1.0);
            drop(arena);
            drop(pages);
        }
        Err(SettingError::InUse(_)) => {
            let _ = writeln!(std::io::stderr(), "skipped: another process is changing settings");
        }
        Err(error) => assert!(error.to_string().contains("the kernel could make only"), "{error}"),
    }
    assert_eq!(fs::read_to_string(file)?, before);
    // The kernel would try, and take all memory from all processes.
    let error = reserve(1 << 40).unwrap_err().to_string();
    assert!(error.contains("more than half of the memory that is free"), "{error}");
    assert_eq!(fs::read_to_string(file)?, before);
    Ok(())
}
