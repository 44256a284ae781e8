//! `gleaner profile --system`: all processes of the machine. Only root, or who may use its events,
//! can sample them: others skip these tests, but for the one of what they are told.

use records::profile::{Profile, ProgramShare, System};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::{Place, kill, said, text, wait_until};

/// Works until it is killed or its time is over, and waits for memory this part of its CPU time, in
/// percent: it looks at its clock after each piece of work, and does what it is behind with.
pub(crate) const MIXED: &str = r"
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void **ring;
static volatile unsigned long sink;
static double now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
__attribute__((noinline)) void **chase_the_ring(void **p, long n) { while (n--) p = *p; return p; }
__attribute__((noinline)) unsigned long only_compute(unsigned long x, long n) {
    while (n--) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
    return x;
}
int main(int argc, char **argv) {
    double part = atof(argv[1]) / 100, lasts = atof(argv[2]);
    long n = 1L << 20;
    void **p = ring = malloc(n * sizeof(void *));
    long at = 0;
    // Steps through all of it, far from one to the next.
    for (long i = 0; i < n && part > 0; i++) { long next = (at + 393241 * 7) & (n - 1); ring[at] = &ring[next]; at = next; }
    // From here on it does what it is for.
    if (argc > 3) prctl(PR_SET_NAME, argv[3]);
    double began = now(CLOCK_MONOTONIC), waited = 0, computed = 1e-9;
    unsigned long x = 88172645463325252ul;
    // The work is that of children, each of a few milliseconds.
    while (argc > 4) {
        if (fork() == 0) { lasts = now(CLOCK_MONOTONIC) - began + 0.005; break; }
        wait(NULL);
        if (now(CLOCK_MONOTONIC) - began >= lasts) return 0;
    }
    while (now(CLOCK_MONOTONIC) - began < lasts) {
        double before = now(CLOCK_THREAD_CPUTIME_ID);
        int waits = waited < part * (waited + computed);
        if (waits) p = chase_the_ring(p, 20000); else x = only_compute(x, 300000);
        double took = now(CLOCK_THREAD_CPUTIME_ID) - before;
        if (waits) waited += took; else computed += took;
    }
    sink = x + (p == NULL);
    return 0;
}
";

pub(crate) fn place() -> Place {
    let place = Place::uncompiled(MIXED, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "p", &["-g"]), "a C compiler, and a program it takes");
    place
}

fn gleaner(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(arguments);
    command
}

/// Whether all processes may be sampled here; if not, it is said.
pub(crate) fn may_sample(place: &Place) -> bool {
    let tried = gleaner(place, &["profile", "--system", "--duration", "100ms"]).output().unwrap();
    if tried.status.code() == Some(3) {
        eprintln!("skipped: {}", text(&tried.stderr));
        return false;
    }
    assert_eq!(tried.status.code(), Some(0), "{}", text(&tried.stderr));
    true
}

/// A program that ends with its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn started(mut command: Command) -> Running {
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

pub(crate) fn mixed(place: &Place, percent: u32, name: &str) -> Running {
    let mut command = place.command("./p");
    command.args([&percent.to_string(), "120", name]);
    let program = started(command);
    let comm = format!("/proc/{}/comm", program.0.id());
    wait_until("the program has made its ring", Duration::from_secs(60), || {
        std::fs::read_to_string(&comm).is_ok_and(|now| now.trim() == name)
    });
    program
}

fn profile(path: &Path) -> Profile {
    records::read::<Profile>(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).body
}

/// The profile of all processes, with these options.
fn profiled(place: &Place, options: &[&str]) -> (Profile, String) {
    let mut arguments = vec!["profile", "--system", "-o", "system.json"];
    arguments.extend(options);
    let output = gleaner(place, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    (profile(&place.at("system.json")), text(&output.stderr))
}

fn system(profile: &Profile) -> &System {
    profile.system.as_ref().expect("whom the CPU time went to")
}

#[track_caller]
fn row<'p>(profile: &'p Profile, name: &str) -> &'p ProgramShare {
    let programs = &system(profile).programs;
    programs.iter().find(|row| row.program == name).unwrap_or_else(|| {
        let names: Vec<_> = programs.iter().map(|row| (&row.program, row.samples)).collect();
        panic!("no {name} among {names:?}")
    })
}

