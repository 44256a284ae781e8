//! `gleaner harvest --together`: programs in each other's stalls, without a primary.

use testkit::{Place, said, text};

/// Chases through a list, and writes where it ended; ends as its second argument says.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { NODES = 1 << 18 };
static struct { void *next; long pad[7]; } list[NODES];
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(int argc, char **argv) {
    size_t at = 0;
    for (size_t i = 0; i < NODES; i++) {
        size_t next = (at * 1664525 + 1013904223) % NODES;
        list[at].next = &list[next];
        at = next;
    }
    void **end = chase((void **)list, atol(argv[1]));
    printf("%s ends at %zu\n", argv[1], ((char *)end - (char *)list) / sizeof list[0]);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

/// What one of them writes alone.
fn alone(place: &Place, loads: &str) -> String {
    let output = std::process::Command::new(place.at("p")).arg(loads).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn all_of_them_run_to_their_ends_and_write_what_they_write_alone() {
    let place = place();
    let run = place
        .harvest(&["--together", "--record", "run.json", "2 x ./p 3000000", "./p 5000000", "/bin/echo said"])
        .output()
        .unwrap();
    let (output, errors) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{errors}");
    let (three, five) = (alone(&place, "3000000"), alone(&place, "5000000"));
    let expected = format!("{three}{three}{five}said\n");
    assert_eq!(sorted(&output), sorted(&expected), "{errors}");
    assert!(errors.contains("harvest of programs together: ") && !errors.contains("slowdown"), "{errors}");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("run.json")).unwrap()).unwrap();
    assert_eq!(
        (record["together"].as_bool(), record["scavengers"].as_array().unwrap().len()),
        (Some(true), 4)
    );
    let boardings: f64 = record["yields"]["guests"]["value"].as_f64().unwrap();
    assert!(boardings > 1000.0, "they were hardly aboard: {record}");
}

#[test]
fn the_first_failure_is_the_exit_code() {
    let place = place();
    for (commands, expected) in [
        (["./p 1000", "./p 1000 7", "./p 1000 9"], 7),
        (["/bin/false", "./p 1000", "./p 1000"], 1),
        (["./p 1000", "/bin/sh -c 'kill -9 $$'", "./p 1000"], 128 + 9),
    ] {
        let run = place.harvest(&[&["--together"][..], &commands[..]].concat()).output().unwrap();
        let (code, _, errors) = said(&run);
        assert_eq!(code, Some(expected), "{commands:?}: {errors}");
    }
}

#[test]
fn output_may_go_to_files() {
    let place = place();
    let run =
        place.harvest(&["--together", "--scavenger-out", "out/", "./p 1000", "./p 2000"]).output().unwrap();
    let (code, output, errors) = said(&run);
    assert_eq!((code, output.as_str()), (Some(0), ""), "{errors}");
    for (file, loads) in [("out/1-p.out", "1000"), ("out/2-p.out", "2000")] {
        assert_eq!(std::fs::read_to_string(place.at(file)).unwrap(), alone(&place, loads));
    }
}

#[test]
fn what_makes_no_sense_with_it_is_refused_in_a_line() {
    let place = place();
    for options in [
        &["--together", "--siblings", "./p 1"][..],
        &["--together", "--scavenger", "./p 1", "./p 1"],
        &["--together", "--max-slowdown", "5%", "./p 1"],
        &["--together", "./nothing-there"],
        &["--together", "65 x ./p 1"],
    ] {
        let run = place.harvest(options).output().unwrap();
        let (code, output, errors) = said(&run);
        assert_eq!(code, Some(2), "{options:?}: {errors}");
        assert!(output.is_empty() && errors.starts_with("gleaner: "), "{options:?}: {errors}");
    }
}
