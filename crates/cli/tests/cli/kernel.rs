//! What programs ask of the kernel for themselves, by the front door of `gleaner harvest`: what is
//! said of the address space as a whole, or of what yields work with. Each does what it does alone,
//! or ends with one line; and never does a primary feel it.
//!
//! To add something that programs ask for: a case of [`PROGRAM`], and a test that says what
//! follows.

use std::process::Output;
use testkit::{Place, said, text};

/// Chases, so that there are sites, does what it is told, chases on, and says in a file that is
/// named that it is done. `company FILE` goes on until there is something in the file, and then
/// says how much memory is locked.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *ring[4096];
static long mine[512] = {42};
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
extern int arch_prctl(int code, unsigned long address);
int main(int argc, char **argv) {
    for (int i = 0; i < 4096; i++) ring[i] = &ring[(i + 1237) % 4096];
    void **p = chase(ring, 1 << 22);
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "company")) {
        struct stat s;
        for (long n = 0; n < 20000 && (stat(argv[2], &s) || s.st_size == 0); n++) p = chase(p, 1 << 20), usleep(2000); /* for scavengers at home */
        mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char text[4096] = "", *at;
        FILE *status = fopen("/proc/self/status", "r");
        text[fread(text, 1, sizeof text - 1, status)] = 0;
        at = strstr(text, "VmLck:");
        printf("%ld locked\n", atol(at + 6));
        return p == ring ? 4 : 5;
    }
    puts("begins");
    fflush(stdout);
    if (!strcmp(what, "gs")) arch_prctl(0x1001, (unsigned long)mine);
    if (!strcmp(what, "gs-by-number")) syscall(SYS_arch_prctl, 0x1001, mine);
#ifdef BY_INSTRUCTION
    if (!strcmp(what, "gs-by-instruction")) __asm__ volatile("wrgsbase %0" : : "r"(mine));
#endif
    if (!strcmp(what, "lock")) printf("%d %d\n", mlockall(MCL_CURRENT | MCL_FUTURE), munlockall());
    if (!strcmp(what, "protect")) printf("%d\n", prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0));
    if (!strcmp(what, "small-pages")) printf("%d\n", prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    if (!strcmp(what, "data")) {
        struct rlimit limit = {96 << 20, 96 << 20};
        printf("%d %d\n", setrlimit(RLIMIT_DATA, &limit), malloc(40 << 20) != 0);
    }
    sigset_t set;
    if (!strcmp(what, "again")) {
        char name[4096] = "";
        readlink("/proc/self/exe", name, sizeof name - 1);
        printf("in %s\n", strrchr(name, '/'));
        fflush(stdout);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, 0);
        execl("/proc/self/exe", "p", "mask", argv[2], (char *)0);
        perror("again");
        fflush(stderr);
    }
    if (!strcmp(what, "mask")) {
        sigprocmask(SIG_BLOCK, 0, &set);
        for (int i = 1; i < 32; i++) if (sigismember(&set, i)) printf("blocks %d\n", i);
    }
    p = chase(p, 1 << 22);
    printf("%ld\n", (long)(p - ring) + mine[0]);
    fflush(stdout);
    if (argc > 2) fputs("done", fopen(argv[2], "w"));
    return 30;
}
"#;

const LINE: &str = "gleaner: a harvested program sets the GS base (ARCH_SET_GS), by which its yields find their place; it ends here, and runs alone only\n";

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

/// In front of a primary that waits for what it says: what that said, and what the scavenger did.
fn scavenger(place: &Place, command: &str) -> (Output, String) {
    std::fs::write(place.at("out"), "").unwrap();
    let output = place
        .harvest(&["--scavenger", command, "--scavenger-out", "out", "--", "./p", "company", "out"])
        .output()
        .unwrap();
    (output, std::fs::read_to_string(place.at("out")).unwrap())
}

