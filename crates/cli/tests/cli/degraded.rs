//! `gleaner harvest` where less is to be had than usual: what is ignored, threads, open files,
//! folders. The primary runs as if alone, or is refused in one line; never anything between.
//!
//! To add a place: a test that gives it to [`harvest_under`] as a shell's words in front of the
//! command.

use std::process::Output;
use testkit::{Place, text, without_summary};

/// A chase through a small list, so that there is a site; it says which signals are ignored, or
/// ends with 7. As `deny`, it runs a command that gets no threads; as `heedless`, one with SIGCHLD
/// ignored, which not all shells can do; as `plain` and `deaf`, one with libc's own signals (32,
/// 33) not ignored, and ignored.
const PROGRAM: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
static int without_threads(char **command) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x10000 /* CLONE_THREAD */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
    execv(command[0], command);
    return 78;
}
int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "deny")) return without_threads(argv + 2);
    if (argc > 2 && !strcmp(argv[1], "heedless")) {
        signal(SIGCHLD, SIG_IGN);
        return execv(argv[2], argv + 2);
    }
    if (argc > 2 && (!strcmp(argv[1], "plain") || !strcmp(argv[1], "deaf"))) {
        long action[4] = {argv[1][0] == 'd'};
        for (int signal = 32; signal < 34; signal++) syscall(SYS_rt_sigaction, signal, action, 0, 8);
        return execv(argv[2], argv + 2);
    }
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    gone_through = chase(ring, 1000000);
    if (argc > 1 && !strcmp(argv[1], "spin")) for (;;) gone_through = chase(ring, 1000000);
    for (int signal = 1; signal < 32; signal++) {
        struct sigaction now;
        if (!sigaction(signal, 0, &now) && now.sa_handler == SIG_IGN) printf("%d ", signal);
    }
    for (int signal = 32; signal < 34; signal++) {
        long now[4] = {0};
        if (!syscall(SYS_rt_sigaction, signal, 0, now, 8) && now[0] == 1) printf("%d ", signal);
    }
    puts("ignored");
    return 7;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

/// Where it is not about what a harvest prepares.
const PLAIN: [&str; 3] = ["--libraries", "none", "--assume-costs"];

/// A harvest by a shell that does these words first; `"$@"` is the command.
fn harvest_under(place: &Place, words: &str, options: &[&str]) -> Output {
    let mut command = place.command("sh");
    command.args(["-c", words, "sh", env!("CARGO_BIN_EXE_gleaner"), "harvest"]).args(options);
    command.args(["--scavenger", "./p spin", "--", "./p"]).output().unwrap()
}

/// What the program says alone: these tests may be run with signals ignored, too.
fn alone(place: &Place) -> String {
    text(&place.command("./p").output().unwrap().stdout)
}

#[test]
fn what_is_ignored_stays_ignored() {
    let place = place();
    let some = "trap '' INT HUP PIPE; exec \"$@\"";
    let many = "trap '' HUP INT QUIT TERM USR1 USR2 ALRM CONT WINCH TSTP TTOU; exec \"$@\"";
    let plain = "trap '' INT; exec ./p plain \"$@\"";
    for words in [some, many, "exec ./p heedless \"$@\"", plain, "exec ./p deaf \"$@\""] {
        let mut alone = place.command("sh");
        let alone: Output = alone.args(["-c", words, "sh"]).arg(place.at("p")).output().unwrap();
        assert!(text(&alone.stdout).len() > "ignored\n".len(), "{}", text(&alone.stdout));
        let harvested = harvest_under(&place, words, &PLAIN);
        assert_eq!(text(&harvested.stdout), text(&alone.stdout), "{words}");
        assert_eq!(
            (harvested.status.code(), without_summary(&text(&harvested.stderr)).as_str()),
            (Some(7), ""),
            "{words}"
        );
    }
}

#[test]
fn without_threads_one_does_it_all() {
    let place = place();
    let output = harvest_under(&place, "exec ./p deny \"$@\"", &[]);
    if [Some(77), Some(78)].contains(&output.status.code()) {
        eprintln!("skipped: no system call filters here");
        return;
    }
    assert_eq!((output.status.code(), without_summary(&text(&output.stderr)).as_str()), (Some(7), ""));
    assert_eq!(text(&output.stdout), alone(&place));
}

