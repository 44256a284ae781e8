//! Loads that are stopped and timed while a program runs: what the record says of them, and that
//! the program notices nothing, whatever it does with the signal that stops it.

use crate::allocations::profiled;
use records::profile::{Profile, StallingLoad};
use std::process::Output;
use testkit::{Place, text};

fn place(source: &str) -> Place {
    Place::new(source, env!("CARGO_BIN_EXE_gleaner"))
}

/// The profile of a program; `None` where nothing may be sampled, or no breakpoints are to be had.
fn probed(place: &Place, arguments: &[&str]) -> Option<(Output, Profile)> {
    let words = [&["--budget", "30", "--"], arguments].concat();
    let (output, profile) = profiled(place, &words)?;
    let refused = |refused: &&records::run::Refused| refused.why.contains("sets no breakpoints");
    if let Some(refused) = profile.refusals.iter().find(refused) {
        eprintln!("skipped: {}", refused.why);
        return None;
    }
    Some((output, profile))
}

fn first(profile: &Profile) -> &StallingLoad {
    profile.loads.first().unwrap_or_else(|| panic!("no load: {profile:#?}"))
}

/// What each program below has: a circle of pointers through 64 MiB, and a walk along it.
const CHASE: &str = r"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define LINES (1 << 20)
struct node { struct node *next; long rest[7]; };
static struct node everything[LINES];
__attribute__((noinline, noclone)) static struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
static void link_all(void) {
    for (unsigned long i = 0; i < LINES; i++) everything[i].next = &everything[(i * 0x5deece66d + 11) % LINES];
}
";

#[test]
fn a_load_that_stalls_has_a_latency() {
    let place = place(&format!(
        "{CHASE}{}",
        r#"int main(void) { link_all(); printf("%d\n", chase(everything, 8 * LINES) == everything); }"#
    ));
    let Some((output, profile)) = probed(&place, &["./p"]) else { return };
    assert_eq!(text(&output.stdout), "1\n", "eight times round: {}", text(&output.stderr));
    let load = first(&profile);
    assert_eq!(load.function.as_deref(), Some("chase"));
    assert!(load.probes >= 64, "{load:#?}");
    let latency = load.latency.estimate().unwrap_or_else(|| panic!("{load:#?}"));
    assert!(latency.lo > 0.0 && latency.hi < 10_000.0 && load.from_memory.value().is_some(), "{load:#?}");
    assert!(profile.summary.average_latency.value().is_some());
    assert!(load.object.as_deref().is_some_and(|name| name.starts_with("everything")), "{load:#?}");
    let calibration = &profile.sampling.calibration;
    assert!(calibration.probe_cost.value().is_some_and(|cost| cost > 0.0), "{calibration:#?}");
    assert!(text(&output.stderr).contains("latency"), "{}", text(&output.stderr));
}

#[test]
fn an_index_that_is_overwritten_is_known_by_probes() {
    let source = r#"
        #include <stdio.h>
        #define ENTRIES (1 << 24)
        unsigned next_of[ENTRIES];
        __attribute__((noinline, noclone)) static unsigned walk(unsigned at, long n) { while (n--) at = next_of[at]; return at; }
        int main(void) {
            for (unsigned long i = 0; i < ENTRIES; i++) next_of[i] = (i * 0x5deece66dUL + 11) % ENTRIES;
            printf("%d\n", walk(0, ENTRIES / 2) != 0);
        }
    "#;
    let place = place(source);
    let Some((output, profile)) = probed(&place, &["./p"]) else { return };
    assert_eq!(text(&output.stdout), "1\n");
    let load = first(&profile);
    assert_eq!(load.function.as_deref(), Some("walk"));
    assert!(load.object.as_deref().is_some_and(|name| name.starts_with("next_of")), "{load:#?}");
    assert!(load.footprint.value().is_some(), "addresses make a footprint: {load:#?}");
}

