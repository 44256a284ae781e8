//! What programs do with themselves, under `gleaner harvest`: they execute themselves anew, look at
//! what they began with, write over their arguments, forbid themselves system calls. As primary and
//! as scavenger each says what it says alone.
//!
//! To add a habit: a branch of the program's `main` and a line of [`HABITS`].

use std::fs;
use std::process::{Command, Stdio};
use testkit::{Place, text, without_executions, without_summary};

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
static void say(const char *text) { write(1, text, strlen(text)); }
static int self(void) {
    char link[PATH_MAX] = "", cut[9] = "", *real = realpath("/proc/self/exe", 0);
    printf("%zd %s\n", readlink("/proc/self/exe", link, sizeof link), link);
    printf("%zd %s %s\n", readlink("/proc/self/exe", cut, 8), cut, real);
    char *argv[] = {"again", "say", 0};
    pid_t child;
    int status = -1;
    posix_spawn(&child, "/proc/self/exe", 0, 0, argv, environ);
    waitpid(child, &status, 0);
    printf("spawned %x\n", status);
    if (!(child = fork())) {
        chase(ring, 100000);
        execv(link, argv);
        _exit(99);
    }
    waitpid(child, &status, 0);
    printf("executed %x\n", status);
    fflush(stdout);
    execl("/proc/self/exe", "a", "b", "c", "d", "e", "f", "g", NULL);
    return 98;
}
static int title(char **argv) {
    for (int i = 1; argv[i]; i++)
        if (argv[i] != argv[i - 1] + strlen(argv[i - 1]) + 1) return 97;
    memset(argv[0], 'x', strlen(argv[0]));
    puts(argv[0]);
    return 3;
}
static int children(void) {
    for (int i = 0; i < 10; i++) {
        char *argv[] = {"true", 0};
        pid_t child;
        int status = -1, error = posix_spawn(&child, "/bin/true", 0, 0, argv, environ);
        if (!error) waitpid(child, &status, 0);
        if (error || status) return 95;
        gone_through = chase(ring, 100000);
    }
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    signal(SIGUSR1, SIG_IGN);
    struct sigaction action;
    for (int number = 1; number < 32; number++)
        if (!sigaction(number, 0, &action) && action.sa_handler != SIG_DFL) printf("%d is not as it was\n", number);
    sigprocmask(SIG_SETMASK, &before, 0);
    return WEXITSTATUS(system("exit 7"));
}
static int clone_begun(void *data) { return *(int *)data; }
/* More processes that share its memory than there may be threads at a time, one after another, in a child that was forked. */
static int clones(void) {
    static char stack[65536];
    int status = -1, zero = 0;
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 5000; i++) {
            pid_t other = clone(clone_begun, stack + sizeof stack, CLONE_VM | SIGCHLD, &zero);
            if (other < 0 || waitpid(other, &status, 0) != other || status) _exit(2);
            raise(SIGUSR1);
        }
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("%x, %s\n", status, strerror(errno));
    return 9;
}
static char handed;
static void on_call(int number) { handed = 0; }
/* Has system calls handed to itself, where the kernel lets it. */
static int dispatch(void) {
    signal(SIGSYS, on_call);
    int refused = prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &handed) && errno == EINVAL;
    errno = 0;
    refused &= syscall(SYS_prctl, 59, 1, 0, 0, &handed) == -1 && errno == EINVAL;
    handed = !refused;
    syscall(1234); /* nobody's */
    printf("%d\n", handed);
    return 10;
}
static int few_calls(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 94;
    gone_through = chase(ring, 30000000);
    say("few\n");
    _exit(6);
}
static void *at_once(void *nothing) { return nothing; }
static int threads(void) {
    pthread_t thread;
    if (pthread_create(&thread, 0, at_once, 0)) abort();
    return pthread_join(thread, 0);
}
int main(int argc, char **argv) {
    int error = errno;
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    gone_through = chase(ring, 1000000);
    const char *habit = argc > 1 ? argv[1] : "";
    if (!strcmp(habit, "say")) { say(argv[0]); say("\n"); return 5; }
    if (!strcmp(habit, "b")) { printf("%d\n", argc); return 8; }
    if (!strcmp(habit, "self")) return self();
    if (!strcmp(habit, "entries")) {
        for (char **entry = environ; *entry; entry++) puts(*entry);
        return 11;
    }
    if (!strcmp(habit, "title")) return title(argv);
    if (!strcmp(habit, "children")) return children();
    if (!strcmp(habit, "few-calls")) return few_calls();
    if (!strcmp(habit, "clones")) { signal(SIGUSR1, on_call); return clones(); }
    if (!strcmp(habit, "dispatch")) return dispatch();
    if (!strcmp(habit, "threads")) return threads();
    if (!strcmp(habit, "errno")) { printf("%s\n", strerror(error)); return 2; }
    if (!strcmp(habit, "began")) {
        struct sigaction action;
        sigset_t mask;
        sigaction(SIGPIPE, 0, &action);
        sigprocmask(SIG_BLOCK, 0, &mask);
        dprintf(1, "%s, %s, %s\n", action.sa_handler == SIG_IGN ? "ignored" : "default",
            sigismember(&mask, SIGUSR2) ? "blocked" : "open", fcntl(2, F_GETFD) < 0 ? "closed" : "there");
        return 4;
    }
    if (!strcmp(habit, "begin")) { /* begin HOW PROGRAM ARG… */
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGUSR2);
        if (strchr(argv[2], 'i')) signal(SIGPIPE, SIG_IGN);
        if (strchr(argv[2], 'b')) sigprocmask(SIG_BLOCK, &mask, 0);
        if (strchr(argv[2], 'c')) close(2);
        if (strchr(argv[2], 'e')) { /* entries that are there twice, or no assignments */
            static char *odd[] = {"A=1", "none", "A=2", "=B=3", "", "A=1", "LD_LIBRARY_PATH=/nowhere", 0}, *all[512];
            int count = 0;
            for (char **from = odd; *from; from++) all[count++] = *from;
            for (char **from = environ; *from; from++) all[count++] = *from;
            all[count++] = "LD_LIBRARY_PATH=/either";
            environ = all;
        }
        execv(argv[3], argv + 3);
        return 93;
    }
    if (!strcmp(habit, "spin")) for (;;) gone_through = chase(ring, 1000000);
    if (!strcmp(habit, "company")) { /* until nobody is left of the launcher's children but this and the supervisor */
        char path[64], list[512];
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", getppid(), getppid());
        time_t begun = time(0);
        for (int seen = 0; time(0) < begun + 300; usleep(1000)) { /* scavengers at home run where nobody else wants to */
            gone_through = chase(ring, 100000);
            FILE *file = fopen(path, "r");
            list[fread(list, 1, sizeof list - 1, file)] = 0;
            fclose(file);
            int children = 0;
            for (char *at = list; (at = strchr(at, ' ')); at++) children++;
            // who is quick may be gone before the first look
            if ((seen || time(0) > begun + 2) && children <= 2) return 0;
            seen |= children > 2;
        }
        return 91;
    }
    return 92;
}
"#;

