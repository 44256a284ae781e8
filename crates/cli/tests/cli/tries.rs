//! Changes that need no source: prefetches that a rewrite inserts, huge pages, cache lines of their
//! own for what is allocated, other CPUs; what the record says of them. Whether something is faster
//! is the bench's part.

use crate::allocations::profiled;
use records::profile::{FindingKind, Profile, Trial, TrialOutcome};
use std::process::Stdio;
use testkit::{Place, text};

/// Goes down the columns of a matrix and branches on what it finds.
const COLUMNS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#define ROWS 16384
#define COLUMNS 512
static uint32_t a[ROWS][COLUMNS];
__attribute__((noinline, noclone)) static unsigned long column(int j) {
    unsigned long s = 0, h = 1;
    for (int i = 0; i < ROWS; i++) {
        uint32_t v = a[i][j];
        if (v & 1) { h = h * 31 + v; h ^= h >> 7; } else { s += v / 3; s ^= h << 3; }
    }
    return s ^ h;
}
int main(void) {
    uint64_t x = 88172645463325252UL;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j += 16) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; a[i][j] = x; }
    unsigned long all = 0;
    for (int round = 0; round < 200; round++)
        for (int j = 0; j < COLUMNS; j += 64) all += column(j);
    printf("%lu\n", all);
}
"#;

fn place() -> Place {
    Place::new(COLUMNS, env!("CARGO_BIN_EXE_gleaner"))
}

#[test]
fn a_strided_load_is_tried_with_prefetches() {
    let place = place();
    let alone = place.command("./p").output().unwrap();
    let arguments = ["--budget", "30", "--try", "--pairs", "2", "--", "./p"];
    let Some((output, profile)) = profiled(&place, &arguments) else { return };
    assert_eq!(text(&output.stdout), text(&alone.stdout), "it is shown once: {}", text(&output.stderr));
    let load = &profile.loads[0];
    if load.probes < 64 {
        eprintln!("skipped: no breakpoints are to be had: {:?}", profile.refusals);
        return;
    }
    assert_eq!(load.stride.value(), Some(2048.0), "{load:#?}");
    let trial = profile.trials.iter().find(|trial| trial.kind == FindingKind::Prefetch);
    let trial = trial.unwrap_or_else(|| panic!("{:#?}", profile.trials));
    assert_eq!((trial.rounds, trial.same_output), (2, Some(true)), "{trial:#?}");
    assert!(trial.faster.value().is_some() && trial.with.value().is_some(), "{trial:#?}");
    let faster = trial.faster.estimate().unwrap();
    let by_interval = match (faster.lo > 1.0, faster.hi < 1.0) {
        (true, _) => TrialOutcome::Faster,
        (_, true) => TrialOutcome::Slower,
        _ => TrialOutcome::NoDifference,
    };
    assert_eq!(trial.outcome, by_interval, "{trial:#?}");
    assert!(text(&output.stderr).contains("tried, by whole runs in pairs"), "{}", text(&output.stderr));
}

