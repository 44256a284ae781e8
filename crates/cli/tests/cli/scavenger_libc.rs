//! Scavengers whose libc has twins, as all their libraries: threads, processes, exceptions, locks
//! and thread-local storage are what they are without.

use testkit::{CHASE_UNTIL_END, Place};

/// Threads that allocate and look whether their thread-local storage is their own; processes by
/// every way that libc has.
const THREADS: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static __thread long mine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static long counted, destroyed;

static void destroy(void *of) { __sync_fetch_and_add(&destroyed, (long)of); }
static void wrong(const char *what) { printf("wrong: %s\n", what); fflush(stdout); _exit(1); }
static void is_mine(long n) { if (mine != n || errno != (int)n) wrong("thread-local storage"); }

static void *work(void *of) {
    long n = (long)of, sum = 0;
    mine = n, errno = (int)n;
    pthread_setspecific(key, of);
    for (int round = 0; round < 100; round++) {
        size_t size = 100 + n * 50 + round;
        char *text = malloc(size);
        memset(text, (int)n, size);
        sum += text[size / 2];
        text = realloc(text, size * 3);
        sum += text[size - 1];
        free(text);
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
        is_mine(n);
    }
    return (void *)sum;
}

static int by_thrd(void *of) { return (int)(long)work(of) & 127; }
static void *cancelled(void *of) { for (;;) { sleep(1); pthread_testcancel(); } return of; }
static void notified(union sigval value) { mine = 9; __sync_fetch_and_add(&counted, value.sival_int); }

int main(void) {
    long sum = 0;
    pthread_key_create(&key, destroy);
    for (int round = 0; round < 15; round++) {
        pthread_t threads[6];
        for (long i = 0; i < 6; i++) if (pthread_create(&threads[i], 0, work, (void *)(i + 1))) wrong("create");
        for (int i = 0; i < 6; i++) { void *of; pthread_join(threads[i], &of); sum += (long)of; }
        thrd_t thread;
        int of;
        if (thrd_create(&thread, by_thrd, (void *)7L) != thrd_success) wrong("thrd_create");
        thrd_join(thread, &of);
        sum += of;
        if (mine) wrong("main's");
    }
    pthread_t thread;
    pthread_create(&thread, 0, cancelled, 0);
    pthread_cancel(thread);
    void *of;
    pthread_join(thread, &of);
    printf("%ld %ld %ld %d\n", sum, counted, destroyed, of == PTHREAD_CANCELED);
    fflush(stdout);

    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notified, .sigev_value = {5}};
    timer_t timer;
    long before = counted;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) wrong("timer");
    timer_settime(timer, 0, &(struct itimerspec){.it_value = {0, 1000000}}, 0);
    for (int i = 0; i < 5000 && __sync_fetch_and_add(&counted, 0) == before; i++) usleep(1000);
    printf("notified %ld\n", counted - before);
    fflush(stdout);

    for (int i = 0; i < 3; i++) {
        pid_t child;
        int status;
        char *words[] = {"echo", "spawned", 0};
        if (posix_spawn(&child, "/bin/echo", 0, 0, words, environ)) wrong("spawn");
        waitpid(child, &status, 0);
        printf("status %d\n", status);
        fflush(stdout);
        if (posix_spawn(&child, "/no/such/program", 0, 0, words, environ) != ENOENT) wrong("no such program");
    }
    int status = system("echo system; exit 3");
    printf("status %d\n", status);
    FILE *from = popen("echo piped", "r");
    char line[64] = "";
    fgets(line, sizeof line, from);
    status = pclose(from);
    printf("%s%d\n", line, status);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        pthread_create(&thread, 0, work, (void *)3L);
        pthread_join(thread, &of);
        printf("child %ld %ld\n", mine, (long)of);
        fflush(stdout);
        _exit(7);
    }
    waitpid(child, &status, 0);
    printf("status %d\nend\n", status);
    return 0;
}
"#;

/// What C++ has besides: exceptions through libraries' frames, in threads; streams, containers,
/// regular expressions, sorting by a comparison in the program, long jumps.
const CXX: &str = r#"
#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static long deep(int n) {
    if (n == 0) throw std::runtime_error("deep");
    std::string text(n * 9, 'x');
    return deep(n - 1) + long(text.size());
}
static int compare(const void *a, const void *b) {
    if (*(const int *)a == -1) throw 5;
    return *(const int *)a - *(const int *)b;
}
static jmp_buf place;

int main() {
    long sum = 0;
    for (int i = 0; i < 200; i++) {
        try { deep(i % 20); } catch (const std::exception &e) { sum += e.what()[0]; }
        try { std::stoi("none"); } catch (const std::invalid_argument &) { sum++; }
        try { std::vector<int>(3).at(7); } catch (const std::out_of_range &) { sum += 2; }
    }
    int numbers[] = {4, 2, 9, -1, 3};
    try { std::qsort(numbers, 5, sizeof *numbers, compare); } catch (int n) { sum += n; }
    std::vector<std::thread> threads;
    std::vector<long> of(5);
    for (int i = 0; i < 5; i++)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 40; k++) try { deep(5 + i); } catch (std::runtime_error &) { of[i] += i; }
        });
    for (auto &thread : threads) thread.join();
    for (auto n : of) sum += n;
    auto later = std::async(std::launch::async, [] { deep(3); return 1; });
    try { sum += later.get(); } catch (std::exception &) { sum += 11; }
    volatile int jumps = 0;
    if (setjmp(place) < 5) { jumps++; longjmp(place, jumps); }
    std::map<std::string, int> counts;
    for (int i = 0; i < 3000; i++) counts["k" + std::to_string(i * 7919 % 1000)]++;
    for (auto &count : counts) sum += count.second;
    std::regex pattern("k(\\d+)");
    std::smatch match;
    std::string text = "zz k123 k45";
    for (; std::regex_search(text, match, pattern); text = match.suffix()) sum += std::stoi(match[1]);
    std::vector<int> sorted;
    for (int i = 0; i < 20000; i++) sorted.push_back(i * 7919 % 10007);
    std::sort(sorted.begin(), sorted.end());
    std::ostringstream out;
    out << sorted[77] << " " << 3.25 << " " << sum << " " << jumps;
    std::cout << out.str() << std::endl << "end" << std::endl;
}
"#;

