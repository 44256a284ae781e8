//! A primary that comes to no yield for long: its guests are taken from it, and run at home. Also
//! where it is about to meet one.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Place, processors, text, wait_for};

/// A chase in either role. `primary`: once its guest has begun, it computes without a load until
/// that is done. `stops`: it stops itself, for two seconds and until that is done. `chaser`: until
/// it is told to end. Anything else is a guest: once it is told that the primary is busy, it does
/// some more.
const SOURCE: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { MANY = 1 << 21 };
static size_t next[MANY], at;
static int there(const char *name) { return access(name, F_OK) == 0; }
static void make(const char *name) { close(creat(name, 0600)); }
static void chase(long steps) { while (steps--) at = next[at]; }
static unsigned long compute(unsigned long x) {
    for (long i = 0; i < 20000000; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}
int main(int argc, char **argv) {
    size_t x = 1;
    for (size_t i = 0; i < MANY; i++) next[i] = i;
    for (size_t i = MANY - 1; i > 0; i--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        size_t j = (x >> 20) % i, other = next[i];
        next[i] = next[j], next[j] = other;
    }
    if (!strcmp(argv[1], "primary")) {
        while (!there("begun")) chase(10000), usleep(1000); /* for scavengers at home */
        chase(1000000);
        make("busy");
        for (time_t until = time(0) + 100; !there("done") && time(0) < until;) x = compute(x);
        return there("done") && at < MANY && x ? 0 : 1;
    }
    if (!strcmp(argv[1], "stops")) {
        while (!there("begun")) chase(10000), usleep(1000); /* for scavengers at home */
        chase(1000000);
        pid_t stopped = getpid();
        if (!fork()) {
            sleep(2);
            for (time_t until = time(0) + 100; !there("done") && time(0) < until;) usleep(1000);
            kill(stopped, SIGCONT);
            _exit(0);
        }
        make("busy");
        raise(SIGSTOP);
        return there("done") && at < MANY && wait(0) > 0 ? 0 : 1;
    }
    if (!strcmp(argv[1], "chaser")) {
        while (!there("end")) chase(100000);
        printf("%d\n", at < MANY);
        return 7;
    }
    for (int more = 20; more; more -= there("busy")) {
        chase(200000);
        make("begun");
    }
    if (at < MANY) make("done");
    for (;;) chase(200000);
}
"#;

fn place() -> Place {
    Place::new(SOURCE, env!("CARGO_BIN_EXE_gleaner"))
}

#[test]
fn guests_work_at_home_while_their_primary_comes_to_no_yield() {
    if processors() < 2 {
        return eprintln!(
            "skipped: the primary computes, and there is no other processor for guests at home"
        );
    }
    let place = place();
    let output = place.harvest(&["--scavenger", "./p guest", "--", "./p", "primary"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// And it is not slower for that: the time is nobody's.
#[test]
fn guests_work_at_home_while_their_primary_is_stopped() {
    let place = place();
    let began = Instant::now();
    let mut harvest =
        place.harvest(&["--record", "run.json", "--scavenger", "./p guest", "--", "./p", "stops"]);
    let output = harvest.output().unwrap();
    let took = began.elapsed();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let run = records::read::<records::run::Run>(&place.at("run.json")).expect("a record").body;
    let watched = run.slowdown.watched.value().expect("it was watched");
    let most = took.as_secs_f64() - 1.9;
    assert!(watched > 0.0 && watched < most, "watched for {watched} s of {took:?}");
}

#[test]
fn a_primary_that_is_stopped_on_its_way_to_a_guest_goes_on_alone() {
    let has_python = |output: std::process::Output| text(&output.stdout).contains("python is here");
    let gdb = || {
        let mut gdb = Command::new("gdb");
        gdb.args(["-q", "-nx", "-batch"]).stdin(Stdio::null());
        gdb
    };
    if !gdb().args(["-ex", "python print('python is here')"]).output().is_ok_and(has_python) {
        return eprintln!("skipped: 'gdb' with Python is missing (Debian: apt install gdb)");
    }
    let place = place();
    let mut harvest =
        place.harvest(&["--max-slowdown", "10000%", "--scavenger", "./p guest", "--", "./p", "chaser"]);
    let mut harvest = harvest.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let primary = chaser_below(harvest.id());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/no_yield/stop.py");
    let seen =
        gdb().current_dir(place.folder()).args(["-p", &primary.to_string(), "-x", script]).output().unwrap();
    let said = text(&seen.stdout);
    if !said.lines().any(|line| line == "met") {
        let _ = harvest.kill();
        panic!("{said}\n{}", text(&seen.stderr));
    }
    let output = harvest.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("1\n", Some(7)), "{said}");
}

/// The child of a launcher that runs as a chaser, once a guest has begun beside it.
fn chaser_below(launcher: u32) -> i32 {
    let pid = wait_for("a primary that runs as a chaser", Duration::from_secs(60), || {
        let children = std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children"));
        let children = children.unwrap_or_default();
        let line = |pid: &str| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        children.split_whitespace().find(|pid| line(pid).ends_with(b"chaser\0"))?.parse().ok()
    });
    std::thread::sleep(Duration::from_secs(2)); // it builds what it chases
    pid
}
