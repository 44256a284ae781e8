//! Programs of all kinds and places that forbid something, by the front door of `gleaner harvest`:
//! each takes part as if it were alone, or is refused or goes without something in one line.
//!
//! To add a kind of program: a line in [`scavengers_of_all_kinds`]. To add a place: a line in
//! [`what_a_place_forbids`].

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use testkit::{Place, said};

/// Chases for a while, so that there is a site, says what it was given and ends with a code of its
/// own. `company FILE` chases until there is such a file with something in it, and ends with 4;
/// `work N` takes N million steps.
const PROGRAM: &str = r#"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static void *ring[4096];
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(int argc, char **argv) {
    for (int i = 0; i < 4096; i++) ring[i] = &ring[(i + 1237) % 4096];
    void **p = chase(ring, 3000000);
    if (argc == 3 && !strcmp(argv[1], "company")) {
        struct stat s;
        for (long n = 0; n < 20000 && (stat(argv[2], &s) || s.st_size == 0); n++) p = chase(p, 1000000), usleep(2000); /* for scavengers at home */
        return p ? 4 : 5;
    }
    if (argc == 3 && !strcmp(argv[1], "work"))
        for (long n = atol(argv[2]); n--;) p = chase(p, 1 << 20); /* whole rounds */
    void *q = malloc(3 << 20);
    memset(q, 1, 3 << 20);
    errno = argc;
    fopen("/no/such", "r");
    printf("%d arguments, %d at %ld\n", argc, errno, (long)(p - ring) + ((char *)q)[77]);
    return 40 + argc;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

#[test]
fn scavengers_of_all_kinds() {
    let place = place();
    std::fs::write(place.at("script"), "#!/bin/sh\nexec ./p from a script\n").unwrap();
    std::fs::set_permissions(place.at("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let kinds: [(&str, &str, &[&str]); 8] = [
        ("plain", "cc", &[]),
        ("static", "cc", &["-static"]),
        ("static-pie", "cc", &["-static-pie"]),
        ("no-pie", "cc", &["-no-pie"]),
        ("static-no-pie", "cc", &["-static", "-no-pie"]),
        ("musl", "musl-gcc", &[]),
        ("musl-static", "musl-gcc", &["-static"]),
        ("script", "", &[]),
    ];
    for (kind, compiler, options) in kinds {
        if !compiler.is_empty() && !place.compile(compiler, kind, options) {
            assert!(kind.starts_with("musl") || kind.contains("static"), "{kind}");
            eprintln!("skipped: a scavenger that is {kind}: {compiler} {options:?} does not work here");
            continue;
        }
        let alone = place.command(format!("./{kind}")).arg("x").output().unwrap();
        std::fs::write(place.at("out"), "").unwrap();
        let scavenger = format!("./{kind} x");
        let output = place
            .harvest(&["--scavenger", &scavenger, "--scavenger-out", "out", "--", "./p", "company", "out"])
            .output()
            .unwrap();
        let (code, _, errors) = said(&output);
        let (expected, printed, _) = said(&alone);
        assert_eq!(code, Some(4), "{kind}: {errors}");
        assert_eq!(std::fs::read_to_string(place.at("out")).unwrap(), printed, "{kind}");
        // Its code is told since it is not 0; it may also have been ended with the primary, which
        // it saw off.
        let (code, output) = (expected.unwrap(), "its output is in out");
        let line = format!("gleaner: scavenger {scavenger} (1): exit code {code}; {output}\n");
        // So is what a script executes in its place, where it was seen at that.
        let executed = |line: &str| kind == "script" && line.contains(": it replaced itself with ");
        let errors: String = errors.split_inclusive('\n').filter(|line| !executed(line)).collect();
        assert!(errors == line || errors.is_empty(), "{kind}: {errors}");
    }
}

#[test]
fn two_programs_cannot_be_at_one_address() {
    let place = place();
    assert!(place.compile("cc", "fixed", &["-no-pie"]));
    let output = place.harvest(&["--scavenger", "./fixed", "--", "./fixed"]).output().unwrap();
    let (code, printed, errors) = said(&output);
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{errors}");
    let line = "gleaner: harvest: ./fixed and ./fixed are both linked to fixed addresses that overlap; one of them must be position-independent (-pie)";
    assert_eq!(errors, format!("{line}\n"));
}

#[test]
fn what_is_no_program_is_told_in_one_line() {
    let place = place();
    std::fs::create_dir(place.at("directory")).unwrap();
    std::fs::write(place.at("junk"), [0_u8; 100]).unwrap();
    std::fs::write(place.at("cut"), &std::fs::read(place.at("p")).unwrap()[..1000]).unwrap();
    std::fs::write(place.at("data"), "text").unwrap();
    for name in ["junk", "cut"] {
        std::fs::set_permissions(place.at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (name, why) in [
        ("./directory", "a directory, not a program"),
        ("./absent", "no such program"),
        ("./data", "no permission to run it"),
        ("./junk", "neither a program nor a script"),
        ("./cut", "a damaged program"),
        ("./p/x", "Not a directory"),
    ] {
        for (role, arguments) in
            [("primary", vec!["--", name]), ("scavenger", vec!["--scavenger", name, "--", "./p"])]
        {
            let (code, printed, errors) = said(&place.harvest(&arguments).output().unwrap());
            assert_eq!((code, printed.as_str()), (Some(2), ""), "{role} {name}: {errors}");
            assert_eq!(errors.lines().count(), 1, "{role} {name}: {errors}");
            assert!(errors.starts_with(&format!("gleaner: {role}: {name}: ")), "{role} {name}: {errors}");
            assert!(errors.contains(why), "{role} {name}: {errors}");
        }
    }
}

/// Programs that may be executed but not read; root may read everything, so this runs as another
/// user.
#[test]
fn what_may_not_be_read_is_told_in_one_line() {
    let place = place();
    let directory = place.folder();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::set_permissions(place.at("p"), std::fs::Permissions::from_mode(0o711)).unwrap();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let gleaner = Path::new(env!("CARGO_BIN_EXE_gleaner"));
    let may = Command::new("setpriv").args(nobody).arg(gleaner).arg("--version").output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a program that may not be read: nobody cannot be made to try (setpriv, as root)");
        return;
    }
    let mut command = place.command("setpriv");
    command.args(nobody).arg(gleaner).args(["harvest", "--", "./p"]);
    let (code, printed, errors) = said(&command.output().unwrap());
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{errors}");
    assert_eq!(errors, "gleaner: primary: ./p: Permission denied\n");
}

/// As in a container: a filter for one system call, by its number (`:` and a first argument).
#[test]
fn what_a_place_forbids() {
    let place = place();
    let deny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/tests/programs/deny.c");
    let built = Command::new("cc").arg("-w").arg("-o").arg(place.at("deny")).arg(deny).status().unwrap();
    assert!(built.success());
    let denied = |call: &str, steps: &str| {
        let mut command = place.command(place.at("deny"));
        command.arg(call).arg(env!("CARGO_BIN_EXE_gleaner")).arg("harvest");
        command.args(["--scavenger", "./p company /no/such", "--", "./p", "work", steps]);
        said(&command.output().unwrap())
    };
    let (expected, printed, _) = said(&place.command("./p").args(["work", "1"]).output().unwrap());
    // Nobody is started.
    for (call, line) in [
        (
            "319",
            "cannot create a memory file for the runtime (memfd_create): Operation not permitted (os error 1)",
        ),
        (
            "434",
            "cannot open a process descriptor (pidfd_open): Operation not permitted (os error 1); it needs Linux 5.3 or later, and a container that allows it",
        ),
    ] {
        let (code, printed, errors) = denied(call, "1");
        assert_eq!((code, printed.as_str()), (Some(3), ""), "{call}: {errors}");
        assert!(errors.ends_with(&format!("{line}\n")) && errors.lines().count() == 1, "{call}: {errors}");
    }
    // The primary is as it would be alone, and the line says what it goes without.
    for (call, line) in [
        (
            "144",
            "SCHED_IDLE for scavengers off the primary: sched_setscheduler: Operation not permitted (os error 1); --home-cpus keeps them off the primary's CPU",
        ),
        (
            "157:22",
            "scavenger ./p company /no/such (1): not started: system call filters (seccomp) are not available here: Operation not permitted (os error 1)",
        ),
    ] {
        // A primary that ends soon may end before its scavenger has come to that.
        let mut said = denied(call, "300");
        for steps in ["3000", "30000"] {
            if said.2.is_empty() {
                said = denied(call, steps);
            }
        }
        assert_eq!(said, (expected, printed.clone(), format!("gleaner: {line}\n")), "{call}");
    }
    // What nobody misses.
    for call in ["312", "203", "28", "436"] {
        assert_eq!(denied(call, "1"), (expected, printed.clone(), String::new()), "{call}");
    }
    // No system call for threads' areas: the primary itself says so, and does not run.
    let (code, printed, errors) = denied("158:4097", "1");
    assert_eq!((code, printed.as_str()), (Some(3), ""), "{errors}");
    assert_eq!(errors, "gleaner: the primary cannot be harvested: the GS base cannot be set\n");
}
