//! Signal handlers and endings of programs in either role: what they find, and that they are as
//! alone.

use std::process::Command;
use testkit::{Place, text};

/// By its first argument, alone and in either role:
/// - `search`, and a second one to end then: handlers with large frames look for what the program
///   holds in registers or on its stack, as collectors do.
/// - `calls`, the same: many more of them, while it leaves its loop for a system call every
///   thousand steps.
/// - `older`: handlers by older interfaces, in the midst of a chase and chasing themselves; ends by
///   `quick_exit`.
/// - `vfork SECONDS`: a child that ends at once, then a chase.
/// - `faults`: pages vanish in the midst of a chase; handlers find what its caller holds in
///   registers, and bring them back.
/// - `often`: a chase, interrupted as often as the kernel can.
/// - `chase`: until it is ended.
/// - `rests`: so, too, but leaves scavengers at home some of the CPU.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#define _XOPEN_SOURCE_EXTENDED 1
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
enum { MANY = 1 << 20, SIGNALS = 300 };
struct node { struct node *next; uint64_t number; } nodes[MANY];
static volatile sig_atomic_t seen, found, begun, stop;
static int wanted = SIGNALS;
static uintptr_t *base;
static struct node *volatile other = nodes;

static void build(void) {
    static uint32_t order[MANY];
    uint64_t x = 1;
    for (uint32_t i = 0; i < MANY; i++) order[i] = i, nodes[i].number = i;
    for (uint32_t i = MANY - 1; i > 0; i--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint32_t j = (x >> 20) % (i + 1), was = order[i];
        order[i] = order[j], order[j] = was;
    }
    for (uint32_t i = 0; i < MANY; i++) nodes[order[i]].next = &nodes[order[(i + 1) % MANY]];
}
static void timer(long us) {
    struct itimerval every = { { 0, us }, { 0, us } };
    setitimer(ITIMER_REAL, &every, 0);
}
static int is_node(uintptr_t word) { return word >= (uintptr_t)nodes && word < (uintptr_t)(nodes + MANY); }
static void search(int number, siginfo_t *info, void *at) {
    volatile char large[1 << 16];
    memset((char *)large, number, sizeof large);
    ucontext_t *context = at;
    int here = 0;
    if (!begun) return; /* no node is at hand yet */
    for (int i = 0; i < NGREG; i++) here |= is_node(context->uc_mcontext.gregs[i]);
    uintptr_t *interrupted = (uintptr_t *)context->uc_mcontext.gregs[REG_RSP];
    int on_stack = interrupted <= base && base - interrupted < 1 << 16;
    for (uintptr_t *p = (uintptr_t *)(large + sizeof large); on_stack && !here && p < base; p++) here |= is_node(*p);
    found += here && on_stack;
    if (++seen == wanted) stop = 1;
}
__attribute__((noinline)) static struct node *chase(struct node *p, long steps) {
    while (steps--) p = p->next;
    return p;
}
__attribute__((noinline)) static struct node *chase_until_stopped(struct node *p) {
    begun = 1;
    for (long done = 0; !stop; done++) p = p->next;
    return p;
}
static struct node *chase_and_call(struct node *p) {
    begun = 1;
    while (!stop) p = chase(p, 1000), getppid();
    return p;
}
__attribute__((noinline)) struct node *go_on(struct node *p, long steps) {
    do p = p->next;
    while (--steps);
    return p;
}
// The same, by a caller that holds numbers in all registers that it gets back.
struct node *holding(struct node *p, long steps);
__asm__(".globl holding\n.type holding, @function\nholding:\n.cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\npush %rbp\n.cfi_adjust_cfa_offset 8\npush %r12\n.cfi_adjust_cfa_offset 8\n"
        "push %r13\n.cfi_adjust_cfa_offset 8\npush %r14\n.cfi_adjust_cfa_offset 8\npush %r15\n.cfi_adjust_cfa_offset 8\n"
        "sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
        "mov $1003, %ebx\nmov $1005, %ebp\nmov $1012, %r12d\nmov $1013, %r13d\nmov $1014, %r14d\nmov $1015, %r15d\n"
        "call go_on\n"
        "add $8, %rsp\n.cfi_adjust_cfa_offset -8\npop %r15\n.cfi_adjust_cfa_offset -8\npop %r14\n.cfi_adjust_cfa_offset -8\n"
        "pop %r13\n.cfi_adjust_cfa_offset -8\npop %r12\n.cfi_adjust_cfa_offset -8\npop %rbp\n.cfi_adjust_cfa_offset -8\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size holding, .-holding\n");
