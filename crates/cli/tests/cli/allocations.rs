//! `gleaner profile` and the heap: data is named by where it is allocated, and programs that load
//! the library do what they do without it.
//!
//! Where `perf_event_open` is forbidden, the profiler says so with exit code 3: these tests end.

use records::profile::{MemoryObject, Profile};
use std::process::Output;
use testkit::{Place, text};

fn place(source: &str) -> Place {
    Place::new(source, env!("CARGO_BIN_EXE_gleaner"))
}

/// What the profiler did; `None` where it may not sample.
pub(crate) fn profiled(place: &Place, arguments: &[&str]) -> Option<(Output, Profile)> {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["profile", "--frequency", "4000", "-o", "profile.json"]).args(arguments);
    let output = command.output().unwrap();
    if output.status.code() == Some(3) {
        eprintln!("skipped: {}", text(&output.stderr));
        return None;
    }
    let read = records::read::<Profile>(&place.at("profile.json"));
    let profile = read.unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr))).body;
    Some((output, profile))
}

fn allocated_in<'p>(profile: &'p Profile, function: &str) -> Option<&'p MemoryObject> {
    let is_there = |object: &&MemoryObject| {
        object
            .site
            .as_ref()
            .and_then(|site| site.function.as_deref())
            .is_some_and(|f| f.starts_with(function))
    };
    profile.objects.iter().find(is_there)
}

fn why(profile: &Profile) -> Vec<&str> {
    profile.refusals.iter().filter(|r| r.what == "allocations").map(|r| &*r.why).collect()
}

/// A list, an array that it is made with, and another array: each of a function of its own.
const LISTS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long rest[7]; };
static void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
__attribute__((noinline, noclone)) static struct node **make_table(long n) { return xmalloc(n * sizeof(struct node *)); }
__attribute__((noinline, noclone)) static struct node *make_list(struct node **all, long n) {
    for (long i = 0; i < n; i++) all[i] = malloc(sizeof(struct node));
    for (long i = 0; i < n; i++) all[i]->next = all[(i * 0x5deece66d + 11) % n];
    return all[0];
}
__attribute__((noinline, noclone)) static long *make_index(long n) {
    long *a = calloc(n, sizeof(long));
    for (long i = 0; i < n; i++) a[i] = (i * 0x5deece66d + 11) % n;
    return a;
}
static struct node *volatile kept;
static volatile long kept_too;
__attribute__((noinline, noclone)) static struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
__attribute__((noinline, noclone)) static long walk(long *a, long at, long n) { while (n--) at = a[at]; return at; }
int main(int count, char **words) {
    if (getenv("LD_PRELOAD")) puts("preloaded");
    long n = 1 << 16;
    struct node **table = make_table(n);
    struct node *list = make_list(table, n);
    long *index = make_index(1 << 22);
    kept = chase(list, 10000000);
    kept_too = walk(index, 1, 12000000);
    return 0;
}
"#;

#[test]
fn data_is_named_by_where_it_is_allocated() {
    let place = place(LISTS);
    assert!(place.compile("cc", "p", &["-g"]));
    let Some((output, profile)) = profiled(&place, &["--", "./p"]) else { return };
    let told = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "preloaded\n"), "{told}");
    let list = allocated_in(&profile, "make_list").unwrap_or_else(|| panic!("{told}"));
    assert!(list.name.starts_with("malloc in make_list (p.c:"), "{list:?}");
    // Of few pages, where it allocates fast: ten of them stand for all.
    assert!((20_000..140_000).contains(&list.count), "all lived at once: {list:?}");
    let made = list.allocations.estimate().unwrap();
    assert!(made.lo <= 65_536.0 * 1.1 && 65_536.0 <= made.hi * 1.1, "{list:?}");
    assert_eq!(list.bytes.value(), Some(64.0));
    assert!(told.contains(" × 64 B = "), "what they take together: {told}");
    let site = list.site.as_ref().unwrap();
    assert!(site.line.is_some() && site.stack.iter().any(|call| call.starts_with("main (p.c:")), "{site:?}");
    let index = allocated_in(&profile, "make_index").unwrap_or_else(|| panic!("{told}"));
    assert_eq!((index.count, index.bytes.value()), (1, Some(f64::from(32 << 20))), "{index:?}");
    let context = site.contexts.first().unwrap_or_else(|| panic!("{list:?}"));
    let calls: Vec<&str> = context.calls.iter().map(|call| call.function.as_str()).collect();
    assert!(calls.starts_with(&["make_list", "main"]), "{context:?}");
    assert!(context.lifetime.value().is_some_and(|s| s > 0.01 && s < 60.0), "{context:?}");
    assert_eq!(context.calls[0].line_offset, 1, "the loop's line behind the function's: {context:?}");
    let load =
        |function: &str| profile.loads.iter().find(|l| l.function.as_deref() == Some(function)).unwrap();
    assert_eq!(load("chase").object.as_deref(), Some(&*list.name), "{told}");
    assert_eq!(load("walk").object.as_deref(), Some(&*index.name), "{told}");
    assert!(told.contains("malloc in make_list (p.c:"), "{told}");
    if let Some(table) = allocated_in(&profile, "make_table") {
        assert!(table.name.starts_with("xmalloc in make_table"), "a wrapper is passed over: {table:?}");
    }
}

