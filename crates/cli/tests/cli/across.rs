//! Guests that stay aboard where a call, jump or return leads from one function to another by an
//! address, and visits home for which the primary's thread lends its CPU.

use std::sync::{Mutex, MutexGuard, PoisonError};
use testkit::{CHASE_UNTIL_END, Place};

/// These run on the first CPU, one at a time: a visit home ends in time only where nobody else
/// wants that CPU.
fn first_cpu() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `forms ROUNDS`: calls by address in every form of the instruction, checks what callees return
/// and that registers are as a caller may expect them, and prints it. `calls ROUNDS`: system calls
/// among work. `operations ROUNDS`: an interpreter of a small program. `walk ROUNDS`: the same, of
/// one that follows pointers through 64 MiB.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

asm(".text\n"
    /* A tail call by a register, and by memory; with flags and all argument registers in use. */
    ".globl by_register\n.type by_register, @function\nby_register:\n.cfi_startproc\n"
    "endbr64\nmov %rsi, %rax\njmp *%rax\n.cfi_endproc\n.size by_register, .-by_register\n"
    ".globl by_memory\n.type by_memory, @function\nby_memory:\n.cfi_startproc\n"
    "jmp *8(%rsi)\n.cfi_endproc\n.size by_memory, .-by_memory\n"
    ".globl by_r12\n.type by_r12, @function\nby_r12:\n.cfi_startproc\n"
    "push %r12\n.cfi_adjust_cfa_offset 8\nmov %rsi, %r12\ncall *(%r12)\npop %r12\n"
    ".cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size by_r12, .-by_r12\n"
    /* Its first bytes are the target of a branch, so that no jump can take their place. */
    ".globl begins_with_a_loop\n.type begins_with_a_loop, @function\nbegins_with_a_loop:\n.cfi_startproc\n"
    "xchg %ax, %ax\n1: add $1, %rdi\ntest $7, %dil\njnz 1b\nmov %rdi, %rax\nret\n.cfi_endproc\n"
    ".size begins_with_a_loop, .-begins_with_a_loop\n");
long by_register(long, void *);
long by_memory(long, void *);
long by_r12(long, void *);
long begins_with_a_loop(long);

__attribute__((noinline)) static long one(long n) { return n + 1; }
__attribute__((noinline)) static long two(long n) { return n * 2 + 1; }
typedef long function(long);
static function *volatile table[64];
function *volatile fixed __attribute__((visibility("hidden"))) = one;

