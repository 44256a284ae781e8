//! Stored samples of other profilers: files that they have just written, where they are there; and
//! small files of theirs that are kept, in `crates/sampler/fixtures`.

mod fleet;
mod formats;

use records::profile::{FileFormat, Pattern, Profile, StallingLoad};
use std::path::PathBuf;
use std::process::{Command, Output};
use testkit::{Place, text};

/// A chain and a gather, sampled by gperftools where `API` is defined.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#ifdef API
int ProfilerStart(const char *); void ProfilerStop(void);
#endif
struct node { struct node *next; long rest[7]; };
struct node everything[1 << 20];
unsigned indices[4 << 20];
long table[8 << 20];
static struct node *volatile gone_through;
__attribute__((noinline, noclone)) struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
__attribute__((noinline, noclone)) long gather(long from) {
    long sum = 0;
    for (long i = 0; i < 4 << 20; i++) sum += table[from + indices[i]];
    return sum;
}
int main(int count, char **words) {
    unsigned long x = 88172645463325252;
    for (unsigned long i = 0; i < 1 << 20; i++)
        everything[i].next = &everything[(i * 0x5deece66d + 11) % (1 << 20)];
    for (long i = 0; i < 4 << 20; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        indices[i] = x % (7 << 20);
    }
#ifdef API
    ProfilerStart(words[1]);
#endif
    gone_through = chase(everything, 10000000);
    long sum = 0;
    for (int i = 0; i < 40; i++) sum += gather(i);
#ifdef API
    ProfilerStop();
#endif
    printf("%ld\n", sum);
}
"#;

