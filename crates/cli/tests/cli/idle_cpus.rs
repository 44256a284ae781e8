//! Guests of a primary that has no time for them, while a CPU is idle.

use records::run::{Run, Scavenger};
use testkit::Place;

/// A primary that yields once in some microseconds, until its time is over; and a scavenger that
/// computes for ever.
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
    for (time_t end = time(0) + atol(argv[1]); time(0) < end; compute(20000)) at = load(at, argc * 2) % NODES;
    return at < 0;
}
";

fn harvested(options: &[&str]) -> Scavenger {
    let place = Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    let arguments = ["--choose", "every-load", "--max-slowdown", "300%", "--scavenger", "./p"];
    let run = place
        .harvest(&[options, &arguments, &["--record", "run.json", "--", "./p", "4"]].concat())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", testkit::text(&run.stderr));
    let mut run = records::read::<Run>(&place.at("run.json")).unwrap().body;
    run.scavengers.remove(0)
}

fn went_home(scavenger: &Scavenger) -> bool {
    scavenger.trips_home.iter().any(|trip| trip.because.contains("idle"))
}

#[test]
fn a_guest_that_gets_nothing_done_aboard_goes_to_an_idle_cpu() {
    if testkit::processors() < 2 {
        eprintln!("one CPU: not tried");
        return;
    }
    let free = harvested(&[]);
    assert!(went_home(&free), "{free:?}");
    let kept = harvested(&["--stay-aboard"]);
    assert!(!went_home(&kept), "{kept:?}");
}
