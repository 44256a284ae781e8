//! What a user meets at the front door when something is wrong: one clear line, the right exit
//! code, nothing lost.
//!
//! To add a case of wrong use: a line in [`wrong_use_is_told_in_one_line`].

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn gleaner(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gleaner")).args(args).stdin(Stdio::null()).output().expect("it runs")
}

/// Exit code and the one line on standard error, its newline and `gleaner: ` taken off.
fn refusal(output: &Output) -> (Option<i32>, String) {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.stdout.is_empty(), "on standard output: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(stderr.lines().count(), 1, "one line: {stderr:?}");
    let line =
        stderr.trim_end().strip_prefix("gleaner: ").unwrap_or_else(|| panic!("who speaks? {stderr:?}"));
    (output.status.code(), line.to_owned())
}

fn refused(args: &[&str]) -> (Option<i32>, String) {
    refusal(&gleaner(args))
}

#[test]
fn wrong_use_is_told_in_one_line() {
    for (args, line) in [
        (&[][..], "no verb given; see gleaner --help"),
        (&["measuer"], "unrecognized subcommand 'measuer'; did you mean 'measure'?"),
        (&["measure", "--qick"], "unexpected argument '--qick' found; did you mean '--quick'?"),
        (&["measure", "--quick", "--thorough"], "the argument '--quick' cannot be used with '--thorough'"),
        (
            &["measure", "--max-memory", "3X"],
            "invalid value '3X' for '--max-memory <SIZE>': '3X' is not a size; write for example 32K, 1M or 1.5 GiB",
        ),
        (&["measure", "latency", "--stride", "64"], "--stride: needs the stride experiment"),
        (
            &["measure", "stride", "-q", "--stride", "64,100"],
            "--stride 100 B: a stride is 8 bytes or more, and a part or a multiple of a line of 64",
        ),
        (&["measure", "--cpu", "x"], "invalid value 'x' for '--cpu <N>': invalid digit found in string"),
        (&["doctor", "--root", "/not/there"], "--root /not/there: No such file or directory"),
        (
            &["doctor", "--root", "/proc/version"],
            "--root /proc/version: not a recorded machine: the first line is not '# gleaner tree 1'",
        ),
        (&["show"], "the following required arguments were not provided: <RECORD>"),
        (
            &["harvest", "--no-cach", "--", "true"],
            "unexpected argument '--no-cach' found; did you mean '--no-cache'?",
        ),
        (
            &["harvest", "--plan", "p.json", "--max-slowdown", "5%", "--", "true"],
            "the argument '--plan <FILE>' cannot be used with '--max-slowdown <SHARE>'",
        ),
        (
            &["harvest", "--plan", "p.json", "--max-absence", "1us", "--", "true"],
            "the argument '--plan <FILE>' cannot be used with '--max-absence <TIME>'",
        ),
        (&["harvest", "--every-load", "true"], "unexpected argument '--every-load' found"),
        (&["harvest", "-x", "--", "true"], "unexpected argument '-x' found"),
        (&["harvest", "--", "-x", "--dry-run"], "primary: -x: no such program in PATH"),
    ] {
        assert_eq!(refused(args), (Some(2), line.to_owned()), "{args:?}");
    }
}

#[test]
fn an_unknown_experiment_gets_a_suggestion() {
    let (code, line) = refused(&["measure", "latencyy"]);
    assert_eq!(code, Some(2));
    assert!(line.starts_with("invalid value 'latencyy' for '[EXPERIMENT]...'"), "{line}");
    assert!(line.contains("bandwidth") && line.ends_with("; did you mean 'latency'?"), "{line}");
}

