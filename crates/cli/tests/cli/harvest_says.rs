//! What `gleaner harvest` tells its user: refusals in a line, a summary at the end, and nothing
//! that a terminal takes for orders.

use std::process::Output;
use testkit::{Place, said, text, without_summary};

/// Chases through a small list, so that there is a site, and ends as its first argument says.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(int argc, char **argv) {
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    void **p = ring;
    if (argc > 1 && !strcmp(argv[1], "spin")) for (;;) gone_through = p = chase(p, 1000000);
    gone_through = chase(p, argc > 2 ? atol(argv[2]) : 1000000);
    if (argc > 1 && !strcmp(argv[1], "fails")) { fputs("no input\n", stderr); return 9; }
    return 4;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

/// A primary that runs until its scavengers have ended, or for long enough to see them fail.
const LONG: [&str; 4] = ["--", "./p", "ends", "2000000000"];

fn refused(place: &Place, options: &[&str]) -> (Option<i32>, String) {
    let (code, output, errors) =
        said(&place.harvest(&[options, &["--", "./p"]].concat()).output().expect("gleaner starts"));
    assert!(output.is_empty() && errors.lines().count() == 1, "{options:?}: {output}{errors}");
    (code, errors)
}

#[test]
fn options_that_make_no_sense_are_refused_in_a_line() {
    let place = place();
    for (options, why) in [
        (&["--scavengers", "999999999 x ./p"][..], "999999999 of them; at most 64 can share one primary"),
        (&["--scavengers", "18446744073709551616 x ./p"], "at most 64 can share one primary"),
        (
            &["--scavengers", "4294967295 x ./p", "--scavenger", "./p"],
            "4294967296 of them; at most 64 can share one primary",
        ),
        (&["--max-slowdown", "5"], "'5' could be 5% or 500%; write 5%"),
        (&["--max-slowdown", "1"], "'1' could be 1% or 100%; write 1%"),
        (&["--max-slowdown", "1e308%"], "'1e308%' is more than 100000000%"),
        (&["--max-absence", "1e-300s"], "'1e-300s' is less than a nanosecond"),
        (&["--max-absence", "1e300s"], "'1e300s' is more than 1000000s"),
        (&["--home-cpus", ""], "not a list of CPUs; write for example 0-3,8, or leave out the option"),
        (&["--home-cpus", ","], "not a list of CPUs; write for example 0-3,8, or leave out the option"),
        (&["--least-gain", "nan"], "'nan' is not a number of cycles; write for example 20"),
    ] {
        let (code, errors) = refused(&place, options);
        assert_eq!(code, Some(2), "{options:?}: {errors}");
        assert!(errors.ends_with(&format!("{why}\n")), "{options:?}: {errors}");
    }
}

#[test]
fn parked_ways_to_harvest_are_refused_in_a_line() {
    let place = place();
    let parked = "parked since version 0.1.0: programs lost more by it than they gained";
    for (options, line) in [
        (&["--siblings"][..], format!("--siblings: {parked}; run the program without it")),
        (&["--siblings", "--scavenger", "./p"], format!("--siblings: {parked}; run the program without it")),
        (&["--together"], format!("--together: {parked}; run the programs side by side")),
        (&["--dry-run", "--together"], format!("--together: {parked}; run the programs side by side")),
        (
            &["--no-spins"],
            "--no-spins: parked since version 0.1.0: guests have no turns in busy-waits any more; leave it out"
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(&place, options), (Some(2), format!("gleaner: {line}\n")), "{options:?}");
    }
}

