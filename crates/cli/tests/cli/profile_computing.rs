//! `gleaner profile` of programs that compute with what is near: an operation that has a load for
//! an operand is no wait for memory, whatever it takes by itself.

use crate::allocations::profiled;
use records::profile::Profile;
use testkit::{Place, text};

/// Loops of one instruction that loads and computes, over the KiB that it is told.
const FOLDED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
#define LOOP(operation, step, kind, to) \
    __asm__ volatile("1: " operation " (%0),%1; add $" #step ",%0; cmp %2,%0; jne 1b" : "+r"(p), kind(to) : "r"(q) : "memory")
int main(int count, char **words) {
    size_t bytes = strtoul(words[2], 0, 10) * 1024;
    float *all = aligned_alloc(4096, bytes), sum = 0;
    long n = bytes / 4, other = 1;
    for (long i = 0; i < n; i++) all[i] = i % 7;
    double end = now() + 1.0;
    do {
        for (long again = n < 65536 ? 65536 / n : 1; again--;) {
            float *p = all, *q = all + n;
            if (!strcmp(words[1], "addss")) LOOP("addss", 4, "+x", sum);
            else if (!strcmp(words[1], "add")) LOOP("add", 8, "+r", other);
            else if (!strcmp(words[1], "imul")) LOOP("imul", 8, "+r", other);
            else if (!strcmp(words[1], "far")) LOOP("add", 256, "+r", other);
        }
    } while (now() < end);
    printf("%g %ld\n", sum, other);
    return 0;
}
"#;

/// The share that waits for loads: of what was looked at, its lowest and its highest.
fn waits(profile: &Profile, told: &str) -> (f64, f64) {
    let share = profile.summary.memory_bound.estimate().unwrap_or_else(|| panic!("{told}"));
    (share.lo, share.hi)
}

/// No word of it in findings or in what is advised.
fn is_no_finding(profile: &Profile, told: &str) {
    assert!(waits(profile, told).0 < 0.15, "{told}");
    assert!(!told.contains("high") && !told.contains("gleaner harvest"), "{told}");
}

#[test]
fn operations_on_near_data_are_no_waits() {
    let place = Place::new(FOLDED, env!("CARGO_BIN_EXE_gleaner"));
    for (operation, kib) in [("addss", "8"), ("add", "8"), ("imul", "8"), ("addss", "65536")] {
        let Some((output, profile)) = profiled(&place, &["--", "./p", operation, kib]) else { return };
        is_no_finding(&profile, &format!("{operation} {kib}\n{}", text(&output.stderr)));
    }
    let Some((output, profile)) = profiled(&place, &["--", "./p", "far", "262144"]) else { return };
    let told = text(&output.stderr);
    assert!(waits(&profile, &told).1 > 0.4, "a line each time: {told}");
}

#[test]
fn locked_additions_to_own_lines_are_no_waits() {
    let place = Place::uncompiled(
        r"
#include <pthread.h>
static struct { long n; char pad[120]; } own[2] __attribute__((aligned(128)));
static void *run(void *p) {
    for (long i = 0; i < 60000000; i++) __atomic_fetch_add((long *)p, 1, __ATOMIC_SEQ_CST);
    return 0;
}
int main(void) {
    pthread_t all[2];
    for (int i = 0; i < 2; i++) pthread_create(all + i, 0, run, &own[i]);
    for (int i = 0; i < 2; i++) pthread_join(all[i], 0);
    return 0;
}
",
        env!("CARGO_BIN_EXE_gleaner"),
    );
    assert!(place.compile("cc", "p", &["-pthread"]));
    let Some((output, profile)) = profiled(&place, &["--", "./p"]) else { return };
    is_no_finding(&profile, &text(&output.stderr));
}

#[test]
fn an_interpreter_that_counts_does_not_wait() {
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        return;
    }
    let place = Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner"));
    let program = "s = 0\nfor i in range(6000000): s = (s * 3 + i) & 0xffff\nprint(s)\n";
    std::fs::write(place.at("p.py"), program).unwrap();
    let Some((output, profile)) = profiled(&place, &["--", python, "p.py"]) else { return };
    is_no_finding(&profile, &text(&output.stderr));
}