static void held(int number, siginfo_t *info, void *at) {
    greg_t *r = ((ucontext_t *)at)->uc_mcontext.gregs;
    found += r[REG_RBX] == 1003 && r[REG_RBP] == 1005 && r[REG_R12] == 1012 && r[REG_R13] == 1013 && r[REG_R14] == 1014 &&
             r[REG_R15] == 1015;
    seen++;
    mprotect((void *)((uintptr_t)info->si_addr & -4096), 4096, PROT_READ | PROT_WRITE);
}
static void faults(void) {
    struct sigaction action = { .sa_sigaction = held, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, 0);
    struct node *p = nodes;
    enum { FAULTS = 6 };
    for (int i = 1; i <= FAULTS; i++) {
        uintptr_t page = (uintptr_t)&nodes[(i * 7919L << 8) % MANY] + 4095 & -4096;
        mprotect((void *)page, 4096, PROT_NONE);
        p = holding(p, MANY);
    }
    printf("%d of %d, %d\n", found, seen, p == nodes);
}
static void step(int number) { other = chase(other, 40); seen++; }
static void count(int number) { seen++; }
static int restarts(int number) {
    struct sigaction now;
    sigaction(number, 0, &now);
    return (now.sa_flags & SA_RESTART) != 0;
}
static int blocked(int number) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    return sigismember(&now, number);
}
static void bye(void) { puts("bye"); fflush(stdout); }
static void older(void) {
    printf("%d %d\n", sigset(SIGALRM, step) == SIG_DFL, sigset(SIGUSR1, count) == SIG_DFL);
    raise(SIGUSR1), raise(SIGUSR1);
    int is = sigset(SIGUSR1, count) == count;
    printf("stays %d: %d\n", is, seen);
    is = sigset(SIGUSR1, SIG_HOLD) == count;
    printf("held %d, then %d\n", is, sigset(SIGUSR1, SIG_HOLD) == SIG_HOLD);
    raise(SIGUSR1);
    printf("not yet: %d %d\n", seen, blocked(SIGUSR1));
    is = sigset(SIGUSR1, count) == SIG_HOLD;
    printf("was held %d: %d\n", is, seen);
    sighold(SIGUSR1), sighold(SIGSEGV);
    raise(SIGUSR1);
    printf("not yet: %d %d %d\n", seen, blocked(SIGUSR1), blocked(SIGSEGV));
    sigrelse(SIGUSR1), sigrelse(SIGSEGV);
    printf("now: %d %d %d\n", seen, blocked(SIGUSR1), blocked(SIGSEGV));
    sigignore(SIGUSR1);
    raise(SIGUSR1);
    printf("ignored: %d %d\n", seen, signal(SIGUSR1, count) == SIG_IGN);
    printf("restarts %d", restarts(SIGUSR1));
    siginterrupt(SIGUSR1, 1);
    printf(", no more %d", restarts(SIGUSR1));
    signal(SIGUSR1, count);
    printf(" and %d", restarts(SIGUSR1));
    siginterrupt(SIGUSR1, 0);
    printf(", again %d\n", restarts(SIGUSR1));
    printf("%d %d\n", sigset(0, count) == SIG_ERR && errno == EINVAL, sighold(99));
    seen = 0;
    timer(500);
    struct node *p = nodes;
    long steps = 0;
    for (; seen < SIGNALS; steps += 1000) p = chase(p, 1000);
    timer(0);
    struct node *right = chase(nodes, steps % MANY), *others = chase(nodes, 40L * seen % MANY);
    printf("%d %d\n", p == right, other == others);
    fflush(stdout);
    at_quick_exit(bye);
    quick_exit(5);
}
static void often(void) {
    signal(SIGALRM, count);
    timer(60);
    struct node *p = nodes;
    long steps = 0;
    for (; seen < 50000; steps += 1000) p = chase(p, 1000);
    timer(0);
    printf("%d\n", p == chase(nodes, steps % MANY));
}
int main(int argc, char **argv) {
    uintptr_t here;
    base = &here;
    int status;
    if (!strcmp(argv[1], "vfork")) {
        if (!vfork()) _exit(3);
        wait(&status);
        build();
        struct node *p = nodes;
        for (time_t until = time(0) + atoi(argv[2]); time(0) < until;) p = chase(p, 100000);
        printf("%d %d\n", WEXITSTATUS(status), is_node((uintptr_t)p));
        return 0;
    }
    build();
    if (!strcmp(argv[1], "older")) older();
    if (!strcmp(argv[1], "faults")) faults();
    if (!strcmp(argv[1], "often")) often();
    int calls = !strcmp(argv[1], "calls");
    if (calls || !strcmp(argv[1], "search")) {
        struct sigaction action = { .sa_sigaction = search, .sa_flags = SA_SIGINFO | SA_RESTART };
        sigaction(SIGALRM, &action, 0);
        if (calls) wanted = 2000;
        timer(calls ? 500 : 2000);
        struct node *p = calls ? chase_and_call(other) : chase_until_stopped(other);
        timer(0);
        printf("all %d, %d\n", found == seen, is_node((uintptr_t)p));
    }
    fflush(stdout);
    if (argc > 2) return 0;
    int rests = !strcmp(argv[1], "rests");
    for (;; rests && usleep(1000)) other = chase(other, 100000);
}
"#;

