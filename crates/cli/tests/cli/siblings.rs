//! `gleaner harvest --siblings` from the outside: threads of a program on one CPU do what they do
//! without it, whatever that is.
//!
//! To add something that threads do: a case of `siblings/program.c`, a line in
//! [`threads_do_what_they_do_alone`].

use records::run::{Ended, Run};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{TimeLimit, processors, text, wait_until, without_executions, without_summary};
use units::Quantity;

struct Place {
    _limit: TimeLimit,
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { _limit: TimeLimit::new(directory.path()), directory }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn compile(&self, compiler: &str, source: &str, name: &str, options: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/siblings").join(source);
        let mut compiler = Command::new(compiler);
        compiler.args(["-O2", "-w", "-pthread"]).args(options).arg("-o").arg(self.at(name)).arg(source);
        assert!(compiler.status().expect("a compiler").success());
    }

    fn alone(&self, program: &[&str]) -> Output {
        self.on_one_cpu(Path::new(program[0]), &program[1..]).output().unwrap()
    }

    fn harvested(&self, program: &[&str]) -> Output {
        self.harvest(program).output().unwrap()
    }

    fn harvest(&self, program: &[&str]) -> Command {
        let gleaner = Path::new(env!("CARGO_BIN_EXE_gleaner"));
        let before = ["harvest", "--siblings", "--assume-costs", "--record", "run.json", "--"];
        self.on_one_cpu(gleaner, &before.iter().chain(program).copied().collect::<Vec<_>>())
    }

    /// So there are more threads than CPUs, wherever the test runs.
    fn on_one_cpu(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.directory.path());
        command.env("XDG_CACHE_HOME", self.at("cache"));
        testkit::on_one_processor(&command)
    }

    fn record(&self) -> Run {
        records::read::<Run>(&self.at("run.json")).unwrap().body
    }

    /// Alone and as siblings it does the same.
    fn same(&self, program: &[&str]) {
        let (alone, harvested) = (self.alone(program), self.harvested(program));
        assert_eq!(text(&harvested.stdout), text(&alone.stdout), "{program:?}");
        assert_eq!(
            without_executions(&without_summary(&text(&harvested.stderr))),
            text(&alone.stderr),
            "{program:?}"
        );
        let status = |output: &Output| (output.status.code(), output.status.signal());
        assert_eq!(status(&harvested), status(&alone), "{program:?}");
    }
}

fn value(quantity: &Quantity) -> f64 {
    quantity.value().unwrap()
}

#[test]
fn threads_do_what_they_do_alone() {
    let place = Place::new();
    place.compile("cc", "program.c", "p", &[]);
    for program in [
        &["./p", "locks", "6", "4", "60"][..],
        &["./p", "spin", "6", "4", "200"],
        &["./p", "libcs-spin", "6", "4", "100"],
        &["./p", "barrier", "6", "4", "60"],
        &["./p", "lock-free", "6", "4", "60"],
        &["./p", "thread-local", "6", "4", "30"],
        &["./p", "fault", "6", "4", "40"],
        &["./p", "fork", "4", "4", "20"],
        &["./p", "many", "1", "4", "60"],
        &["./p", "cancel", "6", "4"],
        &["./p", "cancel-anywhere", "6", "4", "30"],
        &["./p", "newborn", "1", "4", "25"],
        &["./p", "notified", "4", "4"],
        &["./p", "identity", "4", "4", "20"],
        &["./p", "signals", "6", "4"],
    ] {
        place.same(program);
    }
}

#[test]
fn threads_go_aboard_each_other_and_the_record_says_so() {
    let place = Place::new();
    place.compile("cc", "program.c", "p", &[]);
    place.same(&["./p", "chase", "8", "16", "15"]);
    let record = place.record();
    assert_eq!(record.primary.ended, Ended::Exited { code: 0 });
    let siblings = record.siblings.unwrap();
    assert!(value(&siblings.threads) >= 9.0, "{siblings:?}");
    assert!(value(&siblings.boardings) >= 4.0, "{siblings:?}");
    let sum = |of: fn(&records::run::SiblingThread) -> &Quantity| {
        siblings.each.iter().map(|thread| value(of(thread))).sum::<f64>()
    };
    assert_eq!(sum(|thread| &thread.boardings), value(&siblings.boardings));
    assert_eq!(sum(|thread| &thread.hosted), value(&siblings.boardings));
    assert!(sum(|thread| &thread.aboard) > 0.0, "{siblings:?}");
}

