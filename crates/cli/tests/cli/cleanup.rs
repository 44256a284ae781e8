//! What a scavenger leaves behind when it has ended: nothing, in an address space that others go on
//! in.
//!
//! To add something that programs map, or a way to end: a line of [`PROGRAM`].

use testkit::{Place, said};

/// Chases, so that there are sites.
///
/// - `company FILE` goes on until there is something in the file, and then until nothing is marked
///   as a scavenger's, or for long; and says what is mapped.
/// - `keeper FILE` does so while another thread of it maps and unmaps memory and a file, and looks
///   whether it keeps what it has.
/// - Else it maps what there is to be mapped, and ends as it is told.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
static void *ring[4096];
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
static char maps[1 << 20];
static int marked(void) {
    int fd = open("/proc/self/maps", O_RDONLY);
    long size = 0, got;
    while ((got = read(fd, maps + size, sizeof maps - 1 - size)) > 0) size += got;
    maps[size] = 0;
    close(fd);
    return strstr(maps, "/dev/zero") || strstr(maps, "/data") || strstr(maps, "libm.so");
}
/* Machines may be busy, and scavengers at home run where nobody else wants to: so it leaves them some. */
static int patient(void) {
    static time_t begin;
    if (!begin) begin = time(0);
    usleep(2000);
    return time(0) < begin + 200;
}
static void *wait_here(void *x) {
    memset(malloc(1 << 20), 1, 1 << 20);
    if (x) pause();
    return x;
}
static volatile int stop, lost;
static void *keep(void *x) {
    static struct { char *at; long size; char what; } all[300];
    int fd = open("data", O_RDWR);
    for (unsigned n = 1; !stop; n = n * 1103515245 + 12345) {
        if (n % 64 == 1) usleep(1000);
        int i = (n >> 8) % 300, of_file = i % 2;
        if (all[i].at) {
            for (long k = 0; k < all[i].size; k += 4096) lost |= all[i].at[k] != all[i].what;
            munmap(all[i].at, all[i].size);
            all[i].at = 0;
            continue;
        }
        all[i].size = of_file ? 5 << 12 : 4096 + (n >> 20 << 8 & ~4095);
        all[i].what = of_file ? 'a' : (char)n;
        all[i].at = mmap(0, all[i].size, PROT_READ | PROT_WRITE, MAP_PRIVATE | (of_file ? 0 : MAP_ANONYMOUS), of_file ? fd : -1, of_file ? 1 << 12 : 0);
        if (!of_file) for (long k = 0; k < all[i].size; k += 4096) all[i].at[k] = all[i].what;
    }
    return x;
}
static void unmap_by_number(void) {
    char *all[300];
    int fd = open("data", O_RDWR);
    for (int i = 0; i < 300; i++) all[i] = mmap(0, 5 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 1 << 12);
    for (int i = 0; i < 300; i++) syscall(SYS_munmap, all[i], 5 << 12);
}
/* It runs on in this memory by a thread, while its first one has ended. */
static int headless(void *x) {
    static char stack[1 << 16];
    static volatile char mine[1 << 20];
    memset((char *)mine, 7, sizeof mine);
    if (clone(x, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, (void *)mine) > 0) syscall(SYS_exit, 0);
    return 1;
}
static int look_again(void *x) {
    struct timespec nap = {0, 800000000};
    syscall(SYS_nanosleep, &nap, 0);
    long sum = 0;
    for (int i = 0; i < 1 << 20; i++) sum += ((volatile char *)x)[i];
    syscall(SYS_write, 1, sum == 7 << 20 ? "intact\n" : "gone!!\n", 7);
    syscall(SYS_exit_group, 0);
    return 0;
}
static void map_all(void) {
    memset(malloc(64 << 20), 7, 64 << 20);
    char *heap = realloc(memset(malloc(200 << 10), 7, 200 << 10), 700 << 10);
    heap[600 << 10] = 1;
    for (int i = 0; i < 50; i++) free(memset(malloc(300 << 10), i, 300 << 10));
    int fd = open("data", O_RDWR);
    char *file = mmap(0, 5 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 1 << 12);
    char *shared = mmap(0, 1 << 12, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *family = mmap(0, 9 << 12, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    family[0] = file[0] = 7;
    if (shared[0] != 'a' || file[1] != 'a') exit(99);
    munmap(file + (1 << 12), 1 << 12);
    mmap(file + (3 << 12), 1 << 12, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
    char *code = mmap(0, 1 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x2a\0\0\0\xc3", 6);
    mprotect(code, 1 << 12, PROT_READ | PROT_EXEC);
    if (((int (*)(void))code)() != 42) exit(98);
    char *grown = mremap(mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 16, 9 << 20, MREMAP_MAYMOVE);
    grown[8 << 20] = 1;
#ifndef ALONE
    if (!dlopen("libm.so.6", RTLD_NOW)) exit(97);
    pthread_t thread;
    for (long i = 0; i < 3; i++) pthread_create(&thread, 0, wait_here, (void *)i);
    pthread_detach(thread);
#endif
}
int main(int argc, char **argv) {
    for (int i = 0; i < 4096; i++) ring[i] = &ring[(i + 1237) % 4096];
    void **p = chase(ring, 1 << 22);
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "company")) {
        struct stat s;
        while (patient() && (stat(argv[2], &s) || s.st_size == 0)) p = chase(p, 1 << 20);
        while (patient() && marked()) p = chase(p, 1 << 20);
        fputs(maps, stdout);
        return p == ring ? 4 : 5;
    }
    if (!strcmp(what, "keeper")) {
        pthread_t thread;
        struct stat s;
        pthread_create(&thread, 0, keep, 0);
        while (patient() && (stat(argv[2], &s) || s.st_size == 0)) p = chase(p, 1 << 20);
        for (time_t begin = time(0); time(0) < begin + 2; usleep(2000)) p = chase(p, 1 << 20);
        stop = 1;
        pthread_join(thread, 0);
        puts(lost ? "lost" : "kept");
        return p == ring ? 4 : 5;
    }
    map_all();
    if (!strcmp(what, "unmap")) unmap_by_number();
    p = chase(p, 1 << 24);
    if (!strcmp(what, "headless")) {
        static char stack[1 << 16];
        if (clone(headless, stack + sizeof stack, CLONE_VM | SIGCHLD, look_again) < 0) exit(96);
    }
    if (!strcmp(what, "vfork")) {
        static volatile char mine[1 << 20];
        memset((char *)mine, 7, sizeof mine);
        if (vfork() == 0) {
            kill(getppid(), SIGKILL);
            for (int i = 0; i < 8; i++) usleep(100000);
            long sum = 0;
            for (int i = 0; i < sizeof mine; i++) sum += mine[i];
            const char *text = sum == 7 << 20 ? "intact\n" : "lost\n";
            write(1, text, strlen(text));
            _exit(0);
        }
    }
    write(1, "done\n", 5);
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "fault")) *(volatile int *)8 = 1;
    if (!strcmp(what, "kill")) raise(SIGKILL);
    if (!strcmp(what, "execute")) execl("/bin/sleep", "sleep", "1", (char *)0);
    if (!strcmp(what, "fork") && fork() == 0) {
        free(malloc(1 << 20));
        sleep(1);
        map_all();
        _exit(0);
    }
    if (!strcmp(what, "close")) {
        // A program that closes all descriptors, the one that the runtime has open among them.
        for (int fd = 3; fd < 4096; fd++) close(fd);
        map_all();
        dup2(open("data", O_RDWR), 1023);
        map_all();
        close(1023);
        dup2(open("/dev/null", O_RDWR), 1023);
        map_all();
    }
    return p == ring ? 30 : 31;
}
"#;

