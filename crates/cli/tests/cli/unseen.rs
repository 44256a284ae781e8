//! What a harvest cannot reach: programs that another one executes in its place, as wrappers do,
//! and libraries. A line says so.

use std::process::Stdio;
use testkit::{Place, text, without_summary};

/// With `-DLIBRARY` a library, with `-DPROGRAM` a program that does nothing but call it, else one
/// that executes its arguments.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int work(void);
#if defined(LIBRARY)
int work(void) { puts("worked"); return 4; }
#elif defined(PROGRAM)
int main(void) { return work(); }
#else
int main(int argc, char **argv) {
    if (argc < 2) for (;;) usleep(1000);
    if (argc < 3) return sleep(atoi(argv[1]));
    execv(argv[1], argv + 1);
    return 99;
}
#endif
"#;

fn place() -> Place {
    Place::new(SOURCE, env!("CARGO_BIN_EXE_gleaner"))
}

#[test]
fn a_program_that_is_executed_in_anothers_place_is_named() {
    let place = place();
    let own = ["--scavenger", "./p", "--", "./p", "/bin/sh", "-c", "sleep 1; echo done; exit 5"];
    let output = place.harvest(&own).output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("done\n", Some(5)));
    let told = text(&output.stderr);
    let expected = "gleaner: harvesting to the end: the primary replaced itself with /usr/bin/dash (exec), which ran alone; \
        give that program as the primary\n";
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    assert!(told.contains(&expected.replace("/usr/bin/dash", &shell.display().to_string())), "{told}");

    let others = ["--scavenger", "./p /bin/sleep 30", "--", "./p", "/bin/sleep", "1"];
    let told = text(&place.harvest(&others).output().unwrap().stderr);
    let sleep = std::fs::canonicalize("/bin/sleep").unwrap();
    let expected = format!(
        "gleaner: scavenger ./p /bin/sleep 30 (1): it replaced itself with {} (exec), which stayed at home; \
        give that program as the scavenger\n",
        sleep.display()
    );
    assert!(told.contains(&expected), "{told}");

    // Where nothing was to be harvested it runs as it is anyway.
    let itself = ["--stay-aboard", "--scavenger", "./p ./p 30", "--", "./p", "./p", "1"];
    let told = text(&place.harvest(&itself).output().unwrap().stderr);
    let expected = "gleaner: guests of the primary: ./p has no yield sites, so scavengers never run in it\n\
        gleaner: harvesting to the end: the primary executed itself again (exec), which ran alone\n\
        gleaner: scavenger ./p ./p 30 (1): it executed itself again (exec), which stayed at home\n";
    assert_eq!(without_summary(&told), expected);
}

#[test]
fn a_primary_that_gives_way_nowhere_is_told_with_its_libraries() {
    let place = place();
    let folder = place.folder().display().to_string();
    assert!(place.compile("cc", "libwork.so", &["-shared", "-fPIC", "-DLIBRARY"]));
    let (search, find) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder},--no-as-needed"));
    assert!(place.compile("cc", "q", &["-DPROGRAM", &search, &find, "-lwork"]));
    let harvest = |options: &[&str]| {
        let output =
            place.harvest(&[options, &["--", "./q"]].concat()).stdin(Stdio::null()).output().unwrap();
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("worked\n", Some(4)));
        if options.first() == Some(&"-q") {
            text(&output.stderr)
        } else {
            without_summary(&text(&output.stderr))
        }
    };
    let line = "./q has no yield sites, so scavengers never run in it";
    let libraries = "its libraries (libwork.so) are not rewritten";
    assert_eq!(
        harvest(&["--scavenger", "./p"]),
        format!("gleaner: guests of the primary: {line}; {libraries}; --libraries all rewrites them, too\n")
    );
    assert_eq!(
        harvest(&["--libraries", "all", "--scavenger", "./p"]),
        "gleaner: guests of the primary: ./q has no yield sites, nor have its libraries, so scavengers never run in it\n"
    );
    assert_eq!(harvest(&["-q", "--scavenger", "./p"]), "");
    assert_eq!(harvest(&[]), "", "nobody asked for any");

    let plan = text(&place.harvest(&["--dry-run", "--", "./q"]).output().unwrap().stdout);
    assert!(plan.contains("the primary has no yield sites, so scavengers would never run in it"), "{plan}");
}
