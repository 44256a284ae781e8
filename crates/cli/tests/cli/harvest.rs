//! `gleaner harvest` from the outside: a primary runs as if it ran alone, and what cannot be done
//! is told in a line.
//!
//! To add a case of wrong use: a line in [`what_cannot_be_is_told_in_one_line`].

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{Place, text, wait_for, wait_until, without_summary};

/// A chase through a small list, so that there is a site; it does what its arguments say.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
extern char **environ;
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
/* Its handler changes a register that the loop only reads. */
static void step(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    registers[REG_R15] += 1;
    registers[REG_RIP] += 2;
}
__attribute__((noinline)) static long changed(void **p) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    long sum = 0;
    register long added __asm__("r15") = 1;
    __asm__ volatile("" : "+r"(added));
    for (long n = 0; n < 10000000; n++) {
        p = *p;
        __asm__ volatile("addq %%r15, %0" : "+r"(sum) : "r"(added));
        sum += p == ring;
        void *nothing = 0; /* a load that faults, two bytes long */
        if (n % 100000 == 0) __asm__ volatile("movl (%%rax), %%eax" : "+a"(nothing) : "r"(added));
    }
    return sum;
}
static void caught(int signal) { (void)signal; write(1, "caught\n", 7); _exit(7); }
int main(int argc, char **argv) {
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    void **p = chase(ring, 1000000);
    if (argc < 2) return p == 0;
    if (!strcmp(argv[1], "exit")) return atoi(argv[2]);
    if (!strcmp(argv[1], "say")) { for (int i = 0; i < argc; i++) puts(argv[i]); fputs("errors\n", stderr); return 0; }
    if (!strcmp(argv[1], "env")) { for (char **e = environ; *e; e++) puts(*e); return 0; }
    if (!strcmp(argv[1], "cat")) { int c; while ((c = getchar()) != EOF) putchar(c); return 0; }
    if (!strcmp(argv[1], "kill")) { signal(atoi(argv[2]), SIG_DFL); raise(atoi(argv[2])); }
    if (!strcmp(argv[1], "wait")) { signal(SIGTERM, caught); puts("ready"); fflush(stdout); for (;;) pause(); }
    if (!strcmp(argv[1], "change")) { long sum = changed(ring); printf("%ld\n", sum); return 0; }
    if (!strcmp(argv[1], "idle")) for (long n = 0;; n++) __asm__ volatile("" : "+r"(n));
    if (!strcmp(argv[1], "hits")) {
        struct timespec t[2];
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[0]);
        gone_through = chase(p, 150000000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[1]);
        printf("%ld\n", (t[1].tv_sec - t[0].tv_sec) * 1000000 + (t[1].tv_nsec - t[0].tv_nsec) / 1000);
        return 0;
    }
    if (!strcmp(argv[1], "misses")) {
        enum { MANY = 1 << 23 };
        static void *large[MANY];
        for (long i = 0, at = 0; i < MANY; i++) {
            long next = (at * 1664525 + 1013904223) % MANY;
            large[at] = &large[next];
            at = next;
        }
        fclose(fopen("built", "w"));
        for (p = large;;) gone_through = p = chase(p, 1000000);
    }
    if (!strcmp(argv[1], "naps")) {
        for (int i = 0; i < 2000 && access("built", F_OK); i++) usleep(1000);
        for (long n = atol(argv[2]); n--;) {
            gone_through = p = chase(p, 30000);
            nanosleep(&(struct timespec){0, 1000}, 0);
        }
        return 0;
    }
    /* Traced by a child of its own, which never looks: dead, it cannot be waited for by others. */
    if (!strcmp(argv[1], "traced")) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        if (!fork()) {
            long traced = ptrace(PTRACE_SEIZE, getppid(), 0, 0);
            FILE *file = fopen("tracer", "w");
            fprintf(file, "%d %ld\n", getpid(), traced);
            fclose(file);
            sleep(60);
            _exit(0);
        }
    }
    if (!strcmp(argv[1], "spin") || !strcmp(argv[1], "traced")) for (;;) gone_through = p = chase(p, 1000000);
    return 99;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

