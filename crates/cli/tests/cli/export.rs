//! `gleaner export`: where its output goes, what it refuses, and what it says where a record has
//! less than a format asks for. What stands in each format is tested beside the crate `export`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn fixture(name: &str) -> String {
    let path = testkit::root().join("crates/records/fixtures").join(name);
    path.to_str().expect("a path that is text").to_owned()
}

fn export(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.arg("export").args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const FORMATS: [&str; 10] = [
    "pprof",
    "folded",
    "speedscope",
    "firefox",
    "callgrind",
    "memprof",
    "csv-loads",
    "csv-functions",
    "csv-objects",
    "csv-lines",
];

/// A real profile, in each format, to a file as to standard output.
#[test]
fn every_format_goes_where_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let record = fixture("profile.v1.call-chain.json");
    for format in FORMATS {
        let to_stdout = export(&["--format", format, &record]);
        assert_eq!(told(&to_stdout), (Some(0), String::new()), "{format}");
        let file = directory.path().join(format);
        let to_file = export(&["--format", format, "-o", file.to_str().unwrap(), &record]);
        let (code, remark) = told(&to_file);
        assert_eq!((code, to_file.stdout.len()), (Some(0), 0), "{format}");
        // What to do with it now is one line, which names the file.
        let csv = format.starts_with("csv");
        assert_eq!(
            (remark.lines().count(), remark.contains(file.to_str().unwrap())),
            (usize::from(!csv), !csv)
        );
        assert!(std::fs::read(&file).unwrap() == to_stdout.stdout, "{format}");
        let quiet = export(&["-q", "--format", format, "-o", file.to_str().unwrap(), &record]);
        assert_eq!(told(&quiet), (Some(0), String::new()), "{format}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["export", "--format", "folded", "-"]).stdin(std::fs::File::open(&record).unwrap());
    assert_eq!(command.output().unwrap().stdout, export(&["--format", "folded", &record]).stdout);
}

#[test]
fn what_cannot_be_exported_is_said_in_a_line() {
    let machine = fixture("machine.v1.interrupted.json");
    let profile = fixture("profile.v1.call-chain.json");
    let cases: [(&[&str], &str); 8] = [
        (
            &["--format", "pprof", &machine],
            ": a 'machine' record, where this format takes profile records; --parquet",
        ),
        (&["--format", "folded", "/dev/null"], "/dev/null: the file is empty\n"),
        (&["--format", "folded", "/nowhere"], "/nowhere: cannot be read: No such file or directory\n"),
        (
            &["--format", "csv-loads", "--weight", "stall", &profile],
            "--format csv-loads has no stacks to weigh\n",
        ),
        (
            &["--format", "pprof", "-o", "/nowhere/file", &profile],
            "/nowhere/file: No such file or directory\n",
        ),
        (&["--json", "--format", "pprof", &profile], "--json: the output is what --format pprof says\n"),
        (&["--format", "svg", &profile], "invalid value 'svg'"),
        (&[&profile], "--format"),
    ];
    for (arguments, line) in cases {
        let output = export(arguments);
        let (code, text) = told(&output);
        assert_eq!(
            (code, output.stdout.len(), text.lines().count()),
            (Some(2), 0, 1),
            "{arguments:?}: {text}"
        );
        assert!(text.contains(line), "{arguments:?}: {text}");
    }
}

#[test]
fn a_record_without_stacks_is_flat_and_says_so() {
    let record = fixture("profile.v1.clock-three-loops.json");
    for format in ["pprof", "folded", "speedscope", "firefox", "callgrind"] {
        let line = format!("{record}: no stacks were sampled; these are its functions alone\n");
        assert_eq!(told(&export(&["--format", format, &record])), (Some(0), line), "{format}");
    }
    assert_eq!(told(&export(&["--format", "csv-functions", &record])), (Some(0), String::new()));
}

#[test]
fn a_terminal_gets_no_binary() {
    let record = fixture("profile.v1.call-chain.json");
    let on_terminal = |format: &str| {
        let line = format!("{} export --format {format} {record}", env!("CARGO_BIN_EXE_gleaner"));
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &line, "/dev/null"]).stdin(Stdio::null());
        script.output().expect("script, of util-linux")
    };
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("skipped: no 'script' here, which makes a terminal (Debian: apt install bsdutils)");
        return;
    }
    let refused = on_terminal("pprof");
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    let line = "gleaner: --format pprof: binary, and standard output is a terminal; name a file with -o\r\n";
    assert_eq!(text, line);
    assert_eq!(on_terminal("folded").status.code(), Some(0));
}