/* The callee by each form, which finds s in rsi and d in rdx; or "a register was lost". */
#define CALL(form, s, d) ({ \
    long in = n, out, kept = n ^ 0x5555, rsi = (long)(s), rdx = (long)(d); \
    register long a asm("rbx") = kept; \
    register long b asm("r15") = ~kept; \
    asm volatile("sub $128, %%rsp\n" form "\nadd $128, %%rsp" \
        : "=a"(out), "+D"(in), "+S"(rsi), "+d"(rdx), "+r"(a), "+r"(b) : \
        : "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "memory", "cc"); \
    if (a != kept || b != ~kept) return puts("a register was lost"), 1; \
    sum = sum * 31 + out; })

static int forms(long rounds) {
    unsigned long sum = 0;
    for (int i = 0; i < 64; i++) table[i] = i & 1 ? two : one;
    table[5] = begins_with_a_loop;
    for (long n = 0; n < rounds; n++) {
        long at = n & 31;
        void *volatile *here = (void *volatile *)&table[at];
        CALL("mov %%rsi, %%rax\ncall *%%rax", table[at], 0);
        CALL("mov %%rsi, %%r11\ncall *%%r11", table[at], 0);
        CALL("notrack call *%%rsi", table[at], 0);
        CALL("call *(%%rsi)", here, 0);
        CALL("mov %%rsi, %%r12\ncall *(%%r12)", here, 0);
        CALL("mov %%rsi, %%r13\ncall *(%%r13)", here, 0);
        CALL("call *128(%%rdx)", 0, here - 16);
        CALL("mov %%rdx, %%r10\ncall *-64(%%r10)", 0, here + 8);
        CALL("call *(%%rsi,%%rdx,8)", table, at);
        CALL("mov %%rdx, %%r14\ncall *32(%%rsi,%%r14,8)", (char *)table - 32, at);
        CALL("mov %%rsi, %%r13\nmov %%rdx, %%r9\ncall *1024(%%r13,%%r9,4)", (char *)table - 1024, 2 * at);
        CALL("call *fixed(%%rip)", 0, 0);
        CALL("push %%rsi\nsub $8, %%rsp\ncall *8(%%rsp)\nadd $16, %%rsp", table[at], 0);
        sum = sum * 31 + by_register(n, (void *)table[at]);
        sum = sum * 31 + by_memory(n, (void *)(here - 1));
        sum = sum * 31 + by_r12(n, (void *)here);
    }
    printf("%lu\n", sum);
    return 0;
}

static int calls(long rounds) {
    unsigned long sum = 0;
    for (long n = 0; n < rounds; n++) {
        for (int i = 0; i < 100; i++) sum = sum * 31 + table[i & 1 ? 1 : 0](n);
        sum += getppid() > 0;
        if (n % 1000 == 0) { printf("%ld %lu\n", n, sum); fflush(stdout); }
    }
    printf("%lu\n", sum);
    return 0;
}

/* As interpreters go from one operation to the next. */
static unsigned long interpret(const unsigned char *code, long rounds, void **node) {
    static void *const targets[100] =
        { &&add, &&multiply, &&call, &&again, [4 ... 98] = &&end, [99] = &&follow };
    unsigned long sum = 1;
    const unsigned char *at = code;
#define NEXT goto *targets[*at++]
    NEXT;
add: sum += 3; NEXT;
multiply: sum *= 5; NEXT;
call: sum += table[sum & 1](sum); NEXT;
again: if (--rounds) at = code; NEXT;
follow: node = *node; NEXT;
end: return sum + (unsigned long)node[1];
}

static int walk(long rounds) {
    static const unsigned char code[] = { 99, 0, 3, 4 };
    enum { NODES = 1 << 20 };
    void *(*nodes)[8] = malloc(NODES * sizeof *nodes);
    for (long n = 0; n < NODES; n++) {
        nodes[n][0] = nodes[(n * 0x9e3779b1 + 0x3779b9) % NODES];
        nodes[n][1] = (void *)n;
    }
    printf("%lu\n", interpret(code, rounds, nodes[0]));
    return 0;
}

static int operations(long rounds) {
    static const unsigned char code[] = { 0, 1, 0, 2, 1, 0, 2, 3, 4 };
    void *none[2] = { none, 0 };
    for (int n = 1; n <= 4; n++) printf("%lu\n", interpret(code, n * rounds, none));
    return 0;
}

int main(int argc, char **argv) {
    table[0] = one; table[1] = two;
    long rounds = atol(argv[2]);
    int wrong = *argv[1] == 'f' ? forms(rounds) : *argv[1] == 'c' ? calls(rounds) : *argv[1] == 'w' ? walk(rounds) : operations(rounds);
    puts("end");
    return wrong;
}
"#;

/// What a scavenger prints alone and harvested, beside a primary on the same CPU, and the record.
fn harvested(
    flags: &[&str],
    libraries: &str,
    what: &str,
    rounds: &str,
) -> (String, String, serde_json::Value) {
    let place = Place::uncompiled(SOURCE, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "p", &[&["-O1", "-fcf-protection"], flags].concat()));
    assert!(place.compile_other("cc", "primary", &["-O1"], CHASE_UNTIL_END));
    let alone = place.command(place.at("p")).args([what, rounds]).output().unwrap();
    let scavenger = format!("./p {what} {rounds}");
    let _cpu = first_cpu();
    let mut harvest = testkit::on_one_processor(&place.command(env!("CARGO_BIN_EXE_gleaner")));
    harvest.args(["harvest", "-q", "--assume-costs", "--max-slowdown", "30%", "--libraries", libraries]);
    harvest.args(["--record", "run.json", "--scavenger-out", "out", "--scavenger", &scavenger]);
    let output = harvest.args(["--", "./primary", "out"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let record = serde_json::from_slice(&std::fs::read(place.at("run.json")).unwrap()).unwrap();
    let printed = std::fs::read_to_string(place.at("out")).unwrap();
    (String::from_utf8(alone.stdout).unwrap(), printed, record)
}

fn trips(record: &serde_json::Value) -> u64 {
    let trips = record["scavengers"][0]["trips_home"].as_array().unwrap();
    trips.iter().map(|trip| trip["count"].as_u64().unwrap()).sum()
}

fn visits(record: &serde_json::Value) -> f64 {
    record["scavengers"][0]["visits_home"]["value"].as_f64().unwrap()
}

#[test]
fn calls_by_address_stay_aboard() {
    const ROUNDS: u64 = 200_000;
    let (alone, harvested, record) = harvested(&[], "none", "forms", &ROUNDS.to_string());
    assert_eq!(harvested, alone);
    // Each round makes sixteen calls.
    assert!(record["scavengers"][0]["times"]["aboard"]["value"].as_f64().unwrap() > 0.0, "{record}");
    assert!(trips(&record) as f64 + visits(&record) < ROUNDS as f64, "{record}");
}

#[test]
fn system_calls_are_visits() {
    let (alone, harvested, record) = harvested(&[], "all", "calls", "50000");
    assert_eq!(harvested, alone);
    assert!(visits(&record) > 50.0, "{record}");
    assert!(record["scavengers"][0]["times"]["lent"]["value"].as_f64().unwrap() > 0.0, "{record}");
    // What it went home for is named: the system call, or its call where libc has no twins.
    let most = &record["scavengers"][0]["leaves"][0];
    assert!(2.0 * most["count"].as_f64().unwrap() > visits(&record), "{most}");
    let (function, instruction) = (most["function"].as_str().unwrap(), most["instruction"].as_str().unwrap());
    let expected = [("getppid", "syscall"), ("__GI_getppid", "syscall"), ("__getppid", "syscall")];
    let is_call = function == "calls" && instruction.starts_with("call");
    assert!(is_call || expected.contains(&(function, instruction)), "{most}");
}

#[test]
fn interpreters_stay_aboard_from_one_operation_to_the_next() {
    const ROUNDS: u64 = 50_000;
    for flags in [&["-fpie", "-pie"][..], &["-fno-pie", "-no-pie"], &["-O2", "-fpie", "-pie"]] {
        let (alone, harvested, record) = harvested(flags, "none", "operations", &ROUNDS.to_string());
        assert_eq!(harvested, alone, "{flags:?}");
        assert!(record["scavengers"][0]["times"]["aboard"]["value"].as_f64().unwrap() > 0.0, "{record}");
        // Ten times as many rounds of eight operations and two calls.
        assert!(trips(&record) as f64 + visits(&record) < ROUNDS as f64, "{flags:?}: {record}");
    }
}

#[test]
fn an_interpreter_is_a_primary_that_yields_in_its_operations() {
    const ROUNDS: u64 = 10_000_000;
    let place = Place::uncompiled(SOURCE, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "p", &["-O2"]));
    assert!(place.compile_other("cc", "guest", &["-O1"], CHASE_UNTIL_END));
    let rounds = ROUNDS.to_string();
    let _cpu = first_cpu();
    let gleaner = |options: &[&str]| {
        let mut command = testkit::on_one_processor(&place.command(env!("CARGO_BIN_EXE_gleaner")));
        command.args(options);
        let output = command.args(["--", "./p", "walk", &rounds]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let alone = gleaner(&["profile", "-q", "--no-probes", "-o", "p.json"]);
    let guest = ["--assume-costs", "--max-slowdown", "30%", "--scavenger", "./guest nowhere"];
    let harvest = ["harvest", "-q", "--libraries", "none", "--profile", "p.json", "--record", "run.json"];
    let harvested = gleaner(&[&harvest[..], &guest].concat());
    assert_eq!(String::from_utf8(harvested).unwrap(), String::from_utf8(alone).unwrap());
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("run.json")).unwrap()).unwrap();
    // Jumps that led to the originals would yield once.
    let turns = record["scavengers"][0]["turns"]["value"].as_f64().unwrap_or(0.0);
    assert!(turns > ROUNDS as f64 / 100.0, "{record}");
}
