//! `gleaner profile --trace`: all accesses of programs whose traffic is known, by programs of
//! several kinds; and what cannot be traced.

use crate::allocations::profiled;
use records::profile::Profile;
use std::process::Output;
use testkit::{Place, text};

/// Reads 16 MiB four times after it was written once; with threads, signals or children beside it,
/// each by an argument.
const STREAM: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#define WORDS (2 << 20)
static uint64_t a[WORDS];
static volatile sig_atomic_t ticks;
static void tick(int n) { (void)n; char b[64]; memset(b, 1, sizeof b); ticks += b[3]; }
__attribute__((noinline, noclone)) static uint64_t sum(const uint64_t *p, size_t n) {
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++) s += p[i];
    __asm__ volatile("" : "+r"(s) : : "memory"); /* each call counts */
    return s;
}
static void *thread(void *part) { return (void *)sum(part, WORDS / 4); }
int main(int argc, char **argv) {
    const char *with = argc > 1 ? argv[1] : "";
    uint64_t s = 0;
    for (size_t i = 0; i < WORDS; i++) a[i] = i;
    if (!strcmp(with, "signals")) {
        signal(SIGALRM, tick);
        struct itimerval every = {{0, 1000}, {0, 1000}};
        setitimer(ITIMER_REAL, &every, 0);
    }
    for (int round = 0; round < 4; round++) s += sum(a, WORDS);
    if (!strcmp(with, "threads"))
        for (int round = 0; round < 8; round++) {
            pthread_t t[4];
            for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, thread, a + i * (WORDS / 4));
            for (int i = 0; i < 4; i++) { void *r; pthread_join(t[i], &r); s += (uintptr_t)r; }
        }
    if (!strcmp(with, "fork"))
        for (int i = 0; i < 4; i++) {
            int status = 0;
            if (fork() == 0) _exit(sum(a, WORDS) % 2 ? 0 : 1);
            wait(&status);
            s += status;
        }
    printf("%lu %d\n", (unsigned long)s, ticks >= 0);
    return !strcmp(with, "fails") ? 3 : 0;
}
"#;

const BYTES: f64 = (2 << 20) as f64 * 8.0;

