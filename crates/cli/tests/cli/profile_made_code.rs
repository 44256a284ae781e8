//! `gleaner profile` of programs that make code while they run: the map that they write of it names
//! it, and whatever else lies in the map's place does no harm.
//!
//! Where `perf_event_open` is forbidden and signals take the samples, the same holds.

use records::profile::{FunctionShare, Pattern, Profile};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{Place, text, wait_for, wait_until};

/// Makes code that goes round a list of 32 MiB in random order, and runs it; the first word says
/// what is put where the map of it should be, the second for how many steps it runs, or
/// `until-told` until there is a file `stop`. It prints its number.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
struct node { struct node *next; long rest[7]; };
static struct node everything[1 << 19];
static struct node *volatile gone_through;
/* push rbp; mov rbp, rsp; again: mov rdi, [rdi]; dec rsi; jnz again; mov rax, rdi; pop rbp; ret */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75,
                                      0xf8, 0x48, 0x89, 0xf8, 0x5d, 0xc3 };
typedef struct node *chase(struct node *, long);
int main(int count, char **words) {
    for (unsigned long i = 0; i < 1 << 19; i++)
        everything[i].next = &everything[(i * 0x5deece66d + 11) % (1 << 19)];
    char *made = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made + 0x800, code, sizeof code);
    mprotect(made, 1 << 20, PROT_READ | PROT_EXEC);
    const char *what = words[1];
    char path[64], other[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    snprintf(other, sizeof other, "%s.other", path);
    unlink(path);
    if (strcmp(what, "own-tmp") == 0) {
        if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) || mount("none", "/tmp", "tmpfs", 0, 0)) {
            puts("no tmp");
            return 0;
        }
    }
    if (strcmp(what, "pipe") == 0) mkfifo(path, 0600);
    if (strcmp(what, "folder") == 0) mkdir(path, 0700);
    if (strcmp(what, "garbage") == 0) {
        FILE *map = fopen(path, "w");
        for (int i = 0; i < 1 << 20; i++) fputc(rand() >> 8, map);
        fprintf(map, "\n%lx %x\n%lx 0 nothing\n%lx -1 jit::minus\n", (long)made, 1 << 20, (long)made, (long)made);
        fclose(map);
    }
    if (strcmp(what, "map") == 0 || strcmp(what, "own-tmp") == 0 || strcmp(what, "huge") == 0 || strcmp(what, "link") == 0 || strcmp(what, "foreign") == 0) {
        int is_link = strcmp(what, "link") == 0;
        FILE *map = fopen(is_link ? other : path, "w");
        for (int i = 0; strcmp(what, "huge") == 0 && i < 1000000; i++) fprintf(map, "%x 1000 jit::other%d\n", i + 1, i);
        fprintf(map, "%lx %x jit::old\n", (long)made, 1 << 20);
        fprintf(map, "%lx %lx jit::chase [%s]\n", (long)made + 0x800, sizeof code, what);
        fclose(map);
        if (is_link) symlink(other, path);
        if (strcmp(what, "foreign") == 0 && chown(path, 4321, 4321)) { unlink(path); puts("not root"); return 0; }
    }
    printf("%d\n", getpid());
    fflush(stdout);
    if (strcmp(words[2], "until-told") == 0)
        while (access("stop", F_OK)) gone_through = ((chase *)(made + 0x800))(everything, 100000);
    else
        gone_through = ((chase *)(made + 0x800))(everything, atol(words[2]));
    return 0;
}
"#;
const STEPS: &str = "4000000";
const UNNAMED: &str = "[code made at run time]";

/// What the program leaves in `/tmp`, by its number.
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("map.other"));
    }
}

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn gleaner(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["profile", "--frequency", "4000", "-o", "profile.json"]).args(arguments);
    command
}

fn record(place: &Place, output: &Output) -> Profile {
    let read = records::read::<Profile>(&place.at("profile.json"));
    read.unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr))).body
}

/// The profile of the program with this in place of its map, and what was said; `None` where it
/// cannot be put there.
fn profiled(place: &Place, what: &str) -> Option<(Profile, String)> {
    let output = gleaner(place, &["--", "./p", what, STEPS]).output().unwrap();
    let told = text(&output.stderr);
    let Ok(pid) = text(&output.stdout).trim().parse::<u32>() else {
        eprintln!("skipped: {what}: {}", text(&output.stdout));
        return None;
    };
    let _left = Left(PathBuf::from(format!("/tmp/perf-{pid}.map")));
    assert_eq!(output.status.code(), Some(0), "{told}");
    Some((record(place, &output), told))
}