/// What is mapped in a primary behind a scavenger of this command, and what that said.
fn left(place: &Place, command: &str) -> (String, String) {
    std::fs::write(place.at("out"), "").unwrap();
    let output = place
        .harvest(&["--scavenger", command, "--scavenger-out", "out", "--", "./p", "company", "out"])
        .output()
        .unwrap();
    let (code, maps, errors) = said(&output);
    assert!(matches!(code, Some(4 | 5)), "{command}: {errors}");
    (maps, std::fs::read_to_string(place.at("out")).unwrap())
}

fn place() -> Place {
    let place = Place::uncompiled(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "p", &["-pthread", "-ldl"]));
    std::fs::write(place.at("data"), vec![b'a'; 64 << 10]).unwrap();
    place
}

/// So much does the runtime reserve beside what a primary has, in KiB.
const RESERVED: u64 = 400 << 10;

/// That only the primary is left: its files once each, and no more memory than it and the runtime
/// want.
fn check(maps: &str, what: &str) {
    let with = |name: &str, rights: &str| {
        maps.lines().filter(|line| line.contains(name) && line.contains(rights)).count()
    };
    for marked in ["/dev/zero", "/data", "libm.so"] {
        assert_eq!(with(marked, ""), 0, "{what}: {marked}\n{maps}");
    }
    for once in ["libc.so", "/ld-linux", "gleaner-runtime"] {
        assert_eq!(with(once, " r-xp "), 1, "{what}: {once}\n{maps}");
    }
    let own = with("/twins/", " r-xp ");
    assert!((1..=2).contains(&own), "{what}: its own file, as it was and the copy\n{maps}");
    let size: u64 = maps
        .lines()
        .filter(|line| !line.contains('['))
        .map(|line| {
            let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            (number(end) - number(start)) >> 10
        })
        .sum();
    assert!(size < RESERVED, "{what}: {size} KiB\n{maps}");
}