/// Small pieces that are left out lie in the heap, of which no more is told.
#[test]
fn small_allocations_can_be_left_out() {
    let place = place(LISTS);
    assert!(place.compile("cc", "p", &["-g"]));
    let Some((output, profile)) = profiled(&place, &["--objects-from", "4K", "--", "./p"]) else { return };
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(allocated_in(&profile, "make_list").is_none(), "nodes of 64 bytes: {told}");
    assert!(allocated_in(&profile, "make_index").is_some_and(|index| index.count == 1), "{told}");
    let chase = profile.loads.iter().find(|load| load.function.as_deref() == Some("chase"));
    assert!(chase.is_some_and(|load| load.object.as_deref() == Some("heap (brk)")), "{chase:?}");
    assert!(why(&profile).is_empty(), "{:?}", why(&profile));
}

/// Memory that the program maps itself, in a function of its own, after an area that it unmaps.
#[test]
fn what_a_program_maps_is_named_by_where_it_maps_it() {
    let place = place(
        r"
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
static volatile long kept;
static long *map(size_t bytes) { return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
__attribute__((noinline, noclone)) static long *map_index(long n) {
    munmap(map(n * sizeof(long)), n * sizeof(long));
    long *a = map(n / 2 * sizeof(long));
    a = mremap(a, n / 2 * sizeof(long), n * sizeof(long), MREMAP_MAYMOVE);
    for (long i = 0; i < n; i++) a[i] = (i * 0x5deece66d + 11) % n;
    return a;
}
__attribute__((noinline, noclone)) static long walk(long *a, long at, long n) { while (n--) at = a[at]; return at; }
int main(void) {
    errno = 0;
    if (mmap(0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED || errno != EINVAL) return 1;
    if (munmap((void *)1, 4096) != -1 || errno != EINVAL) return 2;
    long *index = map_index(1 << 22);
    kept = walk(index, 1, 6000000);
    return 0;
}
",
    );
    assert!(place.compile("cc", "p", &["-g"]));
    let Some((output, profile)) = profiled(&place, &["--", "./p"]) else { return };
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let index = allocated_in(&profile, "map_index").unwrap_or_else(|| panic!("{told}"));
    assert!(index.name.starts_with("mmap in map_index (p.c:"), "{index:?}");
    let site = index.site.as_ref().unwrap();
    assert!(site.is_mapped && site.line.is_some() && site.paths.is_empty(), "{site:?}");
    let load = profile.loads.iter().find(|load| load.function.as_deref() == Some("walk")).unwrap();
    assert_eq!(load.object.as_deref(), Some(&*index.name), "{told}");
}

#[test]
fn allocations_can_be_left_out() {
    let place = place(LISTS);
    let Some((output, profile)) = profiled(&place, &["--no-allocations", "--", "./p"]) else { return };
    assert_eq!(text(&output.stdout), "", "nothing is preloaded");
    assert!(profile.objects.iter().all(|object| object.site.is_none()));
    assert!(profile.objects.iter().any(|object| object.name == "heap (brk)"));
    assert_eq!(why(&profile), [""; 0]);
}

#[test]
fn a_static_program_runs_without() {
    let place = place(LISTS);
    if !place.compile("cc", "p", &["-static"]) {
        return;
    }
    let Some((output, profile)) = profiled(&place, &["--", "./p"]) else { return };
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), ""), "nothing is preloaded");
    assert!(why(&profile)[0].contains("linked statically"), "{:?}", profile.refusals);
}