#[test]
fn prefetches_are_inserted_and_proven() {
    let place = place();
    let gleaner =
        |arguments: &[&str]| place.command(env!("CARGO_BIN_EXE_gleaner")).args(arguments).output().unwrap();
    let code =
        std::process::Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(place.at("p")).output();
    let Ok(code) = code else { return eprintln!("skipped: there is no objdump") };
    let code = text(&code.stdout);
    let column = code.split_once("<column>:").expect("the function").1;
    let load = column.lines().find(|line| line.contains("mov    (%r")).expect("its load");
    let address = load.trim().split(':').next().unwrap();
    let output = gleaner(&["twin", "--prefetch", &format!("0x{address}:32768"), "-o", "q", "p"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let proof = gleaner(&["proof", "p", "q"]);
    assert!(proof.status.success(), "{}", text(&proof.stderr));
    let run = |name: &str| place.command(name).output().unwrap();
    assert_eq!(text(&run("./q").stdout), text(&run("./p").stdout));
    let code = std::process::Command::new("objdump").arg("-d").arg(place.at("q")).output().unwrap();
    assert!(text(&code.stdout).contains("prefetcht0 0x8000("), "the distance is there");
    for wrong in ["0x1:", "1", ":5", "0xzz:1", "0x1:99999999999"] {
        let output = gleaner(&["twin", "--prefetch", wrong, "-o", "r", "p"]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

/// The trial of a kind.
fn trial(profile: &Profile, kind: FindingKind) -> &Trial {
    let found = profile.trials.iter().find(|trial| trial.kind == kind);
    found.unwrap_or_else(|| panic!("{:#?} {:#?}", profile.findings, profile.trials))
}

/// Adds up what an array is indexed by.
const GATHER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define INDICES (1 << 22)
#define VALUES (1 << 23)
__attribute__((noinline, noclone)) static unsigned long
sum(const uint32_t *index, const uint64_t *value, long from, long to) {
    unsigned long s = 0, h = 1;
    for (long i = from; i < to; i++) {
        uint64_t v = value[index[i]];
        if (v & 1) { h = h * 31 + v; h ^= h >> 7; } else { s += v / 3; s ^= h << 3; }
    }
    return s ^ h;
}
int main(void) {
    uint32_t *index = malloc(INDICES * sizeof *index);
    uint64_t *value = malloc(VALUES * sizeof *value);
    uint64_t x = 88172645463325252UL;
    for (long i = 0; i < VALUES; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; value[i] = x; }
    for (long i = 0; i < INDICES; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; index[i] = x % VALUES; }
    unsigned long all = 0;
    for (int round = 0; round < 4; round++)
        for (long i = 0; i < INDICES; i += 4096) all += sum(index, value, i, i + 4096);
    printf("%lu\n", all);
}
"#;

#[test]
fn a_load_that_is_indexed_by_another_is_tried_with_prefetches() {
    let place = Place::new(GATHER, env!("CARGO_BIN_EXE_gleaner"));
    let arguments = ["--budget", "30", "--try", "--pairs", "2", "--", "./p"];
    let Some((output, profile)) = profiled(&place, &arguments) else { return };
    let trial = trial(&profile, FindingKind::Prefetch);
    assert_eq!((trial.rounds, trial.same_output), (2, Some(true)), "{trial:#?} {}", text(&output.stderr));
    assert!(trial.form.contains("steps of its index ahead"), "{trial:#?}");
}

/// Its threads count side by side: each in an allocation of its own, or all in one.
const COUNTERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef EACH
#define EACH 1
#endif
static void *count(void *given) {
    volatile long *own = given;
    for (long i = 0; i < 60000000; i++) own[i & 1]++;
    return NULL;
}
__attribute__((noinline)) static long *counter(int number) {
    if (EACH) return calloc(2, sizeof(long));
    static long *all;
    if (!all) all = calloc(8, sizeof(long));
    return all + 2 * number;
}
int main(void) {
    pthread_t threads[2];
    long *own[4];
    for (int i = 0; i < 4; i++) own[i] = counter(i);
    int first = (unsigned long)own[0] / 64 == (unsigned long)own[1] / 64 ? 0 : 1;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, count, own[first + i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", own[first][0] + own[first + 1][1]);
}
"#;

/// Their threads meet as soon as two CPUs are idle for a second.
const MEET_WITHIN: std::time::Duration = std::time::Duration::from_secs(180);

/// A profile of the counters in which they are seen to share a line, with trials of these kinds; a
/// busy machine may let the threads hardly meet.
fn counted(source: &str, kinds: &[FindingKind]) -> Option<Profile> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: there is one CPU");
        return None;
    }
    let place = Place::new(source, env!("CARGO_BIN_EXE_gleaner"));
    let begun = std::time::Instant::now();
    while begun.elapsed() < MEET_WITHIN {
        let arguments = ["--no-probes", "--try", "--pairs", "2", "--", "./p"];
        let (_, profile) = profiled(&place, &arguments)?;
        let found = profile.findings.iter().any(|finding| finding.kind == FindingKind::FalseSharing);
        let tried = |kind: &FindingKind| profile.trials.iter().any(|trial| trial.kind == *kind);
        if found && kinds.iter().all(tried) {
            return Some(profile);
        }
    }
    panic!("no false sharing was found, or not all of {kinds:?} was tried");
}

#[test]
fn what_threads_allocate_side_by_side_is_tried_in_lines_of_its_own() {
    let Some(profile) = counted(COUNTERS, &[FindingKind::Pad, FindingKind::Placement]) else { return };
    let trial = trial(&profile, FindingKind::Pad);
    assert_eq!((trial.rounds, trial.same_output), (2, Some(true)), "{trial:#?}");
    let its_site = trial.says.contains("counter") || trial.says.contains("main"); // it may be inlined
    assert!(its_site && trial.form.ends_with("bytes"), "{trial:#?}");
    let placed = self::trial(&profile, FindingKind::Placement);
    assert_eq!((placed.rounds, placed.same_output), (2, Some(true)), "{placed:#?}");
    let site = profile.objects.iter().find_map(|object| object.site.as_ref()).unwrap();
    assert_eq!(site.paths[0].len(), 1, "the program calls calloc itself: {site:?}");
}

#[test]
fn what_lies_in_one_allocation_is_left_to_the_program() {
    let Some(profile) = counted(&format!("#define EACH 0\n{COUNTERS}"), &[FindingKind::Pad]) else { return };
    let trial = trial(&profile, FindingKind::Pad);
    let TrialOutcome::NotTried { why } = &trial.outcome else { panic!("{trial:#?}") };
    assert!(why.contains("one allocation") && why.contains("alignas"), "{why}");
}

/// Chases through pieces that it maps itself.
const MAPPED: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#define PIECES 128
#define WORDS (1 << 17)
int main(void) {
    static uint64_t *piece[PIECES];
    uint64_t x = 88172645463325252UL, s = 0;
    for (int i = 0; i < PIECES; i++) {
        piece[i] = mmap(0, WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece[i] == MAP_FAILED) return 1;
        for (long j = 0; j < WORDS; j++) piece[i][j] = i + j;
    }
    for (long i = 0; i < 2000000; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        s += x = x + piece[x % PIECES][(x >> 8) % WORDS];
    }
    for (int i = 0; i < PIECES; i++) munmap(piece[i], WORDS * 8);
    printf("%lu\n", s);
}
"#;

#[test]
fn what_a_program_maps_itself_is_tried_on_huge_pages() {
    let place = Place::new(MAPPED, env!("CARGO_BIN_EXE_gleaner"));
    let arguments = ["--try", "--pairs", "2", "--", "./p"];
    let Some((_, profile)) = profiled(&place, &arguments) else { return };
    let trial = trial(&profile, FindingKind::HugePages);
    if let TrialOutcome::NotTried { why } = &trial.outcome {
        return eprintln!("skipped: {why}");
    }
    assert_eq!((trial.rounds, trial.same_output), (2, Some(true)), "{trial:#?}");
    assert!(trial.form.contains("memory") || trial.form.contains("maps itself"), "{trial:#?}");
}

#[test]
fn what_cannot_be_run_again_is_not_tried() {
    let place = place();
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    let output = command.args(["profile", "--try", "--", "./p"]).stdin(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("standard input"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "it has not run");
}