#[test]
fn a_program_that_sets_the_gs_base_ends_with_a_line() {
    let place = place();
    let kinds: &[&str] = if place.compile("cc", "static", &["-static"]) { &["p", "static"] } else { &["p"] };
    for mode in ["gs", "gs-by-number"] {
        let primary =
            place.harvest(&["--scavenger", "./p company /no/such", "--", "./p", mode]).output().unwrap();
        assert_eq!(said(&primary), (Some(3), "begins\n".to_owned(), LINE.to_owned()), "{mode}");
        for kind in kinds {
            let (primary, output) = scavenger(&place, &format!("./{kind} {mode}"));
            assert_eq!(primary.status.code(), Some(4), "{kind} {mode}");
            assert!(output == format!("begins\n{LINE}") || output == "begins\n", "{kind} {mode}: {output}");
            assert!(!text(&primary.stderr).contains("signal"), "{kind} {mode}: {}", text(&primary.stderr));
        }
    }
    assert!(place.compile("cc", "p", &["-DBY_INSTRUCTION"]));
    let line =
        format!("gleaner: {}: sets the GS base (wrgsbase), which yields use\n", place.at("p").display());
    assert_eq!(said(&place.harvest(&["--", "./p"]).output().unwrap()), (Some(3), String::new(), line));
}

/// A scavenger is told that it has no right to it, or that the kernel knows nothing of it.
#[test]
fn what_a_scavenger_says_of_the_address_space_does_not_hold_for_the_primary() {
    let place = place();
    for (mode, told) in [("lock", "-1 0"), ("protect", "-1"), ("small-pages", "-1")] {
        let (primary, output) = scavenger(&place, &format!("./p {mode}"));
        assert_eq!(
            (primary.status.code(), text(&primary.stdout).as_str()),
            (Some(4), "0 locked\n"),
            "{mode}"
        );
        // It may be ended with the primary, once it has said something.
        assert!(
            format!("begins\n{told}\n42\n").starts_with(&output) && !output.is_empty(),
            "{mode}: {output}"
        );
    }
}

#[test]
fn areas_that_are_not_used_are_no_data_of_the_program() {
    let place = place();
    let alone = place.command("./p").arg("data").output().unwrap();
    let harvested = place.harvest(&["--", "./p", "data"]).output().unwrap();
    assert_eq!(said(&alone), (Some(30), "begins\n0 1\n42\n".to_owned(), String::new()));
    assert_eq!(said(&harvested), said(&alone));
}

/// What is executed has the filter, too. Where that is a program at the same fixed addresses, its
/// calls would be taken for the scavenger's.
#[test]
fn a_scavenger_executes_itself_or_is_told_that_it_cannot() {
    let place = place();
    let kinds: [(&str, &[&str]); 4] = [
        ("dynamic", &[]),
        ("no-pie", &["-no-pie"]),
        ("static-pie", &["-static-pie"]),
        ("static", &["-static", "-no-pie"]),
    ];
    for (kind, options) in kinds {
        if !place.compile("cc", kind, options) {
            eprintln!("skipped: a program that is {kind}: cc {options:?} does not work here");
            continue;
        }
        let alone =
            text(&place.command(format!("./{kind}")).args(["again", "done"]).output().unwrap().stdout);
        assert!(alone.contains(&format!("in /{kind}\n")) && alone.contains("blocks 10\n"), "{alone}");
        std::fs::write(place.at("done"), "").unwrap();
        let command = format!("./{kind} again done");
        let options = ["--scavenger", &command, "--scavenger-out", "out", "--", "./p", "company", "done"];
        let output = place.harvest(&options).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{kind}: {}", text(&output.stderr));
        let out = std::fs::read_to_string(place.at("out")).unwrap();
        if kind == "static" {
            assert!(
                out.starts_with(&format!("begins\nin /{kind}\n"))
                    && out.ends_with("again: Operation not permitted\n42\n"),
                "{out}"
            );
            let told: Vec<&str> = out.lines().filter(|line| line.starts_with("gleaner: ")).collect();
            assert!(matches!(told[..], [line] if line.contains("statically to fixed addresses")), "{out}");
        } else {
            assert_eq!(out, alone, "{kind}");
        }
    }
}
