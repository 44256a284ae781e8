//! `gleaner profile` where less is to be had than usual: memory, waiting for processes, a file that
//! ends. It ends with a line, or does with less; it never hangs, and is never aborted.

use std::process::{Command, Output};
use std::time::{Duration, Instant};
use testkit::{Place, text};

/// Runs a command without the system call `wait4`; or goes through a small list.
const PROGRAM: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(int argc, char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_wait4, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (argc > 2 && !strcmp(argv[1], "deny")) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 77;
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
        execv(argv[2], argv + 2);
        return 78;
    }
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    gone_through = chase(ring, 30000000);
    puts("chased");
    return 0;
}
"#;

const GLEANER: &str = env!("CARGO_BIN_EXE_gleaner");

fn place() -> Place {
    Place::new(PROGRAM, GLEANER)
}

/// What it said in one line, and that it did not take long.
fn refused(mut command: Command) -> (Option<i32>, String) {
    let began = Instant::now();
    let output: Output = command.output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn without_waiting_nothing_is_started() {
    let place = place();
    for verb in [&["profile", "--", "./p"][..], &["tour"]] {
        let mut command = place.command("./p");
        command.args(["deny", GLEANER]).args(verb);
        let (code, said) = refused(command);
        if code == Some(77) {
            eprintln!("skipped: no system call filters here");
            return;
        }
        let line = "gleaner: wait4: Operation not permitted; a container or sandbox that allows to wait for programs\n";
        assert_eq!((code, said.as_str()), (Some(3), line), "{verb:?}");
    }
}

#[test]
fn what_begins_as_no_recording_is_not_read_to_its_end() {
    let place = place();
    for device in ["/dev/zero", "/dev/urandom"] {
        let mut command = place.command(GLEANER);
        command.args(["profile", "--perf-data", device]);
        let line = format!(
            "gleaner: {device}: it is no file of perf record; a file that perf record has written to its end\n"
        );
        assert_eq!(refused(command), (Some(2), line));
    }
    // A pipe whose writer goes on for ever.
    let mut command = place.command("sh");
    command.args([
        "-c",
        "mkfifo pipe; (yes > pipe) & exec \"$@\"",
        "sh",
        GLEANER,
        "profile",
        "--perf-data",
        "pipe",
    ]);
    let (code, said) = refused(command);
    assert!(code == Some(2) && said.starts_with("gleaner: pipe: it is no file of perf record"), "{said}");
}

/// From limits where no more than a line can be said, to those that are wide enough.
#[test]
fn with_little_memory_it_is_whole_or_refused_by_a_line() {
    let place = place();
    let mut whole = 0;
    for size in [60_000, 80_000, 100_000, 150_000, 200_000, 500_000, 2_000_000] {
        let mut command = place.command("sh");
        let words = format!("ulimit -v {size}; exec \"$@\"");
        command.args(["-c", &words, "sh", GLEANER, "profile", "-o", "profile.json", "--", "./p"]);
        let output = command.env_remove("RUST_BACKTRACE").output().unwrap();
        let (code, said) = (output.status.code(), text(&output.stderr));
        match code {
            Some(0) => whole += 1,
            Some(127) => {} // the loader did not get along with it
            _ => {
                let told = said
                    .lines()
                    .any(|line| line.starts_with("gleaner: memory: the address space is limited to "));
                assert!(code == Some(3) && told, "{size}: {code:?} {said}");
            }
        }
    }
    assert!(whole > 0);
}