fn place() -> Place {
    Place::new(STREAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn traced(place: &Place, options: &[&str], with: &str) -> Option<(Output, Profile)> {
    let mut arguments = vec!["--budget", "30", "--no-probes", "--trace"];
    arguments.extend(options);
    arguments.extend(["--", "./p", with]);
    profiled(place, &arguments)
}

/// Of a cache that holds none of it from round to round.
const SMALL: [&str; 2] = ["--if", "l2=256K,l3=1M"];

#[test]
fn a_streams_traffic_is_known() {
    let place = place();
    let Some((output, profile)) = traced(&place, &SMALL, "") else { return };
    let says = text(&output.stderr);
    let trace = profile.trace.as_ref().unwrap_or_else(|| panic!("{says}"));
    let read = trace.read.value().unwrap() / BYTES;
    assert!((4.95..5.3).contains(&read), "written once, read four times: {read}\n{says}");
    let written = trace.written.value().unwrap() / BYTES;
    assert!((0.9..1.15).contains(&written), "{written}");
    let first = &trace.instructions[0];
    assert_eq!(first.function.as_deref(), Some("sum"), "{first:#?}");
    let share = first.by_level.dram.value().unwrap();
    assert!((0.115..0.13).contains(&share), "a line in eight: {share}");
    assert!(trace.covered.value().unwrap() > 0.2, "{:?}", trace.covered);
    assert!(!profile.bandwidth.is_empty() && says.contains("through a model of the caches"), "{says}");
    let total: f64 = profile
        .bandwidth
        .iter()
        .map(|slice| slice.read.value().unwrap() * (slice.to.value().unwrap() - slice.from.value().unwrap()))
        .sum();
    assert!((total / trace.read.value().unwrap() - 1.0).abs() < 0.01, "{total}");
}

#[test]
fn a_cache_that_holds_all_of_it_saves_the_traffic() {
    let place = place();
    let Some((_, profile)) = traced(&place, &["--if", "l3=64M", "--if", "pages=2M"], "") else { return };
    let trace = profile.trace.unwrap();
    let read = trace.read.value().unwrap() / BYTES;
    assert!(read < 1.3, "only once: {read}");
    assert!(trace.by_level.walks.value().unwrap() < 1e-4, "{:?}", trace.by_level);
}

#[test]
fn threads_signals_and_children_are_told_and_run_as_before() {
    let place = place();
    for (with, rounds) in [("threads", 4.0 + 8.0), ("signals", 4.0), ("fork", 4.0 + 4.0)] {
        let Some((output, profile)) = traced(&place, &SMALL, with) else { return };
        let trace = profile.trace.as_ref().unwrap_or_else(|| panic!("{with}: {}", text(&output.stderr)));
        let otherwise = profile.refusals.iter().find(|refused| refused.why.contains("otherwise"));
        assert_eq!(otherwise, None, "{with}");
        let read = trace.read.value().unwrap() / BYTES - 1.0;
        assert!((read / rounds - 1.0).abs() < 0.15, "{with}: {read} for {rounds}");
    }
}

/// Fills 16 MiB twice and copies it four times, by libc: once to elsewhere, and by `memmove`.
const COPIES: &str = r#"
#include <stdio.h>
#include <string.h>
#define BYTES (16 << 20)
static char a[BYTES], b[BYTES];
static void *(*volatile fill)(void *, int, size_t) = memset;
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile move)(void *, const void *, size_t) = memmove;
int main(void) {
    fill(a, 1, BYTES);
    fill(b, 2, BYTES);
    for (int round = 0; round < 3; round++) copy(round % 2 ? a : b, round % 2 ? b : a, BYTES);
    move(a, b, BYTES);
    printf("%d\n", a[BYTES - 1] + b[0]);
}
"#;

/// What libc copies is read once and written once for each copy, whichever way it takes: stores
/// past the caches, or through them, in which case the line may be read before it is written.
#[test]
fn what_libc_copies_and_fills_is_told() {
    let place = Place::new(COPIES, env!("CARGO_BIN_EXE_gleaner"));
    let Some((output, profile)) = traced(&place, &SMALL, "") else { return };
    let says = text(&output.stderr);
    let trace = profile.trace.as_ref().unwrap_or_else(|| panic!("{says}"));
    let [read, written] = [&trace.read, &trace.written].map(|moved| moved.value().unwrap() / BYTES);
    assert!((3.8..10.2).contains(&read), "copied four times, filled twice: {read}\n{says}");
    assert!((5.8..6.2).contains(&written), "copied four times, filled twice: {written}\n{says}");
    let copies = |why: &str| why.contains("memcpy") || why.contains("memmove") || why.contains("memset");
    let silent = profile.refusals.iter().find(|refused| copies(&refused.why));
    assert_eq!(silent, None, "{says}");
}

#[test]
fn how_it_ends_is_compared() {
    let place = place();
    let Some((output, profile)) = traced(&place, &SMALL, "fails") else { return };
    assert_eq!(output.status.code(), Some(1), "the program failed");
    assert!(profile.trace.is_some() && !profile.refusals.iter().any(|r| r.why.contains("otherwise")));
}

#[test]
fn what_cannot_be_traced_says_so_and_leaves_the_profile() {
    let place = place();
    assert!(place.compile("gcc", "static", &["-O2", "-static", "-pthread"]), "a static program");
    let arguments = ["--budget", "30", "--no-probes", "--trace", "--", "./static"];
    let Some((output, profile)) = profiled(&place, &arguments) else { return };
    assert!(profile.trace.is_none() && profile.sampling.samples > 0);
    let why = profile.refusals.iter().find(|refused| refused.what == "trace").map(|refused| &refused.why);
    assert!(why.is_some_and(|why| why.contains("linked statically")), "{}", text(&output.stderr));
}

#[test]
fn wrong_changes_and_machines_are_refused() {
    let place = place();
    for (options, says) in [
        (&["--trace", "--if", "l4=1M"][..], "l1, l2, l3 and pages can"),
        (&["--trace", "--on", "p.c"], "machine record"),
        (&["--if", "l3=1M"], "--trace"),
    ] {
        let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
        let output = command.arg("profile").args(options).args(["--", "./p"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(text(&output.stderr).contains(says), "{options:?}: {}", text(&output.stderr));
    }
}
