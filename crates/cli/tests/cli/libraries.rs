//! Programs that look for their libraries beside themselves (`$ORIGIN`): as primary and as
//! scavenger they find them, though their rewritten copies are elsewhere, and nothing of how they
//! were told is in their environment.

use std::process::{Command, Output};
use testkit::{Place, without_summary};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#ifdef LIBRARY
int beside(void) { return 5; }
#else
int beside(void);
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(int argc, char **argv) {
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    gone_through = chase(ring, 1000000);
    if (argc > 1) for (;;) gone_through = chase(ring, 1000000);
    const char *list = getenv("LD_LIBRARY_PATH");
    printf("%s\n", list ? list : "none");
    fflush(stdout);
    system("env | sort | grep ^LD_; echo end");
    return beside();
}
#endif
"#;

fn place() -> Place {
    let place = Place::new(&PROGRAM.replace("return beside();", "return 0;"), env!("CARGO_BIN_EXE_gleaner"));
    std::fs::write(place.at("p.c"), PROGRAM).unwrap();
    std::fs::create_dir(place.at("lib")).unwrap();
    assert!(place.compile("cc", "lib/libbeside.so", &["-DLIBRARY", "-shared", "-fPIC"]));
    let search = format!("-L{}", place.at("lib").display());
    for (name, path, tags) in [
        ("old", "-Wl,-rpath,$ORIGIN/lib", "-Wl,--disable-new-dtags"),
        ("new", "-Wl,-rpath,/no/such:${ORIGIN}/lib", "-Wl,--enable-new-dtags"),
    ] {
        assert!(place.compile("cc", name, &["-Wl,--no-as-needed", &search, "-lbeside", path, tags]));
    }
    place
}

fn told(output: &Output) -> (Option<i32>, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &without_summary(&text(&output.stderr)))
}

#[test]
fn libraries_beside_a_program_are_found() {
    let place = place();
    for (name, users) in
        [("old", None), ("new", None), ("old", Some("/a:/b")), ("new", Some("")), ("new", Some("/c"))]
    {
        let name = format!("./{name}");
        let set = |mut command: Command| {
            command.env_remove("LD_LIBRARY_PATH");
            if let Some(users) = users {
                command.env("LD_LIBRARY_PATH", users);
            }
            told(&command.output().unwrap())
        };
        let alone = set(place.command(place.at(&name)));
        assert_eq!(alone.0, Some(5), "{}", alone.1);
        // Through a link, too: what counts is where the program is.
        std::fs::create_dir_all(place.at("links")).unwrap();
        let link = place.at("links").join(&name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(place.at(&name), &link).unwrap();
        for primary in [place.at(&name), link] {
            let primary = primary.to_str().unwrap();
            assert_eq!(set(place.harvest(&["--scavenger", "./p spin", "--", primary])), alone, "{primary}");
        }
        let scavenger = ["--scavenger", &name, "--scavenger-out", "out", "--record", "run.json"];
        let _ = std::fs::remove_file(place.at("out"));
        let waiting = "for i in $(seq 2000); do grep -q ^end out && exit 0; sleep 0.01; done; exit 1";
        let company = set(place.harvest(&[&scavenger[..], &["--", "sh", "-c", waiting]].concat()));
        assert_eq!(company.0, Some(0), "{}", company.1);
        let said = std::fs::read_to_string(place.at("out")).unwrap();
        assert_eq!(said, alone.1, "{name} as a scavenger");
    }
}

#[test]
fn places_that_cannot_be_told_are_refused_in_a_line() {
    let place = place();
    std::fs::create_dir(place.at("a;b")).unwrap();
    std::fs::rename(place.at("old"), place.at("a;b/old")).unwrap();
    let output = place.harvest(&["--", "./a;b/old"]).output().unwrap();
    let line = "gleaner: ./a;b/old: its loader searches libraries relative to the program ($ORIGIN), in directories that cannot be passed to the loader of the rewritten copy\n";
    assert_eq!(told(&output), (Some(3), line.to_owned()));
}

/// Libraries that would keep all waiting are left as they are, and made by a later launch; what is
/// there takes no time.
#[test]
fn libraries_that_take_long_are_left_to_later_launches() {
    let place = place();
    let scavenger =
        ["--assume-costs", "--scavenger", "./old", "--scavenger-out", "out", "--record", "run.json"];
    let waiting = "for i in $(seq 2000); do grep -q ^end out && exit 0; sleep 0.01; done; exit 1";
    // How many are left, by the record, and whether it is said.
    let launch = |time: &[&str]| {
        let _ = std::fs::remove_file(place.at("out"));
        let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
        command.arg("harvest").args(time).args(scavenger).args(["--", "sh", "-c", waiting]);
        let output = command.output().expect("a launcher");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let run = records::read::<records::run::Run>(&place.at("run.json")).expect("a record").body;
        let left = run.refusals.iter().find(|refused| refused.why.contains("--library-time"));
        let left = left.map(|refused| refused.what.clone());
        assert_eq!(said.contains("not rewritten yet"), left.is_some(), "{said}");
        (left, rewritten(&place))
    };
    let one = Some("1 library of scavengers".to_owned());
    assert_eq!(launch(&["--library-time", "0s"]), (one, vec!["libc.so.6".to_owned()]), "libc is ready");
    let both = || vec!["libbeside.so".to_owned(), "libc.so.6".to_owned()];
    assert_eq!(launch(&[]), (None, both()));
    assert_eq!(launch(&["--library-time", "0s"]), (None, both()), "what is there takes no time");
}

/// The rewritten libraries in the cache.
fn rewritten(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.at("cache/gleaner/twins")).expect("a cache").flatten();
    let files = entries.filter_map(|entry| std::fs::read_dir(entry.path()).ok()).flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("lib")).collect();
    names.sort();
    names
}
