//! `gleaner profile` where `perf_event_open` is refused, as container runtimes refuse it: signals
//! take the samples, and programs do what they do without them.

use records::profile::{Backend, Profile, ProgramEnd};
use std::process::{Command, Output};
use testkit::{Place, text};

/// Goes round a list in random order, in one of several surroundings, each a word:
///
/// ```text
/// refuse ERRNO CMD…  executes a command for which perf_event_open fails with this number
/// chase              in the main thread
/// threads            in 200 threads with the smallest stacks, all signals blocked
/// children           in a forked child, and in one that executes this program once more
/// signals            with a handler of SIGPROF and of each real-time signal, after all were reset
/// past               after all signals were reset by the system call itself
/// sandbox            in a thread that was made after timers and files were forbidden
/// strict             with all system calls forbidden but a few
/// ```
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
struct node { struct node *next; long rest[7]; };
static struct node everything[1 << 19];
static struct node *volatile gone_through;
__attribute__((noinline, noclone)) static struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
static void *go(void *steps) { gone_through = chase(everything, (long)steps); return 0; }
static volatile int profiled, told;
static void on_profile(int signal) { (void)signal; profiled++; }
static void on_real_time(int signal) { (void)signal; told++; }
static int forbid(int one, int other, unsigned how) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, how),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog program = { 5, filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static void in_threads(int count, long steps) {
    pthread_t threads[200];
    pthread_attr_t smallest;
    pthread_attr_init(&smallest);
    pthread_attr_setstacksize(&smallest, PTHREAD_STACK_MIN);
    for (int i = 0; i < count; i++) if (pthread_create(&threads[i], &smallest, go, (void *)steps)) exit(90);
    for (int i = 0; i < count; i++) pthread_join(threads[i], 0);
}
int main(int count, char **words) {
    sigset_t all;
    sigfillset(&all);
    if (count > 3 && strcmp(words[1], "refuse") == 0) {
        if (forbid(SYS_perf_event_open, SYS_perf_event_open, SECCOMP_RET_ERRNO | atoi(words[2]))) return 91;
        execvp(words[3], words + 3);
        return 92;
    }
    for (unsigned long i = 0; i < 1 << 19; i++)
        everything[i].next = &everything[(i * 0x5deece66d + 11) % (1 << 19)];
    if (strcmp(words[1], "chase") == 0) {
        go((void *)4000000);
    } else if (strcmp(words[1], "threads") == 0) {
        pthread_sigmask(SIG_BLOCK, &all, 0);
        in_threads(200, 40000);
    } else if (strcmp(words[1], "children") == 0) {
        if (fork() == 0) { go((void *)2000000); _exit(0); }
        if (fork() == 0) { execl(words[0], words[0], "chase", (char *)0); _exit(93); }
        while (wait(0) > 0) {}
    } else if (strcmp(words[1], "signals") == 0) {
        for (int i = 1; i <= SIGRTMAX; i++) signal(i, SIG_DFL);
        go((void *)1000000);
        struct sigaction was;
        for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
            if (sigaction(i, 0, &was) || was.sa_handler != SIG_DFL) return 94;
        struct sigaction action = { .sa_handler = on_profile, .sa_flags = SA_RESTART, .sa_mask = all };
        sigaction(SIGPROF, &action, 0);
        struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
        setitimer(ITIMER_PROF, &every, 0);
        go((void *)3000000);
        for (int i = SIGRTMIN; i <= SIGRTMAX; i++) { signal(i, on_real_time); raise(i); }
        if (!profiled || told != SIGRTMAX - SIGRTMIN + 1) return 95;
    } else if (strcmp(words[1], "past") == 0) {
        struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } none = { 0 }, was;
        for (int i = 1; i <= SIGRTMAX; i++)
            if (i != SIGKILL && i != SIGSTOP && syscall(SYS_rt_sigaction, i, &none, NULL, 8L)) return 98;
        go((void *)3000000);
        for (int i = 1; i <= SIGRTMAX; i++)
            if (syscall(SYS_rt_sigaction, i, NULL, &was, 8L) || was.handler) return 94;
    } else if (strcmp(words[1], "sandbox") == 0) {
        go((void *)2000000);
        if (forbid(SYS_timer_create, SYS_openat, SECCOMP_RET_KILL_PROCESS)) return 96;
        in_threads(1, 2000000);
    } else if (strcmp(words[1], "strict") == 0) {
        go((void *)2000000);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 97;
        go((void *)1000000);
        if (write(1, "chased\n", 7) == 7) syscall(SYS_exit, 7);
    }
    puts("chased");
    return 7;
}
"#;

const EPERM: &str = "1";
const ENOSYS: &str = "38";

fn place() -> Place {
    let place = Place::uncompiled(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("gcc", "p", &["-O1", "-pthread"]));
    place
}

/// `gleaner profile` that is refused perf events.
fn refused(place: &Place, number: &str, arguments: &[&str]) -> Command {
    let mut command = place.command("./p");
    command.args(["refuse", number, env!("CARGO_BIN_EXE_gleaner"), "profile"]).args(arguments);
    command
}

fn profiled(place: &Place, number: &str, word: &str) -> (Output, Profile) {
    read(place, refused(place, number, &["-o", "profile.json", "--", "./p", word]))
}