/// The function with most samples.
fn first(profile: &Profile) -> &FunctionShare {
    let most = profile.functions.iter().max_by_key(|function| function.samples);
    most.unwrap_or_else(|| panic!("no function: {profile:?}"))
}

/// The code was read from the process: its load is known, and the data that it waits for.
fn decoded(profile: &Profile, function: &str, told: &str) {
    let load = profile.loads.first().unwrap_or_else(|| panic!("no load: {told}"));
    assert_eq!(load.function.as_deref(), Some(function), "{told}");
    assert!(load.instruction.starts_with("mov rdi,[rdi]"), "{load:?}");
    assert_eq!(load.pattern, Pattern::Chain, "{load:?}");
    assert_eq!(load.object.as_deref(), Some("everything (p)"), "{load:?}");
    let not_attributed = profile.summary.not_attributed.value().unwrap_or(1.0);
    assert!(not_attributed < 0.1, "{told}");
}

#[test]
fn a_map_names_code_that_no_file_has() {
    let place = place();
    for what in ["map", "huge", "own-tmp"] {
        let Some((profile, told)) = profiled(&place, what) else { continue };
        let name = format!("jit::chase [{what}]");
        let function = first(&profile);
        assert_eq!(function.function.as_deref(), Some(&*name), "{told}");
        let number = function.module.strip_prefix("/tmp/perf-").and_then(|rest| rest.strip_suffix(".map"));
        assert!(number.is_some_and(|number| number.parse::<u32>().is_ok()), "{function:?}");
        assert!(function.samples * 2 > profile.sampling.samples, "{told}");
        decoded(&profile, &name, &told);
        assert!(told.contains(&name) && !told.contains("names of code made at run time"), "{told}");
        // Its callers are in a file.
        let nodes = &profile.calls.nodes;
        let named = |node: usize| profile.calls.frames[nodes[node].frame].function.as_deref();
        let made =
            (0..nodes.len()).filter(|&node| named(node) == Some(&name)).max_by_key(|&n| nodes[n].samples);
        let caller = made.and_then(|made| nodes[made].caller).and_then(named);
        assert_eq!(caller, Some("main"), "{told}");
    }
}

#[test]
fn without_a_map_the_code_has_no_name_and_the_way_to_one_is_told() {
    let place = place();
    for what in ["none", "garbage", "pipe", "folder", "link", "foreign"] {
        let Some((profile, told)) = profiled(&place, what) else { continue };
        assert_eq!(first(&profile).function.as_deref(), Some(UNNAMED), "{what}: {told}");
        decoded(&profile, UNNAMED, &told);
        let hint = profile.refusals.iter().find(|refused| refused.what == "names of code made at run time");
        let help = hint.and_then(|refused| refused.would_help.as_deref()).unwrap_or_default();
        assert!(
            help.contains("node --perf-basic-prof") && help.contains("python3 -X perf"),
            "{what}: {told}"
        );
        assert!(told.contains(help) && !told.contains("jit::"), "{what}: {told}");
    }
}

#[test]
fn a_program_that_runs_already_is_named_and_left_when_the_time_is_over() {
    let place = place();
    let mut program =
        place.command("./p").args(["map", "until-told"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = program.id().to_string();
    let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let _left = Left(map.clone());
    wait_for("the map", Duration::from_secs(60), || {
        std::fs::metadata(&map).ok().filter(|about| about.len() > 0)
    });
    let output = gleaner(&place, &["--pid", &pid, "--from", "1ms", "--to", "1500ms"]).output().unwrap();
    let told = text(&output.stderr);
    let runs_on = program.try_wait().unwrap().is_none();
    std::fs::write(place.at("stop"), "").unwrap();
    wait_until("the program's end", Duration::from_secs(60), || program.try_wait().unwrap().is_some());
    if output.status.code() == Some(3) {
        eprintln!("skipped: {told}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(runs_on, "it is not ended: {told}");
    let profile = record(&place, &output);
    assert_eq!(first(&profile).function.as_deref(), Some("jit::chase [map]"), "{told}");
    let selected = profile.sampling.selected.expect("a part of the run");
    assert_eq!((selected.from_s, selected.to_s), (0.001, Some(1.5)));
    let words = [
        "still running",
        "in 1 sampled thread",
        "shown: only what was sampled from 1",
        "since the profiler attached",
    ];
    for word in words {
        assert!(told.contains(word), "{word}: {told}");
    }
}