/// What it is told, and the exit code that it has alone.
const HABITS: [(&str, i32); 7] = [
    ("self", 8),
    ("title", 3),
    ("children", 7),
    ("few-calls", 6),
    ("errno", 2),
    ("clones", 9),
    ("dispatch", 10),
];

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

/// What it says, and its exit code.
fn ended(command: &mut Command) -> (String, Option<i32>) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    (
        text(&output.stdout) + &without_executions(&without_summary(&text(&output.stderr))),
        output.status.code(),
    )
}

#[test]
fn a_primary_keeps_its_habits() {
    let place = place();
    for (habit, code) in HABITS {
        let program = place.at("p");
        let alone = ended(place.command(&program).arg(habit));
        assert_eq!(alone.1, Some(code), "{habit}: {}", alone.0);
        let program = program.to_str().unwrap();
        let harvested = ended(&mut place.harvest(&["--scavengers", "2 x ./p spin", "--", program, habit]));
        assert_eq!(harvested, alone, "{habit}");
    }
}

/// As a scavenger it cannot forbid itself the calls by which it comes home.
#[test]
fn a_scavenger_keeps_its_habits() {
    let place = place();
    // Without symbols nobody knows that it can start threads.
    assert!(place.compile("cc", "static", &["-static", "-s"]));
    // Without a dynamic loader nothing of ours is in it that could know its file, or speak to its
    // libc.
    for (name, habits) in [
        ("p", &["self", "title", "children", "errno", "dispatch"][..]),
        ("static", &["title", "children", "dispatch"]),
    ] {
        for habit in habits {
            let program = place.at(name).display().to_string();
            let alone = ended(place.command(&program).arg(habit));
            let scavenger = format!("{program} {habit}");
            let arguments = ["--scavenger", &scavenger, "--scavenger-out", "out", "--record", "run.json"];
            let primary = ["--choose", "every-load", "--", "./p", "company"];
            let company = ended(&mut place.harvest(&[&arguments[..], &primary].concat()));
            assert_eq!(company.1, Some(0), "{name} {habit}: {}", company.0);
            let record = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
            let code = alone.1.expect("it ends by itself");
            let end = &record.scavengers[0].process.ended;
            assert_eq!(*end, records::run::Ended::Exited { code }, "{name} {habit}");
            assert_eq!(fs::read_to_string(place.at("out")).unwrap(), alone.0, "{name} {habit}");
        }
    }
}

