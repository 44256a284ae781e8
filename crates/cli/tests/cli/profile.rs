//! `gleaner profile`: programs whose stalling load is known, sampled from their start or while they
//! run; what becomes of the program and of its record.
//!
//! Where `perf_event_open` is forbidden, the profiler says so with exit code 3: these tests end.

use records::profile::{FindingKind, Level, Pattern, Profile, ProgramEnd};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{Place, text, wait_until};

/// Goes round a list of 64 MiB in random order, for as many steps as its argument says, or for
/// `until-told` until there is a file `stop`; ends with 7, or by SIGSEGV if there is a second
/// argument.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct node { struct node *next; long rest[7]; };
static struct node everything[1 << 20];
static struct node *volatile gone_through;
__attribute__((noinline, noclone)) static struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
int main(int count, char **words) {
    for (unsigned long i = 0; i < 1 << 20; i++)
        everything[i].next = &everything[(i * 0x5deece66d + 11) % (1 << 20)];
    if (strcmp(words[1], "until-told") == 0)
        while (access("stop", F_OK)) gone_through = chase(everything, 100000);
    else
        gone_through = chase(everything, atol(words[1]));
    puts("chased");
    fflush(stdout);
    if (count > 2) *(volatile int *)8 = 1;
    return 7;
}
"#;
const STEPS: &str = "4000000";

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn gleaner(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.arg("profile").args(arguments_with_samples(arguments));
    command
}

/// Runs of a second need many samples, whatever they cost here.
fn arguments_with_samples<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let chosen = arguments.iter().any(|word| ["--frequency", "--budget"].contains(word));
    let frequency: &[&str] = if chosen { &[] } else { &["--frequency", "4000"] };
    [frequency, arguments].concat()
}

/// What the profiler did; `None` where it may not sample.
fn profiled(place: &Place, arguments: &[&str]) -> Option<(Output, Profile)> {
    let record = ["-o", "profile.json"];
    let output = gleaner(place, &[&record[..], arguments].concat()).output().unwrap();
    if output.status.code() == Some(3) {
        eprintln!("skipped: {}", text(&output.stderr));
        return None;
    }
    let read = records::read::<Profile>(&place.at("profile.json"));
    let profile = read.unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr))).body;
    Some((output, profile))
}

#[test]
fn the_load_that_stalls_is_named_with_its_data() {
    let place = place();
    let Some((output, profile)) = profiled(&place, &["--", "./p", STEPS]) else { return };
    let told = text(&output.stderr);
    assert_eq!(text(&output.stdout), "chased\n", "{told}");
    assert_eq!(profile.program.ended, ProgramEnd::Exited { code: 7 });
    assert_eq!(output.status.code(), Some(1), "the program failed: {told}");
    let load = &profile.loads[0];
    assert_eq!(load.function.as_deref(), Some("chase"), "{told}");
    assert!(load.instruction.starts_with("mov") && load.instruction.contains('['), "{load:?}");
    assert_eq!(load.pattern, Pattern::Chain, "{load:?}");
    assert_eq!(load.object.as_deref(), Some("everything (p)"), "{load:?}");
    assert!(!matches!(load.level, Level::L1 | Level::L2), "{load:?}");
    assert_eq!(load.callers.first().map(String::as_str), Some("main"), "{load:?}");
    let object = &profile.objects[0];
    assert_eq!((object.name.as_str(), object.bytes.value()), ("everything (p)", Some(67_108_864.0)));
    assert!(told.contains("chase") && told.contains("everything (p)") && told.contains("next: "), "{told}");
}

#[test]
fn a_stripped_program_shows_the_same_load() {
    let place = place();
    let Some((_, whole)) = profiled(&place, &["-q", "--", "./p", STEPS]) else { return };
    assert!(place.command("strip").args(["-o", "stripped", "p"]).status().unwrap().success());
    let Some((_, stripped)) = profiled(&place, &["-q", "--", "./stripped", STEPS]) else { return };
    assert_eq!(stripped.loads[0].address, whole.loads[0].address);
    assert_eq!(stripped.loads[0].function, None);
}

#[test]
fn callers_of_stalled_loads_are_a_tree_below_the_program() {
    let place = place();
    let Some((_, profile)) = profiled(&place, &["-q", "--", "./p", STEPS]) else { return };
    let tree = &profile.calls;
    let counted: u64 = tree.nodes.iter().map(|node| node.samples).sum();
    assert!(counted > 2 * tree.samples && tree.cut_off * 10 < tree.samples, "all samples: {tree:?}");
    let names = |node: usize| {
        let outwards = std::iter::successors(Some(node), |&node| tree.nodes[node].caller);
        let name = |node: usize| tree.frames[tree.nodes[node].frame].function.clone().unwrap();
        outwards.map(name).collect::<Vec<_>>()
    };
    let most = (0..tree.nodes.len()).max_by_key(|&node| tree.nodes[node].stall).unwrap();
    let stack = names(most);
    assert_eq!(stack[..2], ["chase", "main"], "{stack:?}");
    assert_eq!(stack.last().map(String::as_str), Some("p"), "{stack:?}");
    let Some((_, without)) = profiled(&place, &["-q", "--no-stacks", "--", "./p", STEPS]) else { return };
    assert!(without.calls.nodes.is_empty() && without.loads[0].callers.is_empty());
}