#[test]
fn too_small_an_address_space_is_told() {
    let limited = |kib: u32| {
        let line = format!("ulimit -v {kib}; exec {} show /not/there", env!("CARGO_BIN_EXE_gleaner"));
        Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).output().expect("a shell")
    };
    // From where the loader gets along until it is enough.
    let mut told = 0;
    for kib in (10_000..400_000).step_by(1000) {
        let output = limited(kib);
        if output.status.code() == Some(127) || output.status.code().is_none() {
            assert_eq!(told, 0, "{kib}");
            continue;
        }
        let (code, line) = refusal(&output);
        if code == Some(2) {
            break;
        }
        assert_eq!(code, Some(3), "{line}");
        assert!(line.starts_with("memory: the address space is limited to "), "{line}");
        assert!(line.contains(" MiB (ulimit -v); "), "{line}");
        told += 1;
    }
    assert!((1..20).contains(&told), "{told}");
    assert_eq!(refusal(&limited(400_000)).0, Some(2));
    let line = format!("ulimit -s 64; exec {} show /not/there", env!("CARGO_BIN_EXE_gleaner"));
    let output = Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).output().expect("a shell");
    let told = "memory: the stack is limited to 64 KiB (ulimit -s); 128 KiB is enough".to_owned();
    assert_eq!(refusal(&output), (Some(3), told));
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    let (code, line) = refused(&["measure", "clock", "--cpu", "60000"]);
    assert_eq!(code, Some(2));
    assert!(line.starts_with("--cpu 60000: there is no such CPU; this host has 0"), "{line}");
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_work() {
    let (code, line) = refused(&["measure", "-o", "/no/such/place/machine.json"]);
    assert_eq!(code, Some(2));
    assert_eq!(line, "cannot write /no/such/place/machine.json: No such file or directory");
}

#[test]
fn a_directory_for_tables_that_cannot_be_is_refused_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let below = file.join("tables");
    let (code, line) = refused(&["measure", "--csv", below.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert_eq!(line, format!("cannot create {}: Not a directory", below.display()));
    let name = file.to_str().unwrap();
    for args in [["measure", "--csv", name], ["tour", "--directory", name]] {
        let (code, line) = refused(&args);
        assert_eq!(code, Some(2));
        assert_eq!(line, format!("cannot create {name}: it is not a directory"));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}

#[test]
fn more_memory_than_there_is_is_remarked_and_not_tried() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("machine.json");
    let args = ["measure", "clock", "--quick", "--max-memory", "1TiB", "-o", record.to_str().unwrap()];
    let output = gleaner(&args);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let remark = said.lines().find(|l| l.starts_with("--max-memory 1 TiB: ")).expect("a remark");
    assert!(remark.contains(" is available here, of which at most "), "{remark}");
}

/// What `gleaner show` says to a file that holds this.
fn shown(content: &[u8]) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("record.json");
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap();
    let (code, line) = refused(&["show", path]);
    (code, line.strip_prefix(&format!("{path}: ")).unwrap_or_else(|| panic!("{line}")).to_owned())
}

#[test]
fn records_that_are_none_are_told_from_one_another() {
    let future = r#"{"kind":"machine","version":999,"gleaner":"9.0.0","created":"2030-01-01T00:00:00Z"}"#;
    for (content, line) in [
        (&b""[..], "the file is empty"),
        (b"\x7fELF", "not a Gleaner record (it does not begin with '{')"),
        (b"{\"kind\":\"mach", "cut short: the JSON ends in the middle, at line 1"),
        (b"{}", "JSON, but not a Gleaner record: it has no \"kind\""),
        (
            br#"{"kind":"poem","version":1}"#,
            "a record of kind 'poem', which this gleaner does not know; a later one may",
        ),
        (
            future.as_bytes(),
            "written by a later gleaner (version 999 of 'machine'; this one reads up to 1); update gleaner",
        ),
    ] {
        assert_eq!(shown(content), (Some(2), line.to_owned()));
    }
    let (code, line) = refused(&["show", "/no/such/record.json"]);
    assert_eq!(
        (code, line.as_str()),
        (Some(2), "/no/such/record.json: cannot be read: No such file or directory")
    );
}