/// The record of a profile of a program that ends as it should.
fn read(place: &Place, mut command: Command) -> (Output, Profile) {
    let output = command.output().unwrap();
    let told = text(&output.stderr);
    let read = records::read::<Profile>(&place.at("profile.json"));
    let profile = read.unwrap_or_else(|e| panic!("{e}: {told}")).body;
    assert_eq!(profile.program.ended, ProgramEnd::Exited { code: 7 }, "{told}");
    assert_eq!(output.status.code(), Some(1), "the program failed: {told}");
    assert!(text(&output.stdout).ends_with("chased\n"), "{told}");
    assert_eq!(profile.sampling.backend, Backend::Signal);
    (output, profile)
}

fn first_load(profile: &Profile) -> (Option<&str>, Option<&str>) {
    let load = profile.loads.first().unwrap_or_else(|| panic!("no load: {profile:?}"));
    (load.function.as_deref(), load.object.as_deref())
}

#[test]
fn signals_name_the_load_where_events_are_refused() {
    let place = place();
    for number in [EPERM, ENOSYS] {
        let (output, profile) = profiled(&place, number, "chase");
        let told = text(&output.stderr);
        assert_eq!(first_load(&profile), (Some("chase"), Some("everything (p)")), "{told}");
        let callers = &profile.loads[0].callers;
        assert_eq!(callers[..2], ["go", "main"], "{told}");
        let frequency = profile.sampling.frequency.estimate().expect("measured");
        assert!(frequency.lo <= frequency.value && frequency.value <= frequency.hi, "{frequency:?}");
        assert!(profile.summary.page_faults.value().is_none());
        assert!(told.contains("by signals of CPU-time timers"), "{told}");
        let why = profile.refusals.iter().find(|refused| refused.what == "perf events");
        assert!(why.is_some_and(|refused| refused.would_help.is_some()), "{told}");
    }
}

#[test]
fn threads_that_block_all_signals_are_sampled() {
    let place = place();
    let (output, profile) = profiled(&place, EPERM, "threads");
    assert_eq!(first_load(&profile).0, Some("chase"), "{}", text(&output.stderr));
    assert!(profile.loads[0].threads > 2, "{}", text(&output.stderr));
}

#[test]
fn forked_children_and_executed_programs_are_sampled() {
    let place = place();
    let (output, profile) = profiled(&place, EPERM, "children");
    assert_eq!(first_load(&profile).0, Some("chase"), "{}", text(&output.stderr));
    assert!(profile.program.processes >= 2 && profile.loads[0].threads >= 2, "{:?}", profile.program);
}

#[test]
fn a_program_has_all_its_signals() {
    let place = place();
    let (output, profile) = profiled(&place, EPERM, "signals");
    assert_eq!(first_load(&profile).0, Some("chase"), "{}", text(&output.stderr));
    let left_alone = profile.refusals.iter().any(|refused| refused.why.contains("are left alone"));
    assert!(left_alone, "it takes every one: {}", text(&output.stderr));
}

#[test]
fn a_program_that_resets_signals_past_libc_lives_on() {
    let place = place();
    let (output, profile) = profiled(&place, EPERM, "past");
    assert_eq!(first_load(&profile).0, Some("chase"), "{}", text(&output.stderr));
}

#[test]
fn a_sandbox_is_not_broken() {
    let place = place();
    let (output, profile) = profiled(&place, EPERM, "sandbox");
    assert_eq!(first_load(&profile).0, Some("chase"), "{}", text(&output.stderr));
    let without = profile.refusals.iter().any(|refused| refused.why.contains("threads have no timer"));
    assert!(without, "the thread that was made in it: {}", text(&output.stderr));
}

#[test]
fn a_strict_sandbox_is_not_broken() {
    let place = place();
    // A process with a filter cannot enter it: the profiler does without one.
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["profile", "--backend", "signal", "-o", "profile.json", "--", "./p", "strict"]);
    let (output, profile) = read(&place, command);
    assert_eq!(first_load(&profile).0, Some("chase"), "{}", text(&output.stderr));
}

#[test]
fn without_allocations_none_are_told() {
    let place = place();
    let arguments = ["-o", "profile.json", "--no-allocations", "--no-stacks", "--", "./p", "chase"];
    let output = refused(&place, EPERM, &arguments).output().unwrap();
    let profile = records::read::<Profile>(&place.at("profile.json")).unwrap().body;
    assert_eq!(first_load(&profile).0, Some("chase"), "{}", text(&output.stderr));
    assert!(profile.calls.nodes.is_empty() && profile.refusals.iter().all(|r| r.what != "allocations"));
}

#[test]
fn what_signals_cannot_do_is_said_in_a_line() {
    let place = place();
    let is_static = place.compile("gcc", "static", &["-O1", "-pthread", "-static"]);
    let own = std::process::id().to_string();
    for (arguments, code, word) in [
        (&["--backend", "clock", "--", "./p", "chase"][..], 3, "perf_event_open"),
        (&["--pid", &own], 3, "start the program under the profiler"),
        (&["--backend", "signal", "--pid", &own], 2, "only for programs that the profiler starts"),
        (&["--", "./static", "chase"], 3, "linked statically"),
        (&["--", "./nothing-there"], 2, "./nothing-there: No such file"),
    ] {
        if arguments.contains(&"./static") && !is_static {
            continue;
        }
        let output = refused(&place, EPERM, arguments).output().unwrap();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(word) && told.lines().count() == 1, "{arguments:?}: {told}");
    }
}