#[test]
fn twenty_programs_at_once_have_the_shares_of_their_own_profiles() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let kinds = [0, 25, 50, 75, 100];
    let name = |percent: u32| format!("wait{percent}");
    let own: Vec<f64> = kinds
        .iter()
        .map(|&percent| {
            let program = mixed(&place, percent, &name(percent));
            let arguments = ["profile", "--duration", "3s", "--frequency", "1999", "-o", "own.json", "--pid"];
            let done = gleaner(&place, &arguments).arg(program.0.id().to_string()).output().unwrap();
            assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
            profile(&place.at("own.json")).summary.memory_bound.value().unwrap()
        })
        .collect();
    let _programs: Vec<Running> =
        (0..20).map(|n| mixed(&place, kinds[n % kinds.len()], &name(kinds[n % kinds.len()]))).collect();
    std::thread::sleep(Duration::from_millis(500));
    let (all, _) = profiled(&place, &["--duration", "12s", "--frequency", "1999"]);
    for (percent, own) in kinds.into_iter().zip(own) {
        let rows: Vec<_> = system(&all).programs.iter().filter(|row| row.program == name(percent)).collect();
        let processes: u64 = rows.iter().map(|row| row.processes).sum();
        assert_eq!(processes, 4, "{percent}: {rows:?}");
        let samples: u64 = rows.iter().map(|row| row.samples).sum();
        let weighed = |of: fn(&ProgramShare) -> f64| -> f64 { rows.iter().map(|row| of(row)).sum() };
        let waits = weighed(|row| row.stall.value().unwrap()) / weighed(|row| row.time.value().unwrap());
        // Three points, and what so few samples leave open on a busy machine.
        let off = 0.03 + 1.96 * (own * (1.0 - own) / samples as f64).sqrt();
        assert!((waits - own).abs() <= off, "{percent}%: {waits:.3} of all, {own:.3} by itself ({samples})");
    }
    let waiting = all.loads.first().expect("a load that waits");
    assert_eq!(waiting.function.as_deref(), Some("chase_the_ring"), "{waiting:?}");
    assert!(waiting.program.as_ref().is_some_and(|name| name.starts_with("wait")), "{waiting:?}");
    assert!(system(&all).busy.value().is_some_and(|busy| busy > 0.5), "{:?}", system(&all).busy);
}

#[test]
fn the_profiler_is_left_out_and_its_cost_told() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let _program = mixed(&place, 50, "beside");
    let (all, said) = profiled(&place, &["--duration", "2s", "--frequency", "499"]);
    assert!(row(&all, "beside").samples > 0);
    let own = system(&all).own.value().expect("what the profiler itself used");
    assert!(own > 0.0 && own < 1.0, "{own}");
    assert!(said.contains("of it in the profiler itself"), "{said}");
    let overhead = all.summary.overhead.value().expect("what profiling took");
    assert!(overhead >= own, "samples cost something, too: {overhead} {own}");
    // Other tests profile, too: none of them is this one's.
    let time: f64 = system(&all).programs.iter().filter_map(|row| row.time.value()).sum();
    assert!((0.99..1.01).contains(&time), "all rows together are all samples: {time}");
}

#[test]
fn thousands_of_short_processes_are_seen_together() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let mut shell = place.command("sh");
    shell.args(["-c", "while :; do ./p 100 0.002 briefly; done"]);
    let mut shells = vec![started(shell)];
    for _ in 0..3 {
        let mut shell = place.command("sh");
        shell.args(["-c", "while :; do ./p 0 0.001 briefly; done"]);
        shells.push(started(shell));
    }
    let (all, _) = profiled(&place, &["--duration", "6s", "--frequency", "999"]);
    drop(shells);
    let briefly = row(&all, "briefly");
    assert!(briefly.pid.is_none() && briefly.processes > 20, "{briefly:?}");
    assert!(briefly.function.is_some(), "code of processes that have ended has names: {briefly:?}");
    let System { began, ended, .. } = system(&all);
    assert!(*began > 100 && *ended > 100, "{began} {ended}");
}