/// One whose file tells that it will start some runs as it is, others among guests.
#[test]
fn threads_of_scavengers_without_a_loader() {
    let place = place();
    assert!(place.compile("cc", "static", &["-static"]) && place.compile("cc", "bare", &["-static", "-s"]));
    for (name, is_guest, gets_threads) in [("p", true, true), ("static", false, true), ("bare", true, false)]
    {
        let program = place.at(name).display().to_string();
        assert_eq!(ended(place.command(&program).arg("threads")).1, Some(0), "{name}");
        let scavenger = format!("{program} threads");
        let scavengers = ["--scavenger", "./p title", "--scavenger", &scavenger, "--scavenger", "./p title"];
        let primary = ["--record", "run.json", "--choose", "every-load", "--", "./p", "company"];
        let said = ended(&mut place.harvest(&[&scavengers[..], &primary].concat())).0;
        assert_eq!(said.contains("killed by signal 6"), !gets_threads, "{name}: {said}");
        assert_eq!(said.contains("it has no dynamic loader"), !gets_threads, "{name}: {said}");
        assert_eq!(said.contains("it ran beside the primary, as it is"), !is_guest, "{name}: {said}");
        let run = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
        let proven = |scavenger: &records::run::Scavenger| {
            matches!(scavenger.process.twin.proof, records::run::Proof::Proven { .. })
        };
        let are_guests: Vec<bool> = run.scavengers.iter().map(proven).collect();
        assert_eq!(are_guests, [true, is_guest, true], "{name}");
        let end = &run.scavengers[1].process.ended;
        assert_eq!(*end == records::run::Ended::Exited { code: 0 }, gets_threads, "{name}: {end:?}");
    }
}

/// SIGPIPE is ignored in the launcher whatever it was before, and a closed standard stream is
/// opened there: none of that is the primary's.
#[test]
fn a_primary_begins_as_it_would_alone() {
    let place = place();
    for how in ["-", "i", "b", "c", "ibc"] {
        let begin = |program: &[&str]| {
            let mut command = place.command("./p");
            command.args(["begin", how]).args(program);
            ended(&mut command)
        };
        let alone = begin(&["./p", "began"]);
        let gleaner = env!("CARGO_BIN_EXE_gleaner");
        let harvest = [gleaner, "harvest", "--libraries", "none", "--assume-costs"];
        let harvested = begin(&[&harvest[..], &["--scavenger", "./p spin", "--", "./p", "began"]].concat());
        assert_eq!(alone.1, Some(4), "{how}");
        assert_eq!(harvested, alone, "{how}");
    }
}

/// Entries of the environment that are there twice, or are no assignments, are handed on as well.
#[test]
fn an_environment_is_handed_on_whole() {
    let place = place();
    let begin = |program: &[&str]| {
        let mut command = place.command("./p");
        command.args(["begin", "e"]).args(program);
        ended(&mut command)
    };
    let alone = begin(&["./p", "entries"]);
    assert!(alone.0.starts_with("A=1\nnone\nA=2\n=B=3\n\nA=1\n"), "{}", alone.0);
    assert_eq!(alone.1, Some(11));
    let gleaner = env!("CARGO_BIN_EXE_gleaner");
    let harvest = [gleaner, "harvest", "--libraries", "none", "--assume-costs"];
    let harvested = begin(&[&harvest[..], &["--scavenger", "./p spin", "--", "./p", "entries"]].concat());
    assert_eq!(harvested, alone);
    let scavenger = ["--scavenger", "./p entries", "--scavenger-out", "out", "--choose", "every-load"];
    begin(&[&harvest, &scavenger[..], &["--", "./p", "company"]].concat());
    assert_eq!(fs::read_to_string(place.at("out")).unwrap(), alone.0);
}