#[test]
fn the_signal_stays_the_programs() {
    // A handler of its own, by `sigaction` and by `signal`; an instruction that traps; the signal
    // sent, ignored, blocked and then taken; each between walks that are stopped.
    let source = r#"
        static volatile int handled, last_code;
        static void by_action(int number, siginfo_t *about, void *context) { (void)context; handled += number == SIGTRAP; last_code = about->si_code; }
        static void by_signal(int number) { handled += 10 * (number == SIGTRAP); }
        static struct node *at;
        static void walk(void) { at = chase(at, LINES); }
        int main(void) {
            link_all();
            at = everything;
            walk();
            struct sigaction before, ours = { .sa_sigaction = by_action, .sa_flags = SA_SIGINFO };
            if (sigaction(SIGTRAP, &ours, &before) || before.sa_handler != SIG_DFL) puts("not the default");
            walk();
            __asm__ volatile("int3");
            walk();
            raise(SIGTRAP);
            printf("%d %d\n", handled, last_code == SI_TKILL);
            if (signal(SIGTRAP, by_signal) != (sighandler_t)by_action) puts("not what was set");
            walk();
            __asm__ volatile("int3");
            signal(SIGTRAP, SIG_IGN);
            raise(SIGTRAP);
            sigset_t traps;
            sigemptyset(&traps);
            sigaddset(&traps, SIGTRAP);
            sigprocmask(SIG_BLOCK, &traps, 0);
            walk();
            sigprocmask(SIG_UNBLOCK, &traps, 0);
            walk();
            printf("%d %d\n", handled, at == everything);
            fflush(stdout);
            signal(SIGTRAP, SIG_DFL);
            int status;
            if (!fork()) { chase(everything, LINES); __asm__ volatile("int3"); _exit(0); }
            wait(&status);
            printf("%d %d\n", WIFSIGNALED(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
            fflush(stdout);
            walk();
            raise(SIGTRAP);
        }
    "#;
    let place = place(&format!("{CHASE}{source}"));
    let alone = place.command("./p").output().unwrap();
    assert_eq!(text(&alone.stdout), "2 1\n12 1\n1 5\n");
    let Some((output, profile)) = probed(&place, &["./p"]) else { return };
    assert_eq!(text(&output.stdout), text(&alone.stdout), "{}", text(&output.stderr));
    assert_eq!(profile.program.ended, records::profile::ProgramEnd::Killed { signal: 5 });
    assert!(first(&profile).probes > 0, "{:#?}", profile.refusals);
}

#[test]
fn a_program_that_resets_the_signal_past_libc_is_not_killed() {
    let reset = |how: &str| {
        let source = r#"
        #include <sys/syscall.h>
        struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } none;
        int main(void) {
            link_all();
            struct node *at = everything;
            for (int i = 0; i < 8; i++) {
                at = chase(at, LINES);
                long failed;
                HOW
                if (failed || !at) puts("not reset");
            }
            puts("done");
        }
        "#;
        place(&format!("{CHASE}{}", source.replace("HOW", how)))
    };
    let by_libc = reset("failed = syscall(SYS_rt_sigaction, SIGTRAP, &none, NULL, 8L);");
    let Some((output, profile)) = probed(&by_libc, &["./p"]) else { return };
    assert_eq!(text(&output.stdout), "done\n", "{}", text(&output.stderr));
    assert!(first(&profile).probes > 0, "{:#?}", profile.refusals);
    let itself = reset(
        "register long bytes __asm__(\"r10\") = 8; __asm__ volatile(\"mov $13, %%eax\\n syscall\" : \"=a\"(failed) : \
         \"D\"(5L), \"S\"(&none), \"d\"(0L), \"r\"(bytes) : \"rcx\", \"r11\", \"memory\");",
    );
    let Some((output, profile)) = probed(&itself, &["./p"]) else { return };
    assert_eq!(text(&output.stdout), "done\n", "{}", text(&output.stderr));
    let why = profile
        .refusals
        .iter()
        .find(|refused| ["past libc", "SIGTRAP"].iter().any(|words| refused.why.contains(words)));
    assert!(why.is_some() && first(&profile).probes == 0, "{:#?}", profile.refusals);
}

#[test]
fn a_program_that_handles_faults_is_stopped_but_not_read_for() {
    let source = r#"
        static void fault(int number) { (void)number; write(1, "fault\n", 6); _exit(0); }
        int main(void) {
            link_all();
            signal(SIGSEGV, fault);
            struct node *end = chase(everything, 8 * LINES);
            printf("%d\n", end == everything);
            fflush(stdout);
            everything[12345].next = (struct node *)64;
            printf("%p\n", (void *)chase(everything, 4 * LINES));
        }
    "#;
    let place = place(&format!("{CHASE}{source}"));
    let Some((output, profile)) = probed(&place, &["./p"]) else { return };
    assert_eq!(text(&output.stdout), "1\nfault\n", "{}", text(&output.stderr));
    let load = first(&profile);
    assert!(load.probes > 0, "{load:#?} {:#?}", profile.refusals);
    assert!(load.latency.value().is_none(), "{load:#?}");
}

#[test]
fn threads_are_stopped_each_for_itself() {
    let source = r#"
        static void *walk(void *from) { return chase(from, 4 * LINES); }
        int main(void) {
            link_all();
            pthread_t threads[3];
            for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, walk, &everything[i * 1000]);
            int right = 0;
            for (long i = 0; i < 3; i++) { void *end; pthread_join(threads[i], &end); right += end == &everything[i * 1000]; }
            printf("%d\n", right);
        }
    "#;
    let place = place(&format!("{CHASE}{source}"));
    let Some((output, profile)) = probed(&place, &["./p"]) else { return };
    assert_eq!(text(&output.stdout), "3\n", "{}", text(&output.stderr));
    assert!(first(&profile).probes >= 64, "{:#?}", profile.loads.first());
}

#[test]
fn without_probes_there_is_no_latency() {
    let place =
        place(&format!("{CHASE}{}", "int main(void) { link_all(); return chase(everything, LINES) == 0; }"));
    let Some((_, profile)) = profiled(&place, &["--no-probes", "--", "./p"]) else { return };
    let load = first(&profile);
    assert!(load.latency.value().is_none() && load.probes == 0, "{load:#?}");
    assert!(profile.sampling.calibration.probe_cost.value().is_none());
}