#[test]
fn a_deleted_program_is_read_all_the_same() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    std::fs::copy(place.at("p"), place.at("gone")).unwrap();
    let mut command = place.command("./gone");
    command.args(["100", "120", "gone"]);
    let program = started(command);
    let maps = format!("/proc/{}/maps", program.0.id());
    wait_until("the program runs", Duration::from_secs(60), || {
        std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("/gone"))
    });
    // Another file has its name.
    std::fs::rename(place.at("gone"), place.at("other")).unwrap();
    std::fs::remove_file(place.at("other")).unwrap();
    std::fs::write(place.at("gone"), "#!/bin/sh\n").unwrap();
    let (all, _) = profiled(&place, &["--duration", "2s", "--frequency", "499"]);
    let gone = row(&all, "gone");
    // Without rights to the mapping itself nothing can be read: that is said.
    let is_told = all.refusals.iter().any(|refused| refused.why.contains("/gone"));
    assert!(gone.function.as_deref() == Some("chase_the_ring") || is_told, "{gone:?} {:?}", all.refusals);
}

#[test]
fn programs_in_a_root_of_their_own_have_names() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    if !place.compile("cc", "static", &["-static", "-g"]) {
        eprintln!("skipped: no static libc");
        return;
    }
    let root = place.at("root");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy(place.at("static"), root.join("bin/inside")).unwrap();
    let in_there = |name: &str, also: &str| {
        let mut command = place.command("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "chroot"]).arg(&root);
        command.args(["/bin/inside", "100", "120", name]).args((!also.is_empty()).then_some(also));
        command
    };
    let program = started(in_there("inside", ""));
    std::thread::sleep(Duration::from_millis(500));
    let (all, _) = profiled(&place, &["--duration", "2s", "--frequency", "499"]);
    if !system(&all).programs.iter().any(|row| row.program == "inside") {
        eprintln!("skipped: no namespaces may be made here");
        return;
    }
    assert_eq!(row(&all, "inside").function.as_deref(), Some("chase_the_ring"), "{:?}", all.refusals);
    let load = all.loads.iter().find(|load| load.program.as_deref() == Some("inside")).expect("its load");
    assert!(load.module.ends_with("/bin/inside"), "{load:?}");
    drop(program);
    // Of those that have ended, the files are found by who made them.
    let _makers = started(in_there("makes", "forks"));
    std::thread::sleep(Duration::from_millis(500));
    let (all, _) = profiled(&place, &["--duration", "3s", "--frequency", "999"]);
    let makes = row(&all, "makes");
    assert!(makes.processes > 3, "{makes:?}");
    assert_eq!(makes.function.as_deref(), Some("chase_the_ring"), "{:?}", all.refusals);
}

/// A control group that goes with its test.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let path = Path::new("/sys/fs/cgroup").join(format!("{name}-{}.service", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) if path.join("cgroup.procs").exists() => Some(Self(path)),
            _ => {
                let _ = std::fs::remove_dir(&path);
                eprintln!("skipped: no control group may be made here");
                None
            }
        }
    }

    fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }

    fn take_in(&self, process: u32) {
        std::fs::write(self.0.join("cgroup.procs"), process.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Those that ended in it leave it a moment later.
        for _ in 0..200 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn one_control_group_can_be_asked_for() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let Some(group) = Group::new("gleaner-test") else { return };
    let program = mixed(&place, 100, "member");
    let _other = mixed(&place, 100, "outsider");
    group.take_in(program.0.id());
    let name = group.name();
    for asked in [name.as_str(), &format!("/{name}"), group.0.to_str().unwrap()] {
        let (all, said) =
            profiled(&place, &["--duration", "1500ms", "--frequency", "499", "--cgroup", asked]);
        let member = row(&all, "member");
        assert_eq!(member.pid, Some(program.0.id()));
        assert_eq!(member.group.cgroup.as_deref(), Some(&*format!("/{name}")));
        assert_eq!(member.group.unit.as_deref(), Some(&*name));
        assert_eq!(member.function.as_deref(), Some("chase_the_ring"));
        assert!(!system(&all).programs.iter().any(|row| row.program == "outsider"), "{said}");
        assert!(said.starts_with(&format!("profile of control group /{name}")), "{said}");
    }
    let none = gleaner(&place, &["profile", "--system", "--cgroup", "no-such-group"]).output().unwrap();
    let (code, _, told) = said(&none);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.starts_with("gleaner: no-such-group: there is no such control group"), "{told}");
    drop(program);
}