fn place() -> Place {
    Place::new(SOURCE, env!("CARGO_BIN_EXE_gleaner"))
}

/// What a scavenger said, once it has said all, beside a primary that runs until then.
fn as_scavenger(place: &Place, mode: &str, expected: &str) -> String {
    let command = format!("./p {mode}");
    let said = place.at("said");
    let mut harvest =
        place.harvest(&["-q", "--scavenger", &command, "--scavenger-out", "said", "--", "./p", "rests"]);
    let mut harvest = harvest.spawn().unwrap();
    let mut seen = String::new();
    // At home a scavenger has what other programs leave of the CPUs.
    for _ in 0..6000 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        seen = std::fs::read_to_string(&said).unwrap_or_default();
        if seen.len() >= expected.len() || harvest.try_wait().unwrap().is_some() {
            break;
        }
    }
    let _ = Command::new("kill").arg(harvest.id().to_string()).status();
    let _ = harvest.wait();
    seen
}

#[test]
fn handlers_find_the_programs_registers_and_its_stack() {
    let place = place();
    let expected = "all 1, 1\n";
    assert_eq!(as_scavenger(&place, "search", expected), expected);
    let beside = ["-q", "--scavenger", "./p chase", "--", "./p", "search", "ends"];
    assert_eq!(text(&place.harvest(&beside).output().unwrap().stdout), expected);
}

#[test]
fn handlers_run_on_the_programs_stack_wherever_they_come() {
    let place = place();
    let expected = "all 1, 1\n";
    assert_eq!(as_scavenger(&place, "calls", expected), expected);
    let beside = ["-q", "--scavenger", "./p chase", "--", "./p", "calls", "ends"];
    assert_eq!(text(&place.harvest(&beside).output().unwrap().stdout), expected);
}

/// Each signal takes the guest that runs away from the primary, wherever it is in its code: also
/// where it has read the context that it is to go on with.
#[test]
fn guests_that_are_interrupted_amid_their_yields_go_on() {
    let place = place();
    let asked = ["-q", "--max-slowdown", "100000%", "--record", "run.json", "--scavengers", "6 x ./p chase"];
    let output = place.harvest(&[&asked[..], &["--", "./p", "often", "ends"]].concat()).output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), ("1\n".into(), Some(0)));
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("run.json")).unwrap()).unwrap();
    let scavengers = record["scavengers"].as_array().expect("there are some");
    for scavenger in scavengers {
        assert_eq!(scavenger["ended"]["how"], "with_the_primary", "{scavenger}");
    }
    assert_eq!(scavengers.len(), 6);
}

#[test]
fn handlers_of_faults_find_what_a_loop_does_not_use() {
    let place = place();
    let expected = "6 of 6, 1\n";
    assert_eq!(as_scavenger(&place, "faults ends", expected), expected);
    let beside = ["-q", "--scavenger", "./p chase", "--", "./p", "faults", "ends"];
    assert_eq!(text(&place.harvest(&beside).output().unwrap().stdout), expected);
}

#[test]
fn handlers_by_older_interfaces_are_as_alone() {
    let place = place();
    let alone = place.command(place.at("p")).arg("older").output().unwrap();
    let expected = text(&alone.stdout);
    assert!(alone.status.code() == Some(5) && expected.ends_with("1 1\nbye\n"), "{expected}");
    let primary = place.harvest(&["-q", "--scavenger", "./p chase", "--", "./p", "older"]).output().unwrap();
    assert_eq!((text(&primary.stdout), primary.status.code()), (expected.clone(), Some(5)));
    assert_eq!(as_scavenger(&place, "older", &expected), expected);
}

#[test]
fn a_child_by_vfork_that_ends_ends_no_harvest() {
    let place = place();
    // On a busy machine it may take long until a scavenger comes aboard.
    let aboard = |seconds: &str| {
        let scavenger = ["-q", "--record", "run.json", "--scavenger", "./p chase"];
        let output =
            place.harvest(&[&scavenger[..], &["--", "./p", "vfork", seconds]].concat()).output().unwrap();
        assert_eq!(text(&output.stdout), "3 1\n");
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(place.at("run.json")).unwrap()).unwrap();
        record["scavengers"][0]["times"]["aboard"]["value"].as_f64().expect("it is known")
    };
    assert!(["3", "10", "60"].into_iter().any(|seconds| aboard(seconds) > 0.0));
}