/// Every number of open files, from where the program itself can be loaded: whole or not at all.
#[test]
fn with_few_open_files_it_is_whole_or_refused_in_a_line() {
    let place = place();
    assert_eq!(harvest_under(&place, "exec \"$@\"", &[]).status.code(), Some(7));
    let mut whole = 0;
    for files in 4..20 {
        let output = harvest_under(&place, &format!("ulimit -n {files}; exec \"$@\""), &[]);
        let (said, code) = (without_summary(&text(&output.stderr)), output.status.code());
        if code == Some(7) {
            assert_eq!((text(&output.stdout), said.as_str()), (alone(&place), ""), "{files}");
            whole += 1;
        } else {
            assert!(matches!(code, Some(1..=3)) && output.stdout.is_empty(), "{files}: {code:?} {said}");
            assert!(said.starts_with("gleaner: ") && said.lines().count() == 1, "{files}: {said}");
        }
    }
    assert!(whole > 2, "{whole}");
}

/// Every size from where the program itself can be loaded: whole or not at all.
#[test]
fn with_little_memory_it_is_whole_or_refused_in_a_line() {
    let place = place();
    assert_eq!(harvest_under(&place, "exec \"$@\"", &[]).status.code(), Some(7));
    for (option, sizes) in [
        ('v', &[50_000, 60_000, 120_000, 200_000, 280_000, 400_000][..]),
        ('d', &[2_000, 5_000, 8_000, 12_000, 400_000]),
        ('s', &[64, 127, 8192]),
    ] {
        let mut last = None;
        for size in sizes {
            let output = harvest_under(&place, &format!("ulimit -{option} {size}; exec \"$@\""), &[]);
            let (said, code) = (without_summary(&text(&output.stderr)), output.status.code());
            if matches!(code, None | Some(127)) && option == 'v' {
                // The loader did not get along with it, or the kernel could not map the program.
                assert_eq!((last, output.stdout.len()), (None, 0), "{size}: {said}");
                continue;
            }
            last = code;
            if code == Some(7) {
                assert_eq!((text(&output.stdout), said.as_str()), (alone(&place), ""), "{option} {size}");
            } else {
                assert!(code == Some(3) && output.stdout.is_empty(), "{option} {size}: {code:?} {said}");
                assert!(
                    said.starts_with("gleaner: memory: the ") && said.lines().count() == 1,
                    "{option} {size}: {said}"
                );
            }
        }
        assert_eq!(last, Some(7), "{option}");
    }
}

#[test]
fn folders_that_cannot_be_are_named() {
    let place = place();
    let words = "XDG_CACHE_HOME=/proc/no; export XDG_CACHE_HOME; exec \"$@\"";
    let output = harvest_under(&place, words, &PLAIN);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.starts_with("gleaner: no cache of rewritten files: /proc/no/gleaner/twins: "), "{said}");
    // A folder that is there, and keeps nothing.
    let locks = "XDG_CACHE_HOME=$(mktemp -d); export XDG_CACHE_HOME; trap 'rm -r $XDG_CACHE_HOME' EXIT; \
        mkdir -p -m 700 $XDG_CACHE_HOME/gleaner/twins; touch $XDG_CACHE_HOME/gleaner/twins/making; \"$@\"";
    let output = harvest_under(&place, locks, &PLAIN);
    let said = without_summary(&text(&output.stderr));
    let why = "/gleaner/twins: Not a directory; programs are rewritten for this run only\n";
    assert!(said.starts_with("gleaner: no cache of rewritten files: /") && said.ends_with(why), "{said}");
    assert_eq!((output.status.code(), said.lines().count()), (Some(7), 1));
    assert_eq!(text(&output.stdout), alone(&place));
    let words = "TMPDIR=/no/such; export TMPDIR; exec \"$@\"";
    let output = harvest_under(&place, words, &["--no-cache"]);
    let line = "gleaner: rewritten files: /no/such: No such file or directory\n";
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(3), line));
}

/// Needs a file system of its own, so root or user namespaces; `make test` names it as skipped
/// where it has neither.
#[test]
fn a_full_disk_is_named() {
    let place = place();
    std::fs::create_dir(place.at("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=32k none disk || exit 77; XDG_CACHE_HOME=$PWD/disk; export XDG_CACHE_HOME; \
        cat /dev/zero > disk/fill 2>/dev/null; truncate -s -8k disk/fill; exec \"$@\"";
    let run = |flags: &str| {
        harvest_under(&place, &format!("exec unshare {flags} sh -c '{mount}' sh \"$@\""), &PLAIN)
    };
    let Some(output) = ["-m", "-rm"].into_iter().map(run).find(|output| output.status.code() == Some(7))
    else {
        eprintln!("skipped: no file system of our own can be mounted here");
        return;
    };
    let line = format!(
        "gleaner: no cache of rewritten files: {}: No space left on device; programs are rewritten for this run only\n",
        place.at("disk/gleaner/twins").display()
    );
    assert_eq!(without_summary(&text(&output.stderr)), line);
    assert_eq!(text(&output.stdout), alone(&place));
}
