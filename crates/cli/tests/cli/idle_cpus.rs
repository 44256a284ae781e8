//! Scavengers while a CPU is idle: another one than the primary's, or its own when it sleeps.

use records::run::{Run, Scavenger};
use testkit::Place;

/// A primary that yields once in some microseconds, or that also sleeps for more than half of its
/// time, until its time is over; and a scavenger that computes for ever.
const PROGRAM: &str = r"
#include <stdlib.h>
#include <time.h>
enum { NODES = 1 << 20 };
static volatile long list[NODES];
static volatile unsigned long sum;
__attribute__((noinline)) static void compute(unsigned long n) { for (unsigned long i = 1; i != n; i++) sum += i * i ^ i >> 3; }
__attribute__((noinline)) static long load(long at, int n) { while (n--) at += list[at * 7919 % NODES] + 1; return at; }
int main(int argc, char **argv) {
    if (argc < 2) compute(0);
    long at = 0;
    const struct timespec short_while = {.tv_nsec = 1000000};
    for (time_t end = time(0) + atol(argv[1]); time(0) < end; compute(20000)) {
        at = load(at, 4) % NODES;
        for (int i = 0; argc > 2 && i < 19; i++) compute(20000);
        if (argc > 2) nanosleep(&short_while, 0);
    }
    return at < 0;
}
";

fn harvested(options: &[&str], primary: &[&str], one_cpu: bool) -> Scavenger {
    let place = Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    let arguments = ["--choose", "every-load", "--max-slowdown", "300%", "--scavenger", "./p"];
    let last = ["--record", "run.json", "--", "./p", "4"];
    let mut command = place.harvest(&[options, &arguments, &last, primary].concat());
    if one_cpu {
        command = testkit::on_one_processor(&command);
    }
    let run = command.output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", testkit::text(&run.stderr));
    let mut run = records::read::<Run>(&place.at("run.json")).unwrap().body;
    run.scavengers.remove(0)
}

fn went_home(scavenger: &Scavenger) -> bool {
    scavenger.trips_home.iter().any(|trip| trip.because.contains("idle"))
}

/// Seconds that it ran at home, and that it was aboard.
fn seconds(scavenger: &Scavenger) -> [f64; 2] {
    [&scavenger.times.running, &scavenger.times.aboard].map(|time| time.value().unwrap_or(0.0))
}

#[test]
fn a_scavenger_runs_at_home_where_a_cpu_is_idle() {
    if testkit::processors() < 2 {
        eprintln!("one CPU: not tried");
        return;
    }
    // On a busy machine a CPU is idle for moments only.
    let free = harvested(&[], &[], false);
    let [at_home, aboard] = seconds(&free);
    assert!(at_home > aboard || went_home(&free), "{free:?}");
    let kept = harvested(&["--stay-aboard"], &[], false);
    let [at_home, aboard] = seconds(&kept);
    assert!(aboard > at_home && !went_home(&kept), "{kept:?}");
}

/// It has no CPU of its own: only what the primary leaves of its one.
#[test]
fn a_scavenger_of_a_server_that_sleeps_between_requests_works_while_it_sleeps() {
    let free = harvested(&[], &["sleeps"], true);
    let [at_home, aboard] = seconds(&free);
    assert!(at_home > aboard, "{free:?}");
    let busy = harvested(&[], &[], true);
    let [at_home, aboard] = seconds(&busy);
    assert!(aboard > at_home, "{busy:?}");
}
