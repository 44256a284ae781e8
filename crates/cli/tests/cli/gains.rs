//! What a harvest says that it gained: each scavenger's pace where it is known, turns and times.

use testkit::{Place, said, text};

/// Chases through a list larger than most caches, as often as its argument says, and writes where
/// it ended; with one more argument through a sixteenth of it, which is soon made; without a number
/// it computes, for ever.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { NODES = 1 << 20 };
static struct { void *next; long pad[7]; } list[NODES];
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
static volatile unsigned long sum;
__attribute__((noinline)) static void compute(void) { for (unsigned long i = 1; i; i++) sum += i * i ^ i >> 3; }
int main(int argc, char **argv) {
    if (!atol(argv[1])) compute();
    size_t at = 0, nodes = argc > 2 ? NODES / 16 : NODES;
    for (size_t i = 0; i < nodes; i++) {
        size_t next = (at * 1664525 + 1013904223) % nodes;
        list[at].next = &list[next];
        at = next;
    }
    printf("%d\n", (int)((size_t)chase((void **)list, atol(argv[1])) / sizeof list[0] % NODES));
    return 0;
}
"#;

fn record(place: &Place) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(place.at("run.json")).unwrap()).unwrap()
}

#[test]
fn of_a_scavenger_aboard_times_and_turns_are_told_and_no_pace() {
    let place = Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    // On a busy machine it waits for a CPU to begin on for as long as the primary runs.
    for loads in ["10000000", "30000000", "100000000", "300000000"] {
        let run = place
            .harvest(&["--max-slowdown", "300%", "--stay-aboard", "--record", "run.json"])
            .args(["--scavenger", "./p compute", "--", "./p", loads])
            .output()
            .unwrap();
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{errors}");
        let record = record(&place);
        let guest = &record["scavengers"][0];
        let of = |quantity: &serde_json::Value| quantity["value"].as_f64().unwrap_or(0.0);
        let [aboard, turns] = [&guest["times"]["aboard"], &guest["turns"]].map(of);
        // It was hardly aboard.
        if turns == 0.0 || guest["progress"]["value"].is_number() {
            continue;
        }
        let why = guest["progress"]["unresolved"].as_str().unwrap_or_default();
        assert!(aboard > 0.0 && why.contains("what the program itself counts"), "{record}");
        assert!(record["work"]["unresolved"].is_string() && guest["turn_alone"].is_null(), "{record}");
        let is_told = |part: &str| errors.contains(part);
        assert!(is_told(" of CPU time at home, ") && is_told(" turns aboard in "), "{errors}");
        assert!(is_told("pace not resolved: ") && !is_told("all together did "), "{errors}");
        return;
    }
    panic!("it was hardly aboard: {}", record(&place));
}

#[test]
fn the_time_of_a_turn_is_taken_apart() {
    let place = Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    let told = |loads| {
        let run = place
            .harvest(&["--explain-turns", "--max-slowdown", "1000000%", "--stay-aboard"])
            .args(["--scavenger", "./p 4000000000 soon", "--", "./p", loads])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        text(&run.stderr)
    };
    // On a busy machine it takes its time until the guest has made its list, and it is off the
    // primary for a part of the run.
    let mut runs = ["20000000", "60000000", "200000000", "400000000"].into_iter().map(told);
    let one_of_each = "turns: one of the primary and one of each of ";
    let mut last = String::new();
    let told = runs
        .find(|told| {
            last.clone_from(told);
            told.contains(one_of_each) || told.contains("turns: the primary could not be sampled: ")
        })
        .unwrap_or_default();
    assert!(!last.contains("no guest was seen aboard"), "{last}");
    let Some((_, of_guests)) = told.split_once(one_of_each) else {
        eprintln!("not tried, no guest stayed aboard, or the primary could not be sampled: {last}");
        return;
    };
    let (guests, _) = of_guests.split_once(" guests take ").expect(&told);
    // On average over the run: while the primary is timed alone it is none.
    assert!(guests.parse().is_ok_and(|guests: f64| 0.0 < guests && guests <= 1.0), "{told}");
    let percent = |whose: &str, what: &str| -> f64 {
        let of_it = |line: &&str| line.trim_start().starts_with(whose) && line.contains(what);
        let line = told.lines().find(of_it).unwrap_or_else(|| panic!("{whose} {what}: {told}"));
        line.trim_end_matches('%').rsplit(' ').next().and_then(|it| it.parse().ok()).expect("a share")
    };
    let waits = percent("primary", "waits for a load") + percent("guests", "waits for a load");
    let yields = percent("primary", "yields") + percent("guests", "yields");
    let computes = percent("primary", "computes") + percent("guests", "computes");
    // Both go through lists that the nearest caches do not hold, and do nothing else.
    assert!(waits > 40.0 && yields > 0.5 && computes < 20.0, "{told}");
    let all = waits + yields + computes + percent("both", "libraries");
    assert!((99.0..101.0).contains(&all), "{told}");
}

#[test]
fn a_scavenger_never_aboard_has_the_pace_of_its_home() {
    let place = Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    let run = place
        .harvest(&["--record", "run.json", "--scavenger", "/bin/sleep 100", "--", "./p", "10000000"])
        .output()
        .unwrap();
    assert_eq!(said(&run).0, Some(0), "{}", said(&run).2);
    let pace = record(&place)["scavengers"][0]["progress"].clone();
    // It sleeps, and what little it does is not worth a tenth of a processor.
    let most = pace["hi"].as_f64().unwrap_or(f64::NAN);
    assert!(most < 0.5 || pace["unresolved"].is_string(), "{pace}");
}

/// A few loads that may miss, and then seconds without one.
#[test]
fn a_program_that_hardly_comes_to_yields_is_told_how_it_comes_to_more() {
    const SELDOM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { NODES = 1 << 16 };
static struct { void *next; long pad[7]; } list[NODES];
int main(int argc, char **argv) {
    for (size_t i = 0; i < NODES; i++) list[i].next = &list[(i * 1664525 + 1013904223) % NODES];
    void **p = (void **)list;
    for (long n = NODES; n--;) p = *p;
    for (unsigned long i = atol(argv[1]); i--;) __asm__ volatile("" : "+r"(i));
    return p == 0;
}
"#;
    let place = Place::new(SELDOM, env!("CARGO_BIN_EXE_gleaner"));
    let mut command = testkit::on_one_processor(&place.command(env!("CARGO_BIN_EXE_gleaner")));
    command.args(["harvest", "--assume-costs", "--choose", "every-load"]);
    let run = command.args(["--scavenger", "./p 100000000000", "--", "./p", "9000000000"]).output().unwrap();
    let errors = text(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{errors}");
    assert!(
        errors.contains("next: give the program more places to lend its CPU: --libraries all"),
        "{errors}"
    );
}
