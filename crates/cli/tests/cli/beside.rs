//! A primary whose stalls are not worth harvesting: all programs run as they are, the scavengers
//! where a CPU is idle.

use records::plan::{Origin, Plan, Role};
use records::run::{Ended, Proof, Run};
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::{Place, text};

/// `sleeps` leaves its CPU for most of its time; `waits` does not; `computes` has no load that may
/// miss. All tell what they found when they began. `guest` never ends.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void *ring[1 << 23];
static void *volatile at;
static void tell(int argc, char **argv) {
    printf("%d arguments, the last is %s\n", argc, argv[argc - 1]);
    for (int s = 1; s < 32; s++) {
        struct sigaction action;
        sigset_t blocked;
        if (s != SIGKILL && s != SIGSTOP && !sigaction(s, 0, &action) && action.sa_handler != SIG_DFL) printf("%d is ignored\n", s);
        if (!sigprocmask(SIG_BLOCK, 0, &blocked) && sigismember(&blocked, s)) printf("%d is blocked\n", s);
    }
    for (int fd = 0; fd < 8; fd++) if (fcntl(fd, F_GETFD) != -1) printf("%d is open\n", fd);
    printf("policy %d\n", sched_getscheduler(0));
    fflush(stdout);
}
int main(int argc, char **argv) {
    for (long i = 0; i < 1 << 23; i++) ring[i] = &ring[(i * 7921 + 4001) % (1 << 23)];
    tell(argc, argv);
    if (!strcmp(argv[1], "guest")) for (unsigned long i = 0;; i++) __asm__ volatile("" : "+r"(i));
    if (!strcmp(argv[1], "computes")) {
        for (unsigned long i = 0; i < 1000000; i++) __asm__ volatile("" : "+r"(i));
        return 7;
    }
    void **p = ring;
    if (!strcmp(argv[1], "waits")) {
        for (clock_t end = clock() + 1500000; clock() < end; at = p) for (int n = 0; n < 100000; n++) p = *p;
        return 7;
    }
    for (int i = 0; i < 60; i++) {
        for (int n = 0; n < 5000; n++) p = *p;
        at = p;
        nanosleep(&(struct timespec){0, 20000000}, 0);
    }
    return 7;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn profiled(place: &Place) {
    let mut profile = place.command(env!("CARGO_BIN_EXE_gleaner"));
    profile.args(["profile", "-q", "--", "./p", "sleeps", "a b"]);
    assert_eq!(profile.output().unwrap().status.code(), Some(1), "the program's end is told");
}

fn run_of(place: &Place) -> Run {
    records::read::<Run>(&place.at("run.json")).unwrap().body
}

const SLEEPS: [&str; 11] = [
    "--scavenger",
    "./p guest",
    "--scavenger-out",
    "said",
    "--record",
    "run.json",
    "--max-slowdown",
    "20%",
    "--",
    "./p",
    "sleeps",
];

#[test]
fn a_primary_that_sleeps_by_its_profile_runs_as_it_is() {
    let place = place();
    profiled(&place);
    let output = place.harvest(&[&SLEEPS[..], &["a b"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(text(&output.stdout).starts_with("3 arguments, the last is a b\n"), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    assert!(said.contains("all programs ran as they are") && said.contains("slept"), "{said}");
    let run = run_of(&place);
    assert!(run.beside.is_some_and(|why| why.contains("slept")));
    assert!(matches!(run.primary.twin.proof, Proof::NotProven { .. }));
    let guest = &run.scavengers[0];
    assert_eq!(guest.process.ended, Ended::WithThePrimary);
    assert!(guest.times.aboard.value() == Some(0.0) && guest.progress.value().is_some_and(|pace| pace > 0.0));
    let idle = "policy 5\n"; // SCHED_IDLE
    assert!(std::fs::read_to_string(place.at("said")).unwrap().ends_with(idle));
    let dry = place.harvest(&[&["--dry-run"], &SLEEPS[..], &["a b"]].concat()).output().unwrap();
    assert!(text(&dry.stdout).starts_with("not worth it"), "{}", text(&dry.stdout));
    // With other arguments nothing is known of it, and a user can want it all the same.
    for (options, arguments) in [(&[][..], &["ab"][..]), (&["--stay-aboard"], &["a b"])] {
        let output = place.harvest(&[options, &SLEEPS, arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        let run = run_of(&place);
        assert!(run.beside.is_none(), "{options:?}");
        assert!(matches!(run.primary.twin.proof, Proof::Proven { .. }));
    }
}

#[test]
fn sites_go_by_the_last_profile_of_the_program() {
    let place = place();
    let profile = || {
        let mut profile = place.command(env!("CARGO_BIN_EXE_gleaner"));
        profile.args(["profile", "-q", "--", "./p", "waits"]);
        assert_eq!(profile.output().unwrap().status.code(), Some(1));
    };
    let origins = |option: &[&str]| {
        let planned =
            ["--dry-run", "--record", "plan.json", "--scavenger", "./p guest", "--", "./p", "waits"];
        assert!(place.harvest(&[option, &planned].concat()).output().unwrap().status.success());
        let plan = records::read::<Plan>(&place.at("plan.json")).unwrap().body;
        let modules = plan.modules.into_iter().filter(|module| module.role == Role::Primary);
        modules.flat_map(|module| module.sites).map(|site| site.gain.p_miss_from).collect::<Vec<Origin>>()
    };
    // On a busy machine a profile may not show that anything is worth a site.
    let mut profiles = std::iter::repeat_with(|| {
        profile();
        origins(&[])
    });
    let by_profile = profiles.by_ref().take(5).find(|origins| !origins.is_empty()).unwrap_or_default();
    assert!(by_profile.contains(&Origin::Profile) && !by_profile.contains(&Origin::Prior), "{by_profile:?}");
    assert!(!origins(&["--stay-aboard"]).contains(&Origin::Profile));
}

/// What takes too long to rewrite is not waited for, unless a user wants it.
#[test]
fn programs_that_take_long_to_rewrite_run_as_they_are() {
    let place = place();
    assert!(place.compile("cc", "q", &["-O1", "-fno-inline"]));
    let run = |options: &[&str], scavenger: &str| {
        let programs = ["--record", "run.json", "--scavenger", scavenger, "--", "./p", "computes"];
        let output = place.harvest(&[options, &programs].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        let run = run_of(&place);
        let proven = |twin: &records::run::TwinUsed| matches!(twin.proof, Proof::Proven { .. });
        let is_rewritten = [proven(&run.primary.twin), proven(&run.scavengers[0].process.twin)];
        (is_rewritten, run.beside, text(&output.stderr))
    };
    let too_long = ["--program-time", "0s", "--choose", "every-load"];
    let (rewritten, beside, said) = run(&too_long, "./p guest");
    assert_eq!(rewritten, [false, false]);
    assert!(
        beside.is_some_and(|why| why.contains("--program-time")) && said.contains("(--dry-run)"),
        "{said}"
    );
    // Once they are rewritten nothing takes long.
    let (rewritten, ..) = run(&["--choose", "every-load"], "./p guest");
    assert_eq!(rewritten, [true, true]);
    let (rewritten, beside, _) = run(&too_long, "./p guest");
    assert_eq!((rewritten, beside), ([true, true], None));
    let (rewritten, beside, said) = run(&too_long, "./q guest");
    assert!(rewritten == [false, false] && beside.is_some_and(|why| why.contains("guest")), "{said}");
    let (rewritten, ..) = run(&[&too_long[..], &["--stay-aboard"]].concat(), "./q guest");
    assert_eq!(rewritten, [true, true]);
}

/// A program finds signals, streams and limits as without Gleaner; and none of it is left.
#[test]
fn what_runs_as_it_is_finds_everything_as_it_was() {
    let place = place();
    let under = |shell: &str, command: &Command| {
        let mut words = vec![command.get_program()];
        words.extend(command.get_args());
        let mut under = place.command("sh");
        under.args(["-c", &format!("{shell}; exec \"$@\""), "sh"]).args(words);
        under.output().unwrap()
    };
    let mut alone = place.command("./p");
    alone.arg("computes");
    let no_yields = ["--most-sites", "0", "-q", "--record", "run.json"];
    let harvested =
        place.harvest(&[&no_yields[..], &["--scavenger", "./p guest", "--", "./p", "computes"]].concat());
    for shell in ["true", "trap '' HUP PIPE USR1", "exec <&-", "trap '' INT QUIT; exec <&- >&1"] {
        let (alone, harvested) = (under(shell, &alone), under(shell, &harvested));
        assert_eq!(text(&harvested.stdout), text(&alone.stdout), "{shell}");
        assert_eq!(harvested.status.code(), alone.status.code(), "{shell}");
        assert!(run_of(&place).beside.is_some_and(|why| why.contains("no place")));
    }
}

#[test]
fn without_a_cache_and_of_a_part_of_a_run_nothing_is_kept() {
    let place = place();
    let harvest = ["--no-cache", "--scavenger", "./p guest", "--", "./p", "computes"];
    assert_eq!(place.harvest(&harvest).output().unwrap().status.code(), Some(7));
    let mut profile = place.command(env!("CARGO_BIN_EXE_gleaner"));
    profile.args(["profile", "-q", "--to", "100ms", "--", "./p", "sleeps", "a b"]);
    assert_eq!(profile.output().unwrap().status.code(), Some(1));
    assert!(!place.at("cache/gleaner/kept").exists());
}

/// Nobody is left of a harvest whose launcher was killed, but the primary, as from a shell.
#[test]
fn scavengers_that_run_as_they_are_end_with_the_launcher() {
    let place = place();
    profiled(&place);
    let mut launcher = place.harvest(&[&SLEEPS[..], &["a b"]].concat()).spawn().unwrap();
    let began = Instant::now();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let said = || std::fs::read_to_string(place.at("said")).unwrap_or_default();
    until("the scavenger begins", &|| said().ends_with("policy 5\n"));
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    let guests = || {
        let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        let of_here = |path: &std::path::PathBuf| {
            std::fs::read_link(path.join("exe")).is_ok_and(|exe| exe.starts_with(place.folder()))
        };
        let is_guest = |path: &std::path::PathBuf| {
            std::fs::read(path.join("cmdline")).is_ok_and(|words| words.ends_with(b"guest\0"))
        };
        all.filter(of_here).any(|path| is_guest(&path))
    };
    until("the scavenger ends", &|| !guests());
}
