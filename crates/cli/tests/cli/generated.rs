//! Help texts, man pages and completions: the committed ones are those that this program makes.

use std::path::Path;
use std::process::Command;

fn stdout(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gleaner"))
        .args(args)
        .env("COLUMNS", "100")
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_is_what_was_last_agreed_on() {
    let help = stdout(&["--help"]);
    testkit::golden("crates/cli/tests/help/gleaner.txt", &help);
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.contains(&"measure") && verbs.contains(&"show"), "{verbs:?}");
    for verb in verbs {
        testkit::golden(&format!("crates/cli/tests/help/{verb}.txt"), &stdout(&[verb, "--help"]));
    }
}

#[test]
fn man_pages_and_completions_are_current() {
    for (what, committed) in [("man", "docs/man"), ("completions", "completions")] {
        let dir = tempfile::tempdir().unwrap();
        stdout(&["generate", what, dir.path().to_str().unwrap()]);
        testkit::golden_files(committed, Path::new(dir.path()));
    }
}