#[test]
fn a_plan_with_impossible_figures_is_the_plans_fault() {
    let place = place();
    let made = place.harvest(&["--dry-run", "--record", "plan.json", "--scavenger", "./p", "--", "./p"]);
    assert!({ made }.output().unwrap().status.success());
    let plan: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("plan.json")).unwrap()).unwrap();
    let last = plan["prices"]["levels"].as_array().unwrap().len() - 1;
    for (figure, value, why) in [
        (format!("/prices/levels/{last}/cycles/value"), "1e308", "the last of prices.levels is 1e308;"),
        ("/prices/clock/value".to_owned(), "1e-308", "prices.clock is 1e-308;"),
        ("/bounds/max_absence/value".to_owned(), "1e308", "bounds.max_absence in seconds is 1e302;"),
        ("/bounds/max_slowdown/value".to_owned(), "1e308", "bounds.max_slowdown is 1e308;"),
        ("/bounds/max_slowdown/value".to_owned(), "-1", "bounds.max_slowdown is -1e0;"),
        ("/bounds/quantum".to_owned(), "0", "bounds.quantum is 0; a plan has 1 to 2147483647"),
        ("/bounds/quantum".to_owned(), "4294967295", "bounds.quantum is 4294967295;"),
        ("/bounds/ring".to_owned(), "0", "bounds.ring is 0;"),
    ] {
        let mut changed = plan.clone();
        *changed.pointer_mut(&figure).expect("a figure of a plan") = serde_json::from_str(value).unwrap();
        std::fs::write(place.at("changed.json"), changed.to_string()).unwrap();
        let expected = format!("gleaner: changed.json: {why}");
        let (code, errors) = refused(&place, &["--plan", "changed.json", "--scavenger", "./p"]);
        assert!(code == Some(2) && errors.starts_with(&expected), "{figure}: {code:?} {errors}");
        let mut twin = place.command(env!("CARGO_BIN_EXE_gleaner"));
        twin.args(["twin", "--plan", "changed.json", "--role", "scavenger", "-o", "out", "p"]);
        let (code, _, errors) = said(&twin.output().unwrap());
        assert!(code == Some(2) && errors.starts_with(&expected), "{figure}: {code:?} {errors}");
    }
}

fn machine_record(place: &Place) -> std::path::PathBuf {
    place.at("cache/gleaner/machine.json")
}

/// A harvest with this machine's own costs.
fn by_this_machine(place: &Place, arguments: &[&str]) -> Output {
    let mut harvest = place.command(env!("CARGO_BIN_EXE_gleaner"));
    harvest.args(["harvest", "--libraries", "none"]).args(arguments).output().unwrap()
}

#[test]
fn a_machine_is_measured_for_the_first_harvest_and_not_again() {
    let place = place();
    let harvest = ["--dry-run", "--scavenger", "./p spin", "--", "./p"];
    let measures = |output: &Output| text(&output.stderr).contains("measuring what misses and yields cost");
    // As often as others disturb it.
    for _ in 0..20 {
        let output = by_this_machine(&place, &harvest);
        let (plan, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{errors}");
        if plan.contains("prices.json, of ") {
            assert!(!measures(&by_this_machine(&place, &harvest)));
            // What was measured with more care is better.
            std::fs::write(machine_record(&place), "{").unwrap();
            let output = by_this_machine(&place, &harvest);
            assert!(!measures(&output) && text(&output.stdout).contains("cut short"), "{output:?}");
            return;
        }
        assert!(errors.contains("not resolved: ") && plan.contains("assumed, not measured"), "{errors}");
    }
    eprintln!("this machine is too busy: not tried");
}

#[test]
fn a_summary_comes_after_the_run_unless_it_is_quiet() {
    let place = place();
    let run = |options: &[&str]| place.harvest(&[options, &["--", "./p"]].concat()).output().unwrap();
    let output = run(&["--scavenger", "./p spin"]);
    let errors = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(4), ""));
    let lines: Vec<&str> = errors.lines().collect();
    assert!(lines[0].starts_with("harvest: ") && lines[0].ends_with(" with a ring of 1"), "{errors}");
    assert!(lines[1..].iter().all(|line| line.starts_with("  ")), "{errors}");
    assert!(lines.last().unwrap().starts_with("  next: "), "{errors}");
    for expected in
        ["  slowdown of the primary: ", "  absences of the primary: ", "  ./p spin (1): ", " aboard "]
    {
        assert!(errors.contains(expected), "'{expected}' in {errors}");
    }
    assert!(errors.contains("assumed, not measured: --assume-costs\n"), "{errors}");
    assert_eq!(without_summary(&errors), "");
    assert_eq!(text(&run(&["-q", "--scavenger", "./p spin"]).stderr), "");
    let alone = text(&run(&[]).stderr);
    assert!(alone.ends_with("  next: give it something to run in its stalls: --scavenger CMD\n"), "{alone}");
}