#[test]
fn containers_are_named_by_what_fills_them() {
    let place = Place::uncompiled(
        r"
#include <map>
#include <vector>
static volatile long sum;
__attribute__((noinline)) static std::vector<long> numbers(long n) {
    std::vector<long> v;
    for (long i = 0; i < n; i++) v.push_back((i * 0x5deece66d + 11) % n);
    return v;
}
__attribute__((noinline)) static std::map<long, long> names(long n) {
    std::map<long, long> m;
    for (long i = 0; i < n; i++) m[i * 7919 % n] = i;
    return m;
}
__attribute__((noinline)) static long walk(const std::vector<long> &v, long n) { long at = 1; while (n--) at = v[at]; return at; }
__attribute__((noinline)) static long look(const std::map<long, long> &m, unsigned long n) {
    long s = 0;
    for (unsigned long r = 1; n--; r = r * 6364136223846793005 + 1) s += m.find((r >> 33) % m.size())->second;
    return s;
}
int main() {
    auto v = numbers(1 << 21);
    auto m = names(1 << 15);
    sum = walk(v, 4000000) + look(m, 2000000);
}
",
        env!("CARGO_BIN_EXE_gleaner"),
    );
    if !place.compile("g++", "p", &["-g", "-x", "c++"]) {
        return;
    }
    let Some((output, profile)) = profiled(&place, &["--", "./p"]) else { return };
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let vector = allocated_in(&profile, "numbers").unwrap_or_else(|| panic!("{told}"));
    assert!(vector.name.starts_with("std::vector::push_back in numbers ("), "{vector:?}");
    let map = allocated_in(&profile, "names").unwrap_or_else(|| panic!("{told}"));
    assert!(map.name.starts_with("std::map::operator[] in names ("), "{map:?}");
}

/// Everything that may go wrong in a program that allocates; it checks itself, and ends with 0 and
/// the word "fine". An alarm interrupts it all the time, also in the library.
const HARD: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#define check(what) do { if (!(what)) { dprintf(2, "line %d: %s\n", __LINE__, #what); _exit(1); } } while (0)
static volatile int in_malloc;
static volatile long alarms;
static void on_alarm(int signal) { if (!in_malloc) free(malloc(100 + alarms % 5000)); alarms++; }
static void *churn(void *unused) {
    void *kept[64] = {0};
    for (unsigned i = 0; i < 20000; i++) {
        unsigned at = i * 7919 % 64, size = i * 31 % 9000;
        free(kept[at]);
        check(kept[at] = malloc(size));
        memset(kept[at], 1, size);
    }
    for (int i = 0; i < 64; i++) free(kept[i]);
    return unused;
}
static void *brief(void *unused) { free(malloc(40)); return unused; }
int main(void) {
    volatile size_t huge = SIZE_MAX / 2;
    errno = 0; check(!malloc(huge) && errno == ENOMEM);
    errno = 0; check(!calloc(huge, 4) && errno == ENOMEM);
    char *p = malloc(10);
    strcpy(p, "nine more");
    errno = 0; check(!realloc(p, huge) && errno == ENOMEM && !strcmp(p, "nine more"));
    check(!reallocarray(p, huge, 3) && !strcmp(p, "nine more"));
    for (size_t n = 16; n < 1 << 20; n *= 3) check((p = realloc(p, n)) && !strcmp(p, "nine more"));
    free(p);
    void *q;
    for (size_t a = 8; a <= 1 << 16; a *= 2) {
        check(!posix_memalign(&q, a, 100) && (uintptr_t)q % a == 0); free(q);
        check((q = aligned_alloc(a, 4 * a)) && (uintptr_t)q % a == 0); free(q);
        check((q = memalign(a, 33)) && (uintptr_t)q % a == 0); free(q);
    }
    q = &p; check(posix_memalign(&q, 3, 8) == EINVAL && q == &p);
    check((q = valloc(10)) && (uintptr_t)q % 4096 == 0); free(q);
    check((q = pvalloc(10)) && (uintptr_t)q % 4096 == 0); free(q);
    free(NULL); free(realloc(NULL, 20)); free(malloc(0));
    long *zeros = calloc(1000, 8);
    for (int i = 0; i < 1000; i++) check(!zeros[i]);
    free(zeros);
    char *copied = strdup("copied"); check(!strcmp(copied, "copied")); free(copied);
    pthread_t all[8], one;
    for (int i = 0; i < 8; i++) check(!pthread_create(&all[i], 0, churn, 0));
    for (int i = 0; i < 8; i++) pthread_join(all[i], 0);
    for (int i = 0; i < 2000; i++) { check(!pthread_create(&one, 0, brief, 0)); pthread_join(one, 0); }
    for (int i = 0; i < 20; i++) {
        int status, pid = fork();
        if (!pid) { churn(0); _exit(3); }
        check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
    }
    static char stack[64 << 10];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, 0);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, 0);
    for (long i = 0; alarms < 200; i++) {
        in_malloc = 1; q = malloc(i % 3000); in_malloc = 0;
        for (volatile int wait = 0; wait < 100; wait++);
        in_malloc = 1; free(q); in_malloc = 0;
    }
    setitimer(ITIMER_REAL, &never, 0);
    for (int fd = 3; fd < 1024; fd++) close(fd);
    for (int i = 0; i < 10000; i++) free(malloc(i));
    puts("fine");
    return 0;
}
"#;