fn place() -> Place {
    Place::uncompiled(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn gleaner(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    // Without the copies of files that tools keep in the user's home.
    command.env("HOME", place.at("elsewhere")).args(arguments);
    command
}

/// The profile of a file, and what was said of it.
#[track_caller]
fn profiled(place: &Place, arguments: &[&str]) -> (Profile, String) {
    let whole = [&["profile", "-o", "profile.json"], arguments].concat();
    let output = gleaner(place, &whole).output().unwrap();
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    (records::read::<Profile>(&place.at("profile.json")).unwrap().body, told)
}

/// What is said where a file is refused.
#[track_caller]
fn refused(place: &Place, arguments: &[&str]) -> String {
    let output = gleaner(place, &[&["profile"], arguments].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    text(&output.stderr)
}

/// The share of a function's samples that its loads have, of those with these patterns: the most
/// that this number of samples allows.
fn share_of(profile: &Profile, function: &str, patterns: &[Pattern]) -> f64 {
    let all: u64 = profile
        .functions
        .iter()
        .filter(|it| it.function.as_deref() == Some(function))
        .map(|it| it.samples)
        .sum();
    let loads = profile.loads.iter().filter(|load| load.function.as_deref() == Some(function));
    let named: u64 = loads.filter(|load| patterns.contains(&load.pattern)).map(|load| load.samples).sum();
    units::share(named, all).map_or(0.0, |share| share.hi)
}

fn first<'p>(profile: &'p Profile, function: &str) -> Option<&'p StallingLoad> {
    profile.loads.iter().find(|load| load.function.as_deref() == Some(function))
}

fn is_there(program: &str, argument: &str) -> bool {
    let output = Command::new(program).arg(argument).output();
    output.is_ok_and(|output| output.status.success())
}

/// A program of Go's, built with these options; false where there is no Go.
fn built_by_go(place: &Place, options: &[&str], name: &str) -> bool {
    if !is_there("go", "version") {
        eprintln!("skipped: no Go here (Debian: apt install golang-go)");
        return false;
    }
    std::fs::write(place.at("stalls.go"), include_str!("stored/stalls.go")).unwrap();
    let whole = [options, &["-o", name, "stalls.go"]].concat();
    assert!(go(place, &whole), "{options:?}");
    true
}

fn go(place: &Place, arguments: &[&str]) -> bool {
    // Its standard library is compiled once for all tests.
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go");
    let mut go = place.command("go");
    go.env("GOCACHE", cache).env("GOFLAGS", "").env("GO111MODULE", "off");
    let output = go.arg("build").args(arguments).output().unwrap();
    if !output.status.success() {
        eprintln!("{}", text(&output.stderr));
    }
    output.status.success()
}

fn ran(place: &Place, program: &str, arguments: &[&str]) -> Output {
    let mut command = place.command(place.at(program));
    // Samples enough for a share to tell.
    let output = command.args(arguments).env("CPUPROFILE_FREQUENCY", "250").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// Compiled with gperftools; false where it is not there.
fn built_with_gperftools(place: &Place, options: &[&str], name: &str) -> bool {
    let mut command = place.command("cc");
    command.args(["-O1", "-w", "-g", "-DAPI", "-Wl,--build-id"]).args(options);
    command.args(["-o", name, "p.c", "-Wl,--no-as-needed", "-lprofiler"]);
    let is_built = command.output().is_ok_and(|output| output.status.success());
    if !is_built {
        eprintln!("skipped: no gperftools here (Debian: apt install libgoogle-perftools-dev)");
    }
    is_built
}

#[test]
fn go_names_the_loads_that_stall_by_its_own_profiles() {
    let place = place();
    for options in [&[][..], &["-buildmode=pie"], &["-ldflags=-compressdwarf=false"]] {
        if !built_by_go(&place, options, "stalls") {
            return;
        }
        ran(&place, "stalls", &["cpu.pb.gz"]);
        let (profile, told) = profiled(&place, &["--pprof", "cpu.pb.gz"]);
        assert!(profile.sampling.samples >= 100, "{told}");
        let load = first(&profile, "main.chase").unwrap_or_else(|| panic!("{options:?}: {told}"));
        assert_eq!((load.pattern, load.line), (Pattern::Chain, Some(18)), "{options:?}: {told}");
        assert!(load.file.as_ref().is_some_and(|file| file.ends_with("stalls.go")), "{load:?}");
        assert_eq!(load.callers.first().map(String::as_str), Some("main.main"), "{load:?}");
        let share = share_of(&profile, "main.chase", &[Pattern::Chain]);
        assert!(share >= 0.95, "{options:?}: {share} of the chain: {told}");
        assert!(first(&profile, "main.gather").is_some(), "{told}");
        let file = profile.program.perf_data.as_ref().unwrap();
        assert_eq!((file.format, file.events.len()), (FileFormat::Pprof, 2));
        let cpu_time = profile.summary.cpu_time.value().unwrap();
        assert!((cpu_time - 0.01 * profile.sampling.samples as f64).abs() < 0.005, "{cpu_time}: {told}");
        assert!(told.contains("hold no registers") && told.contains("doctor --skid"), "{told}");
    }
    // Uncompressed, from standard input.
    let script =
        format!("gzip -dc cpu.pb.gz | {} profile --pprof - -o piped.json", env!("CARGO_BIN_EXE_gleaner"));
    let output = place.command("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(first(&records::read::<Profile>(&place.at("piped.json")).unwrap().body, "main.chase").is_some());
    let told = refused(&place, &["--pprof", "cpu.pb.gz.heap"]);
    assert!(told.contains("inuse_space/bytes") && told.contains("no samples of CPU time"), "{told}");
}

#[test]
fn gperftools_names_them_too() {
    let place = place();
    for options in [&[][..], &["-no-pie"]] {
        if !built_with_gperftools(&place, options, "p") {
            return;
        }
        ran(&place, "p", &["cpu.prof"]);
        let (profile, told) = profiled(&place, &["--pprof", "cpu.prof"]);
        assert!(profile.sampling.samples >= 100, "{told}");
        // Misses of a gather overlap, and the core computes meanwhile.
        for (function, patterns, least) in
            [("chase", &[Pattern::Chain][..], 0.95), ("gather", &[Pattern::Parallel, Pattern::Stream], 0.8)]
        {
            assert!(first(&profile, function).is_some(), "{options:?}, {function}: {told}");
            let share = share_of(&profile, function, patterns);
            assert!(share >= least, "{options:?}: {share} of {function}: {told}");
        }
        assert_eq!(first(&profile, "chase").unwrap().callers.first().map(String::as_str), Some("main"));
    }
}

/// Places of the loads that have most samples.
fn first_loads(profile: &Profile) -> Vec<(Option<String>, u64)> {
    let loads =
        profile.loads.iter().filter(|load| load.stall.estimate().is_some_and(|share| share.lo >= 0.03));
    loads.take(10).map(|load| (load.function.clone(), load.address)).collect()
}

#[test]
fn stored_samples_name_the_loads_that_our_own_samples_name() {
    let place = place();
    if !built_by_go(&place, &[], "stalls") {
        return;
    }
    ran(&place, "stalls", &["cpu.pb.gz"]);
    let (stored, told) = profiled(&place, &["--pprof", "cpu.pb.gz"]);
    let output =
        gleaner(&place, &["profile", "--no-probes", "-o", "own.json", "--", "./stalls"]).output().unwrap();
    if output.status.code() == Some(3) {
        eprintln!("skipped: no samples here: {}", text(&output.stderr));
        return;
    }
    let own = records::read::<Profile>(&place.at("own.json")).unwrap().body;
    let own_loads: Vec<_> = own.loads.iter().map(|load| (load.function.clone(), load.address)).collect();
    let found = first_loads(&stored);
    assert!(found.len() >= 2, "{told}");
    for load in &found {
        assert!(own_loads.contains(load), "{load:?}: {told}{}", text(&output.stderr));
    }
}

#[test]
fn files_that_moved_are_found_and_other_builds_are_not_taken() {
    let place = place();
    if !built_by_go(&place, &[], "stalls") {
        return;
    }
    ran(&place, "stalls", &["cpu.pb.gz"]);
    std::fs::create_dir_all(place.at("kept")).unwrap();
    std::fs::rename(place.at("stalls"), place.at("kept/stalls")).unwrap();
    let (profile, told) = profiled(&place, &["--pprof", "cpu.pb.gz"]);
    assert!(profile.loads.is_empty() && told.contains("there is no such file"), "{told}");
    // Names are there all the same.
    assert_eq!(profile.functions[0].function.as_deref(), Some("main.chase"), "{told}");
    assert_eq!(profile.functions[0].address, 0);
    let (profile, told) = profiled(&place, &["--pprof", "cpu.pb.gz", "--binaries", "kept"]);
    assert!(first(&profile, "main.chase").is_some(), "{told}");
    // Another build under its name: its file tells no build ID, but its functions have other names.
    let other = include_str!("stored/stalls.go").replace("chase(", "hunt(");
    std::fs::write(place.at("other.go"), other).unwrap();
    assert!(go(&place, &["-ldflags=-B none", "-o", "stalls", "other.go"]));
    let (profile, told) = profiled(&place, &["--pprof", "cpu.pb.gz"]);
    assert!(profile.loads.is_empty() && told.contains("have other names"), "{told}");
    let told = refused(&place, &["--pprof", "cpu.pb.gz", "--binaries", "nowhere"]);
    assert!(told.contains("there is no such directory"), "{told}");
}

#[test]
fn build_ids_find_files_as_debuginfod_keeps_them() {
    let place = place();
    let Some(python) = testkit::python_reader() else { return };
    if !built_by_go(&place, &["-ldflags=-B gobuildid"], "stalls") {
        return;
    }
    ran(&place, "stalls", &["cpu.pb.gz"]);
    formats::to_otlp(&place, &python, "cpu.pb.gz", "stalls", "cpu");
    let notes = place.command("readelf").args(["-n", "stalls"]).output().unwrap();
    let notes = text(&notes.stdout);
    let Some(id) = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")) else {
        eprintln!("skipped: this Go's linker makes no GNU build ID");
        return;
    };
    // The same samples with the build ID, as OpenTelemetry's profiler has it.
    formats::with_build_id(&place, &python, "x.otlp", id);
    let cache = place.at("cached").join(id);
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::rename(place.at("stalls"), cache.join("executable")).unwrap();
    let (profile, told) = profiled(&place, &["--otlp", "x.otlp", "--binaries", "cached"]);
    assert!(first(&profile, "main.chase").is_some(), "{told}");
    assert!(!told.contains("files are taken by their paths"), "{told}");
    // A file of another build ID is not taken, whatever its name.
    assert!(place.compile("cc", "stalls", &["-Wl,--build-id"]));
    let (profile, told) = profiled(&place, &["--otlp", "x.otlp"]);
    assert!(profile.loads.is_empty() && told.contains("another build ID"), "{told}");
}

#[test]
fn options_that_ask_for_a_run_do_not_go_with_a_file() {
    let place = place();
    for options in [
        &["--pprof", "a", "--otlp", "b"][..],
        &["--collapsed", "a", "--perf-data", "b"],
        &["--pprof", "a", "--from", "1s"],
        &["--otlp", "a", "--pid", "1"],
        &["--pprof", "a", "--no-probes"],
        &["--collapsed", "a", "./p"],
    ] {
        let told = refused(&place, options);
        assert!(told.contains("cannot be used with"), "{options:?}: {told}");
    }
    let told = refused(&place, &["--binaries", ".", "--", "./p"]);
    assert!(told.contains("it is for files of samples"), "{told}");
    assert!(refused(&place, &["--pprof", "none"]).contains("No such file"), "a file that is not there");
}