const PYTHON: &str = r#"
import hashlib, json, os, re, socket, subprocess, threading, zlib
found = []
def work(n):
    found.append((n, hashlib.sha256(bytes([n]) * 100000).hexdigest()[:8], zlib.crc32(bytes(range(256)) * 100)))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(found))
print(subprocess.run(["echo", "run"], capture_output=True, text=True).stdout, flush=True)
child = os.fork()
if child == 0:
    os.write(1, b"child\n")
    os._exit(5)
print(os.waitpid(child, 0)[1])
print(len(json.dumps({str(n): n for n in range(5000)})), re.sub(r"a+", "b", "caaandaaady"))
a, b = socket.socketpair()
a.send(b"x")
print(b.recv(1), os.popen("echo piped").read())
try:
    int("x")
except ValueError as why:
    print(why)
print("end")
"#;

/// Waits until all have written their byte, for a minute at most.
const WAITS_FOR_ALL: &str = r#"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct stat now = {0};
    for (int tries = 0; tries < 600 && now.st_size < atol(argv[1]); tries++) {
        usleep(100000);
        stat("written", &now);
    }
    return 0;
}
"#;

/// Maps more than a jump reaches, with a hole now and then, as allocators leave them.
const LARGE: &str = r#"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    const size_t size = 512 << 20;
    for (int i = 0; i < 8; i++) {
        char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED || munmap(map, 4096)) return 1;
    }
    return write(open("written", O_CREAT | O_APPEND | O_WRONLY, 0666), "x", 1) != 1;
}
"#;

/// What a command prints alone, and beside a primary, on one CPU or all; and whether its libc had
/// twins.
fn both(place: &Place, one_cpu: bool, command: &[&str]) -> (String, String, bool) {
    let alone = place.command(command[0]).args(&command[1..]).output().unwrap();
    let mut harvest = place.command(env!("CARGO_BIN_EXE_gleaner"));
    harvest.args(["harvest", "-q", "--max-slowdown", "100%", "--libraries", "all", "--assume-costs"]);
    harvest.args(["--scavenger-out", "out", "--scavenger", &command.join(" "), "--", "./primary", "out"]);
    if one_cpu {
        harvest = testkit::on_one_processor(&harvest);
    }
    let output = harvest.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let entries = std::fs::read_dir(place.at("cache/gleaner/twins")).unwrap();
    let of_libc = entries.flatten().any(|entry| entry.path().join("libc.so.6").exists());
    let harvested = std::fs::read_to_string(place.at("out")).unwrap();
    (String::from_utf8(alone.stdout).unwrap(), harvested, of_libc)
}

fn place() -> Place {
    let place = Place::uncompiled(CHASE_UNTIL_END, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "primary", &["-O1"]));
    place
}

#[test]
fn threads_and_processes_are_what_they_are() {
    let place = place();
    assert!(place.compile_other("cc", "threads", &["-pthread"], THREADS));
    let (alone, harvested, of_libc) = both(&place, true, &["./threads"]);
    assert_eq!(harvested, alone);
    assert!(of_libc);
}

#[test]
fn exceptions_and_containers_are_what_they_are() {
    let place = place();
    assert!(place.compile_other("c++", "cxx", &["-pthread"], CXX));
    let (alone, harvested, of_libc) = both(&place, true, &["./cxx"]);
    assert_eq!(harvested, alone);
    assert!(of_libc);
}

#[test]
fn an_interpreter_runs_its_modules() {
    let place = place();
    std::fs::write(place.at("work.py"), PYTHON).unwrap();
    // What is called so may be a script that looks for it.
    let asked = place.command("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let python = String::from_utf8(asked.stdout).unwrap();
    // Its loop goes home at each step, which is slow on a CPU that is never idle.
    let (alone, harvested, of_libc) = both(&place, false, &[python.trim(), "work.py"]);
    assert_eq!(harvested, alone);
    assert!(of_libc);
}

/// All share an address space, and one's memory comes between the libraries of another and its
/// first code.
#[test]
fn many_with_large_memory_start_at_once() {
    let place = Place::uncompiled(WAITS_FOR_ALL, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "primary", &["-O1"]));
    assert!(place.compile_other("cc", "large", &[], LARGE));
    for _round in 0..2 {
        let mut harvest = place.harvest(&["--libraries", "all", "--scavengers", "24 x ./large"]);
        let output = harvest.args(["--", "./primary", "24"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(std::fs::read_to_string(place.at("written")).unwrap(), "x".repeat(24), "{output:?}");
        std::fs::remove_file(place.at("written")).unwrap();
    }
}