#[test]
fn hard_programs_run_as_without() {
    let place = place("int main(void) { return 0; }");
    std::fs::write(place.at("p.c"), HARD).unwrap();
    assert!(place.compile("cc", "p", &["-pthread", "-fno-builtin"]));
    let Some((output, _)) = profiled(&place, &["-q", "--", "./p"]) else { return };
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(0), "fine\n"),
        "{}",
        text(&output.stderr)
    );
}

/// The strict mode forbids the time stamp counter as well as system calls.
#[test]
fn a_program_in_strict_mode_is_not_ended() {
    let place = place(
        r"
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *volatile p;
int main(void) {
    free(p = malloc(100));
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 0;
    for (int i = 0; i < 1000; i++) free(p = malloc(3 * i));
    syscall(SYS_exit, 0);
}
",
    );
    let Some((output, profile)) = profiled(&place, &["-q", "--", "./p"]) else { return };
    assert_eq!(output.status.code(), Some(0), "{:?}", profile.program);
}

#[test]
fn a_program_with_its_own_malloc_keeps_it() {
    let place = place(
        r"
#include <stddef.h>
#include <unistd.h>
static _Alignas(16) char memory[1 << 20];
static size_t used;
void *malloc(size_t n) { used += (n + 31) & ~15ul; return used <= sizeof memory ? memory + used - ((n + 15) & ~15ul) : 0; }
void free(void *p) {}
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { return malloc(n); }
static char *volatile p;
int main(void) {
    for (volatile int i = 0; i < 100000000; i++) ;
    p = malloc(10);
    return p >= memory && p < memory + sizeof memory ? 0 : 1;
}
",
    );
    let Some((output, profile)) = profiled(&place, &["-q", "--", "./p"]) else { return };
    assert_eq!(output.status.code(), Some(0));
    assert!(why(&profile).iter().any(|why| why.contains("malloc of its own")), "{:?}", profile.refusals);
}

/// Programs as the distribution ships them, where they are installed.
#[test]
fn programs_of_the_distribution_print_the_same() {
    let place = place(LISTS);
    let numbers: Vec<String> = (0..20_000_u64).map(|n| (n * 7919 % 20_011).to_string()).collect();
    std::fs::write(place.at("numbers"), numbers.join("\n") + "\n").unwrap();
    let select = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000) select sum(i), count(distinct i % 1000) from n";
    for words in [
        &["sqlite3", ":memory:", select][..],
        &["/usr/bin/python3", "-c", "print(sum(len(str({i: [i]})) for i in range(50000)))"],
        &["xz", "-c", "numbers"],
        &["sort", "-n", "numbers"],
        &["gcc", "-O1", "-S", "-o", "-", "p.c"],
        &["sh", "-c", "for i in 1 2 3; do sort numbers | uniq | wc -l; done"],
    ] {
        let Ok(alone) = place.command(words[0]).args(&words[1..]).output() else { continue };
        let Some((output, _)) = profiled(&place, &[&["-q", "--"], words].concat()) else { return };
        assert_eq!(output.status.code(), alone.status.code(), "{words:?}: {}", text(&output.stderr));
        assert!(output.stdout == alone.stdout, "{words:?}");
        assert_eq!(text(&output.stderr), text(&alone.stderr), "{words:?}");
    }
}

#[test]
fn a_library_that_is_preloaded_already_stays() {
    let place = place("int main(void) { return 0; }");
    std::fs::write(place.at("p.c"), "int answer(void) { return 42; }").unwrap();
    assert!(place.compile("cc", "answer.so", &["-shared", "-fPIC"]));
    let main = "int answer(void) __attribute__((weak)); int main(void) { return answer ? answer() : 1; }";
    std::fs::write(place.at("p.c"), main).unwrap();
    assert!(place.compile("cc", "p", &["-Wl,-z,lazy"]));
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.env("LD_PRELOAD", place.at("answer.so"));
    let output = command.args(["profile", "-o", "profile.json", "--", "./p"]).output().unwrap();
    if output.status.code() == Some(3) {
        return;
    }
    let told = text(&output.stderr);
    assert!(told.contains("exit code 42"), "{told}");
}