#[test]
fn a_damaged_machine_record_is_told_of_on_the_run() {
    let place = place();
    std::fs::create_dir_all(place.at("cache/gleaner")).unwrap();
    std::fs::write(machine_record(&place), "{").unwrap();
    let output = by_this_machine(&place, &["--scavenger", "./p spin", "--", "./p"]);
    let errors = text(&output.stderr);
    let damaged = format!("gleaner: {}: cut short", machine_record(&place).display());
    assert!(errors.starts_with(&damaged), "{errors}");
    assert!(errors.contains("; costs are assumed, as if there were no machine record\n"), "{errors}");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn a_failed_scavenger_says_where_its_words_are() {
    let place = place();
    let run = |options: &[&str]| {
        let output = place.harvest(&[options, &["--scavenger", "./p fails"], &LONG].concat()).output();
        without_summary(&text(&output.unwrap().stderr))
    };
    let failed = "gleaner: scavenger ./p fails (1): exit code 9; its output";
    assert_eq!(run(&[]), format!("{failed} was discarded, --scavenger-out keeps it\n"));
    assert_eq!(run(&["--scavenger-out", "out/"]), format!("{failed} is in out/1-p.out\n"));
    assert_eq!(std::fs::read_to_string(place.at("out/1-p.out")).unwrap(), "no input\n");
}

/// Neither in refusals, nor in plans, nor in summaries.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let place = place();
    let name = "q\u{1b}]2;x\u{7}\u{9b}31m";
    std::fs::copy(place.at("p"), place.at(name)).unwrap();
    let command = format!("'./{name}' fails '\u{1b}[2J'");
    let runs: [&[&str]; 4] = [
        &["--scavenger", &command, "--", "./p", "ends", "2000000000"],
        &["--scavenger", &command, "--dry-run", "--", "./p"],
        &["--scavenger", "'./none\u{1b}[2J'", "--", "./p"],
        &["--max-slowdown", "\u{1b}[2J", "--", "./p"],
    ];
    for arguments in runs {
        let output: Output = place.harvest(arguments).output().unwrap();
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(!told.chars().any(|c| c.is_control() && c != '\n'), "{told:?}");
    }
}

#[test]
fn a_large_module_is_told_of_while_it_is_prepared() {
    let place = place();
    // Zeroed data that lies in the file: large, and soon analysed.
    let source = std::fs::read_to_string(place.at("p.c")).unwrap();
    std::fs::write(place.at("p.c"), format!("char large[1 << 20] = {{1}};\n{source}")).unwrap();
    assert!(place.compile("cc", "large", &[]));
    let run = || text(&place.harvest(&["--scavenger", "./p spin", "--", "./large"]).output().unwrap().stderr);
    let first = run();
    for expected in ["analysing", "rewriting", "proving"] {
        let line = format!("%  {expected} {} (1 of 2)\n", place.at("large").display());
        assert!(first.contains(&line), "'{line}' in {first}");
    }
    assert!(!run().contains("%  "), "what is in the cache takes no time");
}

#[test]
fn a_quiet_twin_says_nothing() {
    let place = place();
    let twin = |options: &[&str]| {
        let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
        said(&command.args(["twin", "--identity", "-o", "out", "p"]).args(options).output().unwrap())
    };
    assert!(twin(&[]).1.starts_with("functions "));
    assert_eq!(twin(&["-q"]), (Some(0), String::new(), String::new()));
    assert!(twin(&["-q", "--json"]).1.starts_with('{'), "what was asked for comes");
}
