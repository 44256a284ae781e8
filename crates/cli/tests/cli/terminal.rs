//! What terminals are shown: nothing that steers them, and only what they can show.
//!
//! To add a case: an environment, and what the text must not contain.

use std::process::{Command, Output, Stdio};

const MACHINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/fixtures/firecracker-zen5.tree");

fn gleaner(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(args).stdin(Stdio::null());
    for name in ["LC_ALL", "LC_CTYPE", "LANG", "TERM", "COLUMNS"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied()).output().expect("it runs")
}

fn text(args: &[&str], environment: &[(&str, &str)]) -> String {
    let output = gleaner(args, environment);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn where_only_ascii_can_be_shown_nothing_else_is() {
    let shown = |environment: &[(&str, &str)]| text(&["doctor", "--root", MACHINE], environment);
    assert!(shown(&[("LC_ALL", "C.UTF-8")]).contains('✓'));
    for environment in [&[("LC_ALL", "C")][..], &[], &[("LC_ALL", "C.UTF-8"), ("TERM", "dumb")]] {
        let shown = shown(environment);
        assert!(shown.is_ascii() && !shown.contains('\x1b'), "{environment:?}: {shown}");
        assert!(shown.contains("\n  + "), "{shown}");
    }
    let help = text(&["harvest", "--help"], &[("LC_ALL", "C")]);
    assert!(help.is_ascii(), "{help}");
}

#[test]
fn text_fits_into_forty_columns() {
    let narrow = &[("COLUMNS", "40")];
    let whole = text(&["doctor", "--root", MACHINE], narrow);
    let long: Vec<&str> = whole.lines().filter(|line| line.chars().count() > 40).collect();
    // A command is one word to be copied, however long; it may stand beside the name of its row.
    let is_one_word = |line: &&str| line.get(20..).is_some_and(|value| value.split(' ').count() == 1);
    assert!(long.iter().all(is_one_word), "{long:#?}");
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../records/fixtures/machine.v1.interrupted.json");
    let whole = text(&["show", record], narrow);
    assert!(whole.lines().all(|line| line.chars().count() <= 40), "{whole}");
}

#[test]
fn records_do_not_steer_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let record = include_str!("../../../records/fixtures/machine.v1.interrupted.json");
    let steering = record.replacen("2026-01-31T12:00:00Z", "\\u001b]0;owned\\u0007\\u009b2J", 1);
    assert_ne!(steering, record);
    std::fs::write(path("machine.json"), steering).unwrap();
    let tree = std::fs::read_to_string(MACHINE).unwrap();
    let steering = tree.replacen("AMD EPYC", "AMD \x1b]0;owned\x07EPYC", 9);
    assert_ne!(steering, tree);
    std::fs::write(path("machine.tree"), steering).unwrap();
    for args in [
        &["show", &path("machine.json")][..],
        &["show", &path("machine.json"), "--json"],
        &["show", &path("machine.json"), ".created"],
        &["doctor", "--root", &path("machine.tree")],
        &["doctor", "--root", &path("machine.tree"), "--json"],
    ] {
        let shown = text(args, &[("LC_ALL", "C.UTF-8")]);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {shown:?}");
        assert!(shown.contains("owned"), "{args:?}: {shown}");
    }
    let output = gleaner(&["show", "\x1b[31mno\u{9b}such"], &[]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.trim_end().chars().any(char::is_control), "{told:?}");
}

#[test]
fn help_is_a_verb_too() {
    let long = &[("COLUMNS", "100"), ("LC_ALL", "C.UTF-8")];
    assert_eq!(text(&["help"], long), text(&["--help"], long));
    for verb in ["measure", "harvest", "show"] {
        assert_eq!(text(&["help", verb], long), text(&[verb, "--help"], long));
    }
    let output = gleaner(&["help", "measuer"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told, "gleaner: help: unrecognized subcommand 'measuer'; did you mean 'measure'?\n");
}

#[test]
fn each_experiment_is_explained_in_the_help() {
    let help = text(&["measure", "--help"], &[("COLUMNS", "200")]);
    // Lines of the help are no wider than 100 columns, whatever the terminal.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for entry in experiments::catalogue::ALL {
        assert!(help.contains(&format!("- {}:", entry.name)) && help.contains(entry.about), "{help}");
    }
}