/// The same program with these arguments, alone and harvested with a scavenger.
fn both(place: &Place, arguments: &[&str], set: impl Fn(&mut Command) -> Output) -> (Output, Output) {
    let mut alone = place.command("./p");
    alone.args(arguments);
    let mut harvested = place.harvest(&["-q", "--scavenger", "./p spin", "--", "./p"]);
    harvested.args(arguments);
    (set(&mut alone), set(&mut harvested))
}

#[test]
fn a_primary_runs_as_if_it_ran_alone() {
    let place = place();
    for arguments in [
        &["exit", "0"][..],
        &["exit", "77"],
        &["say", "a b", ""],
        &["kill", "9"],
        &["kill", "15"],
        &["kill", "6"],
        &["change"],
    ] {
        let (alone, harvested) = both(&place, arguments, |c| c.stdin(Stdio::null()).output().unwrap());
        assert_eq!(text(&harvested.stdout), text(&alone.stdout), "{arguments:?}");
        assert_eq!(text(&harvested.stderr), text(&alone.stderr), "{arguments:?}");
        let status = |output: &Output| (output.status.code(), output.status.signal());
        assert_eq!(status(&harvested), status(&alone), "{arguments:?}");
    }
}

#[test]
fn input_and_environment_are_the_primarys_own() {
    let place = place();
    let fed = |command: &mut Command| {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
        child.wait_with_output().unwrap()
    };
    let (alone, harvested) = both(&place, &["cat"], fed);
    assert_eq!(
        (text(&harvested.stdout).as_str(), text(&alone.stdout).as_str()),
        ("one\ntwo\n", "one\ntwo\n")
    );
    let own = |command: &mut Command| {
        command
            .env_clear()
            .env("XDG_CACHE_HOME", place.at("cache"))
            .env("A", "b c")
            .env("PATH", "/bin:/usr/bin");
        command.stdin(Stdio::null()).output().unwrap()
    };
    let (alone, harvested) = both(&place, &["env"], own);
    assert_eq!(text(&harvested.stdout), text(&alone.stdout));
}

#[test]
fn signals_sent_to_the_launcher_reach_the_primary() {
    let place = place();
    let mut child =
        place.harvest(&["--", "./p", "wait"]).stdout(Stdio::piped()).spawn().expect("gleaner starts");
    let mut said = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(&said, b"ready\n");
    assert!(testkit::kill("TERM", &child.id().to_string()));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "caught\n"));
}

/// Nobody works in this place any more, neither running nor waiting to be reaped.
fn nobody_left(place: &Place) {
    let none_is_left = || testkit::pids_in(place.folder()).is_empty();
    wait_until("no process works in the test's folder", Duration::from_secs(60), none_is_left);
}

#[test]
fn what_the_terminal_or_anybody_sends_ends_everybody() {
    use std::os::unix::process::CommandExt;
    // Ctrl-C goes to the whole group, SIGTERM to one process, SIGKILL leaves no time to say
    // anything.
    for (signal, group, code, by) in
        [("INT", "-", None, Some(2)), ("TERM", "", Some(7), None), ("KILL", "", None, Some(9))]
    {
        if signal == "INT" && interrupts_are_ignored() {
            eprintln!("skipped: SIGINT is ignored here, and so it is in the primary");
            continue;
        }
        let place = place();
        let mut harvest = place.harvest(&["--scavengers", "3 x ./p spin", "--", "./p", "wait"]);
        let mut child = harvest.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        let target = format!("{group}{}", child.id());
        let primary = primary_of(child.id());
        assert!(testkit::kill(signal, &target));
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (code, by), "SIG{signal}");
        if signal == "KILL" {
            // It goes on, as it would if the process that started it were killed.
            assert!(Path::new(&format!("/proc/{primary}")).exists());
            assert!(testkit::kill("TERM", &primary.to_string()));
        }
        nobody_left(&place);
    }
}

/// As where a script starts these tests with `&`.
fn interrupts_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("the kernel tells");
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 2 != 0
}

/// The one child that has its launcher's group and says nothing of a preloaded library: told by its
/// arguments.
fn primary_of(launcher: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap();
    let first = children.split(' ').next().and_then(|pid| pid.parse().ok());
    first.expect("the primary was started first")
}