#[test]
fn show_gives_figures_trees_and_json() {
    let record = "../records/fixtures/machine.v1.interrupted.json";
    let shown = |args: &[&str]| {
        let output = gleaner(&[&["show", record], args].concat());
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(shown(&[".run.seed"]), "18446744073709551615\n");
    assert_eq!(shown(&[".run.tsc"]), "not resolved: stopped before the clock was measured\n");
    assert_eq!(shown(&[".run.grade.reasons[0]", "--json"]), "\"stopped before anything was measured\"\n");
    let tree = shown(&[]);
    assert!(
        tree.starts_with("machine record, version 1, written by gleaner 0.1.0 at 2026-01-31T12:00:00Z\n"),
        "{tree}"
    );
    assert!(!tree.contains('\x1b'), "colours, though this is no terminal: {tree:?}");
    let whole: serde_json::Value = serde_json::from_str(&shown(&["--json"])).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(whole, file);

    let (code, line) = refused(&["show", record, ".run.sead"]);
    assert_eq!(code, Some(2));
    assert!(
        line.starts_with(
            "nothing at .run.sead: at .run: no field 'sead'; did you mean 'seed'? there are cpu, "
        ),
        "{line}"
    );
}

#[test]
fn show_reads_standard_input() {
    let file = std::fs::File::open("../records/fixtures/machine.v1.interrupted.json").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gleaner"))
        .args(["show", "-", ".run.effort"])
        .stdin(file)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "quick\n");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gleaner"))
        .args(["measure", "--help"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn standard_output_that_takes_nothing_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gleaner")).arg("--help").stdout(full).output().unwrap();
    assert_eq!(
        refusal(&output),
        (Some(3), "cannot write to standard output: No space left on device".to_owned())
    );
}

#[test]
fn closed_descriptors_do_no_harm() {
    let script = format!("exec '{}' --help <&- >&- 2>&-", env!("CARGO_BIN_EXE_gleaner"));
    let status = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn the_version_is_told() {
    let output = gleaner(&["--version"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("gleaner {}\n", env!("CARGO_PKG_VERSION")));
}

/// Needs a file system of its own, so root or user namespaces; `make test` names it as skipped
/// where it has neither.
#[test]
fn on_a_full_disk_the_old_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"
        mount -t tmpfs -o size=16k none "$1" || exit 77
        cd "$1" && printf old > gleaner.bash || exit 77
        cat /dev/zero > fill 2>/dev/null
        "$2" generate completions . ; echo "exit $?"
        cat gleaner.bash; ls -A
    "#;
    let run = |flags: &str| {
        Command::new("unshare")
            .args([flags, "sh", "-c", script, "sh"])
            .args([dir.path(), Path::new(env!("CARGO_BIN_EXE_gleaner"))])
            .env("LC_ALL", "C")
            .output()
    };
    let mounted = |o: &Output| o.status.success() && !o.stdout.is_empty();
    let Some(output) = ["-m", "-rm"].into_iter().filter_map(|f| run(f).ok()).find(mounted) else {
        eprintln!("skipped: no file system of our own can be mounted here");
        return;
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, "exit 3\noldfill\ngleaner.bash\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "gleaner: cannot write ./gleaner.bash: No space left on device\n");
}

#[test]
fn the_doctor_reads_a_machine_recorded_elsewhere() {
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/fixtures/power9-s922.tree");
    let text = gleaner(&["doctor", "--root", machine]);
    assert!(text.status.success());
    assert!(String::from_utf8_lossy(&text.stdout).contains("POWER9"));
    let json = gleaner(&["doctor", "--json", "--root", machine]);
    assert!(json.status.success() && json.stderr.is_empty());
    let host: serde_json::Value = serde_json::from_slice(&json.stdout).expect("nothing but JSON");
    assert_eq!(host["topology"]["threads"], 32);
}

#[test]
fn the_doctor_records_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("here.tree");
    let name = file.to_str().unwrap();
    assert!(gleaner(&["doctor", "--record", name]).status.success());
    let text = gleaner(&["doctor", "--root", name]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("Verdict"));
    let (code, line) = refused(&["doctor", "--record", "/dev/full"]);
    assert_eq!((code, line.as_str()), (Some(3), "cannot write /dev/full: No space left on device"));
}
