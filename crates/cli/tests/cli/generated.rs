//! Help texts: the committed ones are those that this program prints. Man pages and completions are
//! made when they are installed.

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

/// Bash reads its completions without a complaint, and they know each verb.
#[test]
fn completions_are_a_script() {
    let dir = tempfile::tempdir().unwrap();
    stdout(&["generate", "completions", dir.path().to_str().unwrap()]);
    let complete = r#"source "$1" && COMP_WORDS=(gleaner me) COMP_CWORD=1 &&
        _gleaner gleaner me gleaner && printf '%s\n' "${COMPREPLY[@]}""#;
    let script = dir.path().join("gleaner.bash");
    let output = Command::new("bash").args(["--norc", "-c", complete, "bash"]).arg(&script).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "measure\n");
    for file in ["_gleaner", "gleaner.fish"] {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(text.contains("harvest") && text.contains("max-slowdown"), "{file}");
    }
}
