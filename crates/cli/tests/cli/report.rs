//! `gleaner report`: where its page goes, what it never overwrites, what it refuses. What is on the
//! page is tested beside the crate `report`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn fixture(name: &str) -> String {
    let path = testkit::root().join("crates/records/fixtures").join(name);
    path.to_str().expect("a path that is text").to_owned()
}

fn report(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.current_dir(directory).env("USER", "mallory").env_remove("LOGNAME");
    command.arg("report").args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_page_goes_beside_the_first_record_or_where_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::copy(fixture("run.v1.one-scavenger.json"), here.join("run.json")).unwrap();
    let remark = "the report is in run.html: open it in a browser\n".to_owned();
    assert_eq!(told(&report(here, &["run.json"])), (Some(0), remark.clone()));
    let page = std::fs::read_to_string(here.join("run.html")).unwrap();
    assert!(page.contains("Absences of the primary") && page.contains("Content-Security-Policy"));
    assert_eq!(told(&report(here, &["run.json"])), (Some(0), remark), "a report may be replaced");
    let to_stdout = report(here, &["-o", "-", "run.json"]);
    assert_eq!((told(&to_stdout), to_stdout.stdout == page.as_bytes()), ((Some(0), String::new()), true));
    let several =
        report(here, &["-q", "-o", "all.html", "run.json", &fixture("plan.v1.assumed-prices.json")]);
    assert_eq!(told(&several), (Some(0), String::new()));
    let page = std::fs::read_to_string(here.join("all.html")).unwrap();
    assert!(page.contains("id=\"r1\"") && page.contains("id=\"r2\""));
}

#[test]
fn figures_are_files_too() {
    let directory = tempfile::tempdir().unwrap();
    let record = fixture("profile.v1.call-chain.json");
    assert_eq!(
        report(directory.path(), &["-q", "--svg", "figures", "-o", "p.html", &record]).status.code(),
        Some(0)
    );
    let figures = std::fs::read_dir(directory.path().join("figures")).unwrap();
    let names: Vec<_> = figures.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.contains(&"r1-flame-time.svg".to_owned()), "{names:?}");
}

#[test]
fn what_is_shared_names_no_user() {
    let directory = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture("profile.v1.call-chain.json")).unwrap();
    let text = text.replacen("\"main\"", "\"main of mallory in /Users/eve/x\"", 1);
    std::fs::write(directory.path().join("p.json"), text).unwrap();
    let page = |arguments: &[&str]| String::from_utf8(report(directory.path(), arguments).stdout).unwrap();
    let open = page(&["-o", "-", "p.json"]);
    assert!(open.contains("mallory") && open.contains("/Users/eve"));
    let shared = page(&["--share", "-o", "-", "p.json"]);
    assert!(!shared.contains("mallory") && !shared.contains("eve/") && shared.contains("main of … in ~/x"));
}

#[test]
fn what_cannot_be_reported_is_said_in_a_line() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("thesis.html"), "<html>years of work</html>").unwrap();
    std::fs::write(directory.path().join("cut.json"), "{\"kind\":\"machine\",").unwrap();
    let record = fixture("run.v1.one-scavenger.json");
    let cases: [(&[&str], &str); 6] = [
        (
            &["-o", "thesis.html", &record],
            "thesis.html: the file is there and is no report; it is not overwritten",
        ),
        (&["/dev/null", "-o", "x.html"], "/dev/null: the file is empty"),
        (&["-o", "x.html", "cut.json"], "cut.json: cut short"),
        (&["-o", "x.html", "cut.json", "/dev/null"], "cut.json: cut short"),
        (&["--json", &record], "--json: the output is an HTML page"),
        (&["-o", "nowhere/x.html", &record], "nowhere/x.html: No such file or directory"),
    ];
    for (arguments, line) in cases {
        let (code, text) = told(&report(directory.path(), arguments));
        assert_eq!((code, text.contains(line)), (Some(2), true), "{arguments:?}: {text}");
    }
    let thesis = std::fs::read_to_string(directory.path().join("thesis.html")).unwrap();
    assert_eq!(thesis, "<html>years of work</html>");
    assert!(!directory.path().join("x.html").exists(), "no page of nothing");
}

#[test]
fn what_cannot_be_read_is_named_on_the_page_of_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let sound = std::fs::read_to_string(fixture("run.v1.one-scavenger.json")).unwrap();
    std::fs::write(here.join("run.json"), &sound).unwrap();
    std::fs::write(here.join("cut.json"), &sound[..sound.len() / 2]).unwrap();
    let later = sound.replacen("\"version\": 1", "\"version\": 99", 1);
    std::fs::write(here.join("later.json"), later).unwrap();
    let without = sound.replacen("\"primary\"", "\"secondary\"", 1);
    std::fs::write(here.join("without.json"), without).unwrap();
    let output = report(here, &["-o", "x.html", "cut.json", "later.json", "run.json", "without.json"]);
    let (code, text) = told(&output);
    let page = std::fs::read_to_string(here.join("x.html")).unwrap();
    assert_eq!(code, Some(1), "{text}");
    for (file, why) in [
        ("cut.json", "cut short: the JSON ends in the middle"),
        ("later.json", "written by a later gleaner (version 99 of"),
        ("without.json", "missing field `primary`"),
    ] {
        assert!(text.lines().any(|line| line.contains(file) && line.contains(why)), "{file}: {text}");
        let (_, behind) = page.split_once(&format!("<bdi>{file}</bdi>: ")).expect(file);
        assert!(behind.split("</p>").next().unwrap().contains(why), "{file}");
    }
    assert!(page.contains("<a href=\"#unread\">Not read</a>") && page.contains("Absences of the primary"));
    let shared = report(here, &["--share", "-o", "-", "run.json", "cut.json"]);
    assert!(String::from_utf8_lossy(&shared.stdout).contains("<bdi>cut.json</bdi>"));
}