#[test]
fn nothing_is_left_however_it_ends() {
    let place = place();
    for how in ["exit", "abort", "fault", "kill", "execute", "fork"] {
        let (maps, out) = left(&place, &format!("./p {how}"));
        assert_eq!(out.lines().next(), Some("done"), "{how}");
        check(&maps, how);
    }
}

#[test]
fn nothing_is_left_of_programs_of_all_kinds() {
    let place = place();
    let kinds: [(&str, &str, &[&str]); 6] = [
        ("static", "cc", &["-static", "-DALONE"]),
        ("static-pie", "cc", &["-static-pie", "-DALONE"]),
        ("no-pie", "cc", &["-no-pie", "-pthread"]),
        ("static-no-pie", "cc", &["-static", "-no-pie", "-DALONE"]),
        ("musl", "musl-gcc", &["-DALONE"]),
        ("musl-static", "musl-gcc", &["-static", "-DALONE"]),
    ];
    for (kind, compiler, options) in kinds {
        if !place.compile(compiler, kind, options) {
            assert!(kind.starts_with("musl") || kind.contains("static"), "{kind}");
            eprintln!("skipped: a scavenger that is {kind}: {compiler} {options:?} does not work here");
            continue;
        }
        for how in ["exit", "kill"] {
            let (maps, out) = left(&place, &format!("./{kind} {how}"));
            assert_eq!(out, "done\n", "{kind}");
            check(&maps, kind);
        }
    }
}

#[test]
fn what_a_child_still_uses_stays_until_it_has_ended() {
    let place = place();
    let (maps, out) = left(&place, "./p vfork");
    assert_eq!(out, "intact\n");
    check(&maps, "vfork");
}

#[test]
fn what_a_thread_of_such_a_child_uses_stays() {
    let place = place();
    let (maps, out) = left(&place, "./p headless");
    assert_eq!(out, "done\nintact\n");
    check(&maps, "headless");
}

/// What it gets meanwhile lies where the scavenger's was, and may be of the same file.
#[test]
fn a_primary_keeps_what_it_has() {
    let place = place();
    for how in ["exit", "kill", "unmap"] {
        std::fs::write(place.at("out"), "").unwrap();
        let command = format!("./p {how}");
        let (one, two) = (["--scavenger", &command, "--scavenger-out", "out"], ["--scavenger", "./p exit"]);
        let all = [&one[..], &two, &["--", "./p", "keeper", "out"]].concat();
        let (code, printed, errors) = said(&place.harvest(&all).output().unwrap());
        assert!(matches!(code, Some(4 | 5)), "{how}: {code:?} {errors}");
        assert_eq!(printed, "kept\n", "{how}");
    }
}

/// It may do with its descriptors what it wants: then its memory is like anybody's.
#[test]
fn a_scavenger_that_closes_all_descriptors_runs_on() {
    let place = place();
    let (_, out) = left(&place, "./p close");
    assert_eq!(out, "done\n");
    let mut alone = place.command("./p");
    assert!(matches!(alone.arg("close").output().unwrap().status.code(), Some(30 | 31)));
    let output =
        place.harvest(&["--scavenger", "./p close", "--", "./p", "company", "data"]).output().unwrap();
    let (code, _, errors) = said(&output);
    let discarded = "its output was discarded, --scavenger-out keeps it";
    let line = |code| format!("gleaner: scavenger ./p close (1): exit code {code}; {discarded}\n");
    assert!(matches!(code, Some(4 | 5)), "{errors}");
    assert!([30, 31].map(line).contains(&errors) || errors.is_empty(), "{errors}");
}