#[test]
fn a_harvest_takes_its_sites_from_a_profile() {
    let place = place();
    let Some((_, profile)) = profiled(&place, &["-q", "--", "./p", STEPS]) else { return };
    let load = &profile.loads[0];
    let each = load.stall_each.estimate().expect("the loop is one basic block");
    assert!(each.hi > 50.0, "{load:?}");
    assert!(load.harvestable.estimate().is_some_and(|share| share.hi > 0.1), "{load:?}");
    let explained = |arguments: &[&str]| {
        let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
        let plain = ["harvest", "--libraries", "none", "--assume-costs"];
        let all = [&plain[..], &["--dry-run", "--no-cache", "--record", "plan.json"]].concat();
        let output =
            command.args(all).args(arguments).args(["--scavenger", "/bin/true", "./p", "1"]).output();
        output.unwrap()
    };
    let output = explained(&["--profile", "profile.json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let plan = records::read::<records::plan::Plan>(&place.at("plan.json")).unwrap().body;
    let primary = &plan.modules[0];
    let chosen: Vec<u64> = primary.sites.iter().map(|site| site.place.address).collect();
    // Beside other work the clock may be too blurred to tell a chase from a loop that hits.
    if each.value > 60.0 {
        assert!(chosen.contains(&load.address), "{chosen:x?} {load:?}");
    }
    assert!(primary.sites.iter().all(|site| site.gain.p_miss_from == records::plan::Origin::Profile));
    // What it says of a program that it did not see is that it did not see it.
    assert!(text(&output.stderr).contains("true did not run while the profile was taken"));
    // A record of another kind is none.
    let refused = explained(&["--profile", "plan.json"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

#[test]
fn the_code_shows_which_instruction_the_core_waited_for() {
    let place = place();
    let Some((_, profile)) = profiled(&place, &["-q", "--", "./p", STEPS]) else { return };
    let annotate = |arguments: &[&str]| {
        let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
        command.args(["annotate", "profile.json"]).args(arguments).output().unwrap()
    };
    let output = annotate(&["chase"]);
    let told = text(&output.stdout);
    assert!(output.status.success() && told.starts_with("chase in "), "{told}");
    let load = &profile.loads[0];
    let line = told.lines().find(|line| line.contains(&format!(" {:x}: ", load.address)));
    let line = line.unwrap_or_else(|| panic!("{told}"));
    assert!(line.trim_start().starts_with("waits ") && line.ends_with(&load.instruction), "{line}");
    let function = profile.code.iter().find(|code| code.function.as_deref() == Some("chase")).unwrap();
    let put_down: u64 = function.instructions.iter().map(|instruction| instruction.samples).sum();
    assert_eq!(put_down, function.samples, "each sample is put down to an instruction");
    let none = annotate(&["no-such-function"]);
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
}

/// Sums what an array of random indices leads to, in an area of 128 MiB.
const GATHER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static long area[1 << 24];
static unsigned where[1 << 20];
__attribute__((noinline, noclone)) static long gather(long rounds) {
    long sum = 0;
    while (rounds--) for (long i = 0; i < 1 << 20; i++) sum += area[where[i]];
    return sum;
}
int main(void) {
    for (long i = 0; i < 1 << 24; i++) area[i] = i;
    for (long i = 0; i < 1 << 20; i++) where[i] = (i * 0x9e3779b97f4a7c15ul) >> 40;
    printf("%ld\n", gather(60));
    return 0;
}
"#;

#[test]
fn misses_that_overlap_are_told_from_a_chain() {
    let place = Place::new(GATHER, env!("CARGO_BIN_EXE_gleaner"));
    let Some((output, profile)) = profiled(&place, &["--", "./p"]) else { return };
    let load = profile.loads.iter().find(|load| load.object.as_deref() == Some("area (p)"));
    let load = load.unwrap_or_else(|| panic!("{}", text(&output.stderr)));
    assert_eq!((load.function.as_deref(), load.pattern), (Some("gather"), Pattern::Parallel), "{load:?}");
    let finding = profile.findings.iter().find(|finding| finding.kind == FindingKind::Prefetch);
    assert_eq!(finding.and_then(|finding| finding.function.as_deref()), Some("gather"), "{load:?}");
    assert!(text(&output.stderr).contains("prefetch it several iterations ahead"));
}

#[test]
fn the_record_of_a_program_that_crashes_is_kept() {
    let place = place();
    let Some((output, profile)) = profiled(&place, &["--", "./p", STEPS, "crash"]) else { return };
    assert_eq!(profile.program.ended, ProgramEnd::Killed { signal: 11 });
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("killed by signal 11"));
    assert_eq!(profile.loads[0].function.as_deref(), Some("chase"));
}

#[test]
fn children_are_sampled_too() {
    let place = place();
    let both = ["--", "sh", "-c", "./p 1000000 & ./p 1000000; wait; exec ./p 1000000"];
    let Some((_, profile)) = profiled(&place, &both) else { return };
    assert!(profile.program.processes >= 3, "{:?}", profile.program);
    assert_eq!(profile.loads[0].function.as_deref(), Some("chase"));
    assert!(profile.loads[0].threads >= 3, "{:?}", profile.loads[0]);
}

#[test]
fn a_record_on_standard_output_has_it_for_itself() {
    let place = place();
    let output = gleaner(&place, &["--json", "--", "./p", "1000"]).output().unwrap();
    if output.status.code() == Some(3) {
        return;
    }
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a record alone");
    assert_eq!(record["kind"], "profile");
    assert!(text(&output.stderr).starts_with("chased\n"), "{}", text(&output.stderr));
}

#[test]
fn only_the_part_of_the_run_that_was_asked_for_counts() {
    let place = place();
    let run = ["--", "./p", "300000"];
    let Some((_, all)) = profiled(&place, &[&["-q"][..], &run].concat()) else { return };
    let part = |options: &[&str]| {
        profiled(&place, &[&["-q"], options, &run[..]].concat()).expect("as before").1.sampling.samples
    };
    assert_eq!(part(&["--from", "10min"]), 0, "it ends long before");
    assert_eq!(part(&["--to", "0.000001s"]), 0);
    let whole = part(&["--from", "0s", "--to", "10min"]);
    assert!(whole > 0 && all.sampling.samples > 0);
    assert!(part(&["--from", "1ms"]) > 0, "without an end");
}

/// What a running program is told of: nothing.
#[test]
fn attaching_changes_nothing() {
    let place = place();
    let mut program = place.command("./p").arg("until-told").stdout(Stdio::piped()).spawn().unwrap();
    let pid = program.id().to_string();
    let Some((output, profile)) = profiled(&place, &["--pid", &pid, "--duration", "500ms"]) else {
        let _ = program.kill();
        let _ = program.wait();
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(matches!(profile.program.ended, ProgramEnd::StillRunning | ProgramEnd::Unknown));
    assert!(profile.sampling.samples > 0);
    assert_eq!(profile.program.pid, Some(program.id()));
    // Ctrl-C ends the profiler, and keeps what it has.
    let mut second = gleaner(&place, &["-q", "-o", "second.json", "--pid", &pid]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    assert!(testkit::kill("INT", &second.id().to_string()));
    let mut status = None;
    wait_until("the profiler ends by SIGINT", Duration::from_secs(60), || {
        status = second.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    assert!(records::read::<Profile>(&place.at("second.json")).is_ok());
    std::fs::write(place.at("stop"), "").unwrap();
    let ended = program.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), text(&ended.stdout).as_str()), (Some(7), "chased\n"));
}

#[test]
fn what_cannot_be_profiled_is_said_in_a_line() {
    let place = place();
    for (arguments, code, word) in [
        (&["--", "./nothing-there"][..], 2, "./nothing-there: No such file"),
        (&["--pid", "999999999"], 2, "process 999999999"),
        (&["--pid", "1", "--", "./p"], 2, "cannot be used with"),
        (&[], 2, "required"),
        (&["--from", "2s", "--to", "1s", "--", "./p"], 2, "is not before"),
        (&["--duration", "soon", "--", "./p"], 2, "a number and a unit"),
    ] {
        let output = gleaner(&place, arguments).output().unwrap();
        if output.status.code() == Some(3) {
            continue;
        }
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(word), "{arguments:?}: {told}");
    }
}

#[test]
fn a_budget_bounds_the_samples() {
    let place = place();
    let frequency = |budget: &str| {
        let (_, profile) = profiled(&place, &["--budget", budget, "--", "./p", "1"])?;
        let cost = profile.sampling.calibration.sample_cost.estimate().map_or(0.0, |cost| cost.hi);
        let frequency = profile.sampling.frequency.value().unwrap();
        let share: f64 = budget.parse::<f64>().unwrap() / 100.0;
        assert!(frequency * cost <= share / 3.0 || frequency <= 100.0, "{:?}", profile.sampling);
        Some(frequency)
    };
    let (Some(low), Some(high)) = (frequency("0.1"), frequency("100")) else { return };
    assert!(low <= high, "{low} {high}");
    let refused = gleaner(&place, &["--budget", "0", "--", "./p", "1"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}