#[test]
fn time_in_the_kernel_is_named_as_such() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let mut command = place.command("dd");
    command.args(["if=/dev/zero", "of=/dev/null", "bs=4M"]).stderr(Stdio::null());
    let _program = started(command);
    let (all, said) = profiled(&place, &["--duration", "2s", "--frequency", "499"]);
    let dd = row(&all, "dd");
    let (time, kernel) = (dd.time.value().unwrap(), dd.in_kernel.value().unwrap());
    assert!(kernel > 0.5 * time, "{dd:?}");
    assert!(!dd.is_kernel_thread);
    let functions = &system(&all).kernel;
    assert!(!functions.is_empty() && said.contains("where the kernel's own time went"), "{said}");
    for thread in system(&all).programs.iter().filter(|row| row.is_kernel_thread) {
        assert_eq!(thread.time, thread.in_kernel, "{thread:?}");
    }
}

#[test]
fn users_without_rights_are_told_what_would_help() {
    let place = place();
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim().parse::<i32>().is_ok_and(|level| level < 1) {
        eprintln!("skipped: all users may sample all processes here");
        return;
    }
    // Another user must find the program.
    std::fs::copy(env!("CARGO_BIN_EXE_gleaner"), place.at("gleaner")).unwrap();
    let open = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(place.folder());
    open(&place.at("gleaner"));
    let mut command = place.command(place.at("gleaner"));
    command.args(["profile", "--system", "--duration", "1s"]).env("XDG_CACHE_HOME", "/nonexistent");
    if rustix_is_root() {
        use std::os::unix::process::CommandExt;
        command.uid(65_534).gid(65_534);
    }
    let (code, out, told) = said(&command.output().unwrap());
    assert_eq!((code, out.as_str()), (Some(3), ""), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    for word in ["gleaner: --system: Permission denied", "root", "CAP_PERFMON", "perf_event_paranoid"] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

fn rustix_is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0
}

#[test]
fn ctrl_c_ends_it_with_a_record_and_a_hangup_under_nohup_does_not() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let _program = mixed(&place, 100, "beside");
    let mut command = place.command("nohup");
    command.arg(env!("CARGO_BIN_EXE_gleaner")).args(["profile", "--system", "-o", "stopped.json"]);
    let mut profiler = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let pid = profiler.0.id().to_string();
    let names = format!("/proc/{pid}/comm");
    wait_until("nohup has become gleaner", Duration::from_secs(60), || {
        std::fs::read_to_string(&names).is_ok_and(|name| name.trim() == "gleaner")
    });
    let maps = format!("/proc/{pid}/maps");
    wait_until("its events are there", Duration::from_secs(60), || {
        std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("[perf_event]"))
    });
    std::thread::sleep(Duration::from_secs(1));
    assert!(kill("HUP", &pid));
    std::thread::sleep(Duration::from_secs(1));
    assert!(profiler.0.try_wait().unwrap().is_none(), "it goes on");
    assert!(kill("INT", &pid));
    assert_eq!(profiler.0.wait().unwrap().code(), Some(0));
    assert!(row(&profile(&place.at("stopped.json")), "beside").samples > 0);
}

fn records_in(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .collect();
    found.sort();
    found
}