/// Turns that end at bounds gain nothing, nor does a host that leaves its twins all the time: all
/// run at home soon.
#[test]
fn threads_that_gain_nothing_run_apart() {
    let place = Place::new();
    place.compile("cc", "program.c", "p", &[]);
    for program in [["./p", "numbers", "4", "1", "250"], ["./p", "calls", "4", "4", "1000"]] {
        let (alone, harvested) = (place.alone(&program), place.harvested(&program));
        assert_eq!(text(&harvested.stdout), text(&alone.stdout), "{program:?}");
        let told = text(&harvested.stderr);
        assert!(told.contains("they ran apart for "), "{program:?}: {told}");
        assert!(told.contains("run the program without 'gleaner harvest'"), "{program:?}: {told}");
        let record = place.record();
        let apart = value(&record.apart.unwrap());
        assert!(apart > value(&record.wall) / 2.0, "{program:?}: {apart}");
    }
}

/// A thread that can have a CPU of its own does not wait aboard: the main thread only sleeps
/// while its one worker runs.
#[test]
fn idle_processors_come_first() {
    if processors() < 2 {
        return;
    }
    let place = Place::new();
    place.compile("cc", "program.c", "p", &[]);
    let output = Command::new(env!("CARGO_BIN_EXE_gleaner"))
        .args([
            "harvest",
            "--siblings",
            "--assume-costs",
            "--record",
            "run.json",
            "--",
            "./p",
            "chase",
            "1",
            "8",
            "20",
        ])
        .current_dir(place.directory.path())
        .env("XDG_CACHE_HOME", place.at("cache"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let siblings = place.record().siblings.unwrap();
    assert_eq!(value(&siblings.boardings), 0.0, "{siblings:?}");
}

#[test]
fn the_program_ends_as_its_threads_say_whichever_is_aboard() {
    let place = Place::new();
    place.compile("cc", "program.c", "p", &[]);
    // exit, _exit, exec and a signal in a thread, a fault, and a main thread that ends before the
    // others.
    for way in ["1", "2", "3", "4", "5"] {
        place.same(&["./p", "end", "6", "4", way]);
    }
    place.same(&["./p", "end", "1", "4", "6"]);
}

#[test]
fn thread_local_storage_of_every_model() {
    let place = Place::new();
    let models = ["local-exec", "initial-exec", "local-dynamic", "global-dynamic"];
    for model in models {
        let option = format!("-ftls-model={model}");
        place.compile("cc", "program.c", "p", &[&option, "-fPIC"]);
        place.same(&["./p", "thread-local", "6", "4", "20"]);
    }
    place.compile("cc", "program.c", "p", &["-fPIC", "-ftls-model=global-dynamic", "-mtls-dialect=gnu2"]);
    place.same(&["./p", "thread-local", "6", "4", "20"]);
}

#[test]
fn exceptions_are_thrown_and_caught_by_each() {
    let place = Place::new();
    place.compile("c++", "exceptions.cc", "e", &[]);
    place.same(&["./e"]);
}

#[test]
fn what_cannot_be_is_told_in_one_line() {
    let place = Place::new();
    place.compile("cc", "program.c", "p", &[]);
    place.compile("cc", "program.c", "static", &["-static"]);
    let gleaner = Path::new(env!("CARGO_BIN_EXE_gleaner"));
    let both = "--siblings: cannot be combined with scavengers; leave out --siblings, or the scavengers";
    let cases: [(&[&str], i32, &str); 2] = [
        (&["harvest", "--siblings", "--scavenger", "./p", "--", "./p"], 2, both),
        (
            &["harvest", "--siblings", "--", "./static"],
            3,
            "./static: statically linked; a primary must be dynamically linked, since its loader loads the runtime",
        ),
    ];
    for (arguments, code, line) in cases {
        let output = place.on_one_cpu(gleaner, arguments).output().unwrap();
        assert_eq!(text(&output.stderr), format!("gleaner: {line}\n"));
        assert_eq!(output.status.code(), Some(code));
        assert!(output.stdout.is_empty());
    }
    // No threads are no trouble.
    place.same(&["./p", "nothing of the kind"]);
}

/// A thread that is parked or aboard another one at that moment returns home by itself, and nothing
/// else changes.
#[test]
fn threads_whose_supervisor_is_killed_end_as_they_do_alone() {
    let place = Place::new();
    place.compile("cc", "program.c", "p", &[]);
    // Some two seconds, of which the last round's supervisor lives 0.6.
    let program = ["./p", "locks", "6", "4", "600"];
    let alone = place.alone(&program);
    for round in 1..=3 {
        let mut harvest = place.harvest(&program);
        let mut child = harvest.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let supervisor = testkit::supervisor_of(child.id());
        std::thread::sleep(Duration::from_millis(200 * round));
        let _ = testkit::kill("KILL", &supervisor); // it may have ended
        let ended = || child.try_wait().unwrap().is_some();
        wait_until("the threads end, none sleeps for ever", Duration::from_secs(120), ended);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout)), (alone.status.code(), text(&alone.stdout)));
        let line = "gleaner: harvesting to the end: the supervisor process (gleaner-superv) was killed\n";
        assert!(
            [line, ""].contains(&without_summary(&text(&output.stderr)).as_str()),
            "{}",
            text(&output.stderr)
        );
    }
}