#[test]
fn scripts_take_part_by_their_interpreters() {
    let place = place();
    let script = place.at("script");
    std::fs::write(&script, format!("#!{} say\n", place.at("p").display())).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let alone = Command::new("./script").arg("x").current_dir(place.folder()).output().unwrap();
    let harvested =
        place.harvest(&["-q", "--scavenger", "./script y", "--", "./script", "x"]).output().unwrap();
    assert_eq!(text(&harvested.stdout), text(&alone.stdout));
    assert_eq!(text(&harvested.stderr), text(&alone.stderr));
    assert_eq!(harvested.status.code(), alone.status.code());
}

#[test]
fn what_cannot_be_is_told_in_one_line() {
    let place = place();
    assert!(place.compile("cc", "static", &["-static"]));
    assert!(place.compile("cc", "setuid", &[]));
    let mut narrow = std::fs::read(place.at("p")).unwrap();
    narrow[4] = 1; // ELFCLASS32
    std::fs::write(place.at("narrow"), narrow).unwrap();
    for (name, mode) in [("setuid", 0o4755), ("narrow", 0o755)] {
        std::fs::set_permissions(place.at(name), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    assert!(place.compile("cc", "go", &[]));
    let go = ["--add-section", ".note.go.buildid=/dev/null", "go"];
    assert!(place.command("objcopy").args(go).status().unwrap().success());
    assert!(place.compile("cc", "ocaml", &[]));
    let ocaml = ["--add-symbol", "caml_call_gc=.text:0,global,function", "ocaml"];
    assert!(place.command("objcopy").args(ocaml).status().unwrap().success());
    std::fs::write(place.at("script"), "#!/no/such\n").unwrap();
    std::os::unix::fs::symlink("p", place.at("link")).unwrap();
    {
        let name = "script";
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.at(name), mode).unwrap();
    }
    let set_id = "./setuid: setuid or setgid: a rewritten copy would run without its privileges";
    let other_tables = format!(
        "{}: a Go program: its runtime looks up return addresses in tables of its own, so it is not rewritten; \
         `gleaner profile` measures it as it is",
        place.at("go").display()
    );
    let ocamls = other_tables.replace("/go: a Go", "/ocaml: an OCaml");
    let cases: [(&[&str], i32, &str); 15] = [
        (&["--", "./go"], 3, &other_tables),
        (&["--", "./ocaml"], 3, &ocamls),
        (&["--scavenger", "./go", "--", "./p"], 3, &other_tables),
        (&["--", "./setuid"], 3, set_id),
        (&["--scavenger", "./setuid", "--", "./p"], 3, set_id),
        (&["--", "./narrow"], 2, "primary: ./narrow: a 32-bit program"),
        (&["--scavenger", "./narrow", "--", "./p"], 2, "scavenger: ./narrow: a 32-bit program"),
        (&["--", "./absent"], 2, "primary: ./absent: no such program"),
        (&["--", "no-such-program"], 2, "primary: no-such-program: no such program in PATH"),
        (&["--scavenger", "./absent", "--", "./p"], 2, "scavenger: ./absent: no such program"),
        (
            &["--scavenger", "'", "--", "./p"],
            2,
            "scavenger: ''' is not a command line: missing closing quote",
        ),
        (&["--", "./script"], 2, "primary: ./script: its interpreter /no/such does not exist"),
        (
            &["--", "./static"],
            3,
            "./static: statically linked; a primary must be dynamically linked, since its loader loads the runtime",
        ),
        (&["--json", "--", "./p"], 2, "--json: standard output belongs to the primary; use --record FILE"),
        (
            &["--max-slowdown", "x", "--", "./p"],
            2,
            "invalid value 'x' for '--max-slowdown <SHARE>': 'x' is not a share; write for example 5% or 0.05",
        ),
    ];
    for (arguments, code, line) in cases {
        let output = place.harvest(arguments).output().unwrap();
        assert_eq!(text(&output.stderr), format!("gleaner: {line}\n"), "{arguments:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_plan_is_explained_and_used_again() {
    let place = place();
    let output = place
        .harvest(&["--dry-run", "--record", "plan.json", "--scavenger", "./p", "--", "./p"])
        .output()
        .unwrap();
    let told = text(&output.stdout);
    for expected in
        ["assumed, not measured", "  chase", "chased, loop depth 1", "alternatives", "scavenger", "ring 1"]
    {
        assert!(told.contains(expected), "'{expected}' in {told}");
    }
    let run = |plan: &Path| {
        place
            .harvest(&[
                "--plan",
                plan.to_str().unwrap(),
                "--record",
                "run.json",
                "--scavenger",
                "./p",
                "--",
                "./p",
                "exit",
                "5",
            ])
            .output()
            .unwrap()
    };
    let output = run(&place.at("plan.json"));
    assert_eq!((output.status.code(), without_summary(&text(&output.stderr)).as_str()), (Some(5), ""));
    let run_record = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    assert_eq!(run_record.primary.ended, records::run::Ended::Exited { code: 5 });
    assert_eq!(run_record.scavengers.len(), 1);
    assert!(run_record.primary.twin.cached, "the dry run left it in the cache");
    // The same plan is for other bytes now.
    assert!(place.compile("cc", "p", &["-g"]));
    let output = run(&place.at("plan.json"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("its contents have changed since"), "{}", text(&output.stderr));
}

#[test]
fn each_scavengers_output_goes_to_a_file_of_its_own() {
    let place = place();
    let arguments = [
        "--scavenger-out",
        "out/",
        "--scavengers",
        "2 x ./p say hello",
        "--record",
        "run.json",
        "--",
        "./p",
        "exit",
        "0",
    ];
    let output = place.harvest(&arguments).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    let record = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    for (number, scavenger) in record.scavengers.iter().enumerate() {
        let file = place.at(&format!("out/{}-p.out", number + 1));
        assert_eq!(scavenger.output, format!("out/{}-p.out", number + 1));
        // It may have been ended with the primary before it came to speak.
        if scavenger.process.ended == (records::run::Ended::Exited { code: 0 }) {
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "errors\n./p\nsay\nhello\n");
        } else {
            assert!(file.exists());
        }
    }
}

/// Neither does the primary ever wait nor the guest ever give way by itself: unwatched, each load
/// of the one would cost a stay of the other, and hundreds of times its own time. The bar is wide:
/// this is no measurement.
#[test]
fn a_guest_that_never_waits_does_not_stop_a_primary_that_never_waits() {
    let place = place();
    let mut alone = Command::new("./p");
    alone.arg("hits").current_dir(place.folder());
    let arguments = ["--scavenger", "./p idle", "--record", "run.json", "--", "./p", "hits"];
    let micros = |command: &mut Command| -> f64 {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).trim().parse().expect("microseconds of the thread")
    };
    let (alone, harvested) = (micros(&mut alone), micros(&mut place.harvest(&arguments)));
    assert!(harvested < 3.0 * alone, "{harvested} µs with the guest, {alone} alone");
    let record = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    let watched = record.slowdown.watched.value().expect("it was watched");
    assert!(watched > 0.0 && record.slowdown.with_guests.value().is_some_and(|with| with <= watched));
}

/// Servers sleep between two requests: scavengers then run at home, on the CPU that it leaves to
/// them.
#[test]
fn a_primary_that_sleeps_often_has_no_guests() {
    let place = place();
    let arguments = [
        "--stay-aboard",
        "--choose",
        "every-load",
        "--max-slowdown",
        "20%",
        "--scavenger",
        "./p misses",
        "--record",
        "run.json",
        "--",
        "./p",
        "naps",
        "2000",
    ];
    assert_eq!(place.harvest(&arguments).output().unwrap().status.code(), Some(0));
    let record = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    let told = |value: Option<f64>| value.expect("it was watched");
    let (with_guests, watched) =
        (told(record.slowdown.with_guests.value()), told(record.slowdown.watched.value()));
    // Some: one that other programs keep from its CPU for 50 ms is not seen asleep.
    assert!(with_guests <= 0.2 * watched, "{with_guests} of {watched}");
    let at_home = record.scavengers[0].times.running.value().expect("it was started");
    assert!(at_home > 0.0, "{:?}", record.scavengers[0].times);
}

/// Nothing may be lost, so nobody comes aboard; what never sleeps runs at home, or waits for a
/// processor there.
#[test]
fn a_primary_that_may_not_become_slower_has_no_guests() {
    let place = place();
    let arguments =
        ["--max-slowdown", "0%", "--scavenger", "./p spin", "--record", "run.json", "--", "./p", "hits"];
    assert_eq!(place.harvest(&arguments).output().unwrap().status.code(), Some(0));
    let record = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    assert_eq!(record.slowdown.with_guests.value(), Some(0.0));
    assert_eq!(record.slowdown.share.value(), Some(0.0));
    let times = &record.scavengers[0].times;
    assert_eq!(times.aboard.value(), Some(0.0));
    let at_home = times.at_home.estimate().expect("it was started, and ended");
    assert!(0.0 < at_home.hi && at_home.lo <= at_home.value && at_home.value <= at_home.hi, "{times:?}");
    if std::fs::read_to_string("/proc/self/schedstat").is_ok_and(|counted| !counted.starts_with("0 ")) {
        let (running, waiting) = (times.running.value().unwrap(), times.waiting.value().unwrap());
        let clocks = 0.001;
        assert!(running > 0.0 && running + waiting < at_home.hi + clocks, "{times:?}");
        assert!(running + waiting > 0.5 * at_home.lo, "{times:?}");
    }
}

/// It would run for ever with guests aboard that never get a turn: they stay at home, and do there
/// what they are for.
#[test]
fn a_primary_without_yields_leaves_scavengers_at_home() {
    let place = place();
    let arguments = ["--most-sites", "0", "--scavenger-out", "said", "--scavenger", "./p say hello"];
    let mut launcher = place.harvest(&[&arguments[..], &["--", "./p", "idle"]].concat()).spawn().unwrap();
    let said = || std::fs::read_to_string(place.at("said")).is_ok_and(|said| said.contains("hello"));
    wait_until("the scavenger at home says hello", Duration::from_secs(60), said);
    assert!(testkit::kill("TERM", &launcher.id().to_string()));
    launcher.wait().unwrap();
}

/// Nobody waits for what it did not come to do, and the record says why less was harvested.
#[test]
fn a_supervisor_that_is_killed_is_told_and_not_waited_for() {
    let place = place();
    let mut harvest =
        place.harvest(&["--scavengers", "3 x ./p spin", "--record", "run.json", "--", "./p", "wait"]);
    let mut child = harvest.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
    assert!(testkit::kill("KILL", &testkit::supervisor_of(child.id())));
    assert!(testkit::kill("TERM", &child.id().to_string()));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "caught\n"));
    let line = "gleaner: harvesting to the end: the supervisor process (gleaner-superv) was killed\n";
    assert_eq!(without_summary(&text(&output.stderr)), line);
    let run = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    assert!(run.scavengers.iter().all(|s| s.process.ended == records::run::Ended::WithThePrimary));
    nobody_left(&place);
}

/// A killed scavenger may take its time to die, where it is traced or the processors are busy: the
/// primary's end is told without it.
#[test]
fn a_scavenger_slow_to_die_does_not_delay_the_primarys_end() {
    let place = place();
    let mut harvest =
        place.harvest(&["--scavenger", "./p traced", "--record", "run.json", "--", "./p", "wait"]);
    let mut child = harvest.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
    let tracer = || std::fs::read_to_string(place.at("tracer")).ok().filter(|text| text.ends_with('\n'));
    let tracer = wait_for("the scavenger's tracer says its name", Duration::from_secs(60), tracer);
    let (tracer, traces) = tracer.trim().split_once(' ').unwrap();
    assert!(testkit::kill("TERM", &child.id().to_string()));
    assert_eq!(child.wait().unwrap().code(), Some(7));
    let run = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    assert_eq!(run.scavengers[0].process.ended, records::run::Ended::WithThePrimary);
    if traces == "0" {
        // Without its tracer nobody is left.
        assert!(testkit::kill("KILL", tracer), "the tracer ended first");
    } else {
        eprintln!("skipped: nobody may be traced here");
        let _ = testkit::kill("KILL", tracer);
    }
    nobody_left(&place);
}