fn every(place: &Place, options: &[&str]) -> Running {
    let mut command = gleaner(place, &["profile", "--system", "--every", "1s"]);
    command.args(options).stdout(Stdio::null()).stderr(std::fs::File::create(place.at("said")).unwrap());
    Running(command.spawn().unwrap())
}

#[test]
fn a_record_each_time_and_the_last_one_when_it_ends() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let _program = mixed(&place, 100, "beside");
    let directory = place.at("records");
    let mut profiler = every(&place, &["-o", "records"]);
    wait_until("three records", Duration::from_secs(120), || records_in(&directory).len() >= 3);
    let before = records_in(&directory).len();
    assert!(kill("TERM", &profiler.0.id().to_string()));
    assert_eq!(
        profiler.0.wait().unwrap().code(),
        Some(0),
        "{}",
        std::fs::read_to_string(place.at("said")).unwrap()
    );
    let all = records_in(&directory);
    assert!(all.len() > before, "what was sampled until the end: {all:?}");
    for path in &all {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("profile-20") && name.contains('T') && !name.contains(':'), "{name}");
        let one = profile(path);
        assert!(one.system.is_some(), "{name}");
    }
    assert!(row(&profile(&all[1]), "beside").samples > 0);
    let left: Vec<_> =
        std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), all.len(), "nothing else is left there: {left:?}");
}

#[test]
fn old_records_go_for_new_ones() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let directory = place.at("records");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("profile-2001-01-01T00-00-00Z.json"), vec![b' '; 1000]).unwrap();
    std::fs::write(directory.join("of-another.json"), "{}").unwrap();
    let mut profiler = every(&place, &["-o", "records", "--keep", "1"]);
    wait_until("the old one is gone", Duration::from_secs(120), || {
        !directory.join("profile-2001-01-01T00-00-00Z.json").exists()
    });
    assert!(kill("TERM", &profiler.0.id().to_string()));
    assert_eq!(profiler.0.wait().unwrap().code(), Some(0));
    let left = records_in(&directory);
    assert_eq!(left.len(), 2, "the last record, and what is none of its: {left:?}");
    assert!(directory.join("of-another.json").exists());
}

/// A small file system that goes with its test.
struct Small(PathBuf);

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_survived_and_said() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let directory = place.at("small");
    std::fs::create_dir(&directory).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=16k", "gleaner-test"]).arg(&directory).stderr(Stdio::null());
    if !mount.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no file system may be mounted here");
        return;
    }
    let _small = Small(directory.clone());
    let _program = mixed(&place, 100, "beside");
    let mut profiler = every(&place, &["-o", "small"]);
    let said = || std::fs::read_to_string(place.at("said")).unwrap();
    let lost = "No space left on device; this record is lost, the next one is tried";
    wait_until("it is said twice", Duration::from_secs(120), || said().matches(lost).count() >= 2);
    assert!(profiler.0.try_wait().unwrap().is_none(), "it goes on");
    // There is space again.
    let more = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&directory).status().unwrap();
    assert!(more.success());
    wait_until("a record", Duration::from_secs(120), || !records_in(&directory).is_empty());
    assert!(kill("TERM", &profiler.0.id().to_string()));
    assert_eq!(profiler.0.wait().unwrap().code(), Some(1), "records were lost");
    assert!(said().contains("records could not be written"), "{}", said());
    let written = records_in(&directory);
    assert!(profile(written.last().unwrap()).system.is_some());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = place();
    for arguments in [
        &["profile", "--system", "--", "./p"][..],
        &["profile", "--system", "--pid", "1"],
        &["profile", "--cgroup", "x", "--", "./p"],
        &["profile", "--system", "--every", "60s"],
        &["profile", "--system", "--every", "10ms", "-o", "d"],
        &["profile", "--system", "--keep", "1G"],
        &["profile", "--system", "--every", "60s", "-o", "-"],
        &["profile", "--every", "60s", "-o", "d", "--", "./p"],
        &["profile", "--system", "--try"],
    ] {
        let (code, _, told) = said(&gleaner(&place, arguments).output().unwrap());
        assert_eq!(code, Some(2), "{arguments:?}: {told}");
    }
}
