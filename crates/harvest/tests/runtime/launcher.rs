//! A launcher as a program of its own: `[--ring N] [--finish] [--cpus LIST] [--show] [--report FILE] [--output FILE] PRIMARY ARG…
//! [-- SCAVENGER ARG…]…`, with files that are twins already.
//!
//! Scavengers' output is added to the file of `--output`, else to standard error. The report has a line for each
//! scavenger: how it ended, boardings, trips home by reason.

use gleaner_harvest::launch::{After, Harvest, Program, Scavenger, Stream, launch};
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

fn program(argv: &[String]) -> Program {
    Program::new(argv[0].clone(), argv.to_vec())
}

/// `exit N` or `signal N`.
fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (_, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

pub(crate) fn run(mut arguments: Vec<String>) -> ExitCode {
    let mut harvest = Harvest::new(Program::new("", [""; 0]));
    let (mut show, mut report, mut output) = (false, None, PathBuf::from("/dev/stderr"));
    while arguments.first().is_some_and(|argument| argument.starts_with("--")) {
        let option = arguments.remove(0);
        match option.as_str() {
            "--ring" => harvest.ring = arguments.remove(0).parse().expect("a number"),
            "--finish" => harvest.after = After::Finish,
            "--show" => show = true,
            "--report" => report = Some(arguments.remove(0)),
            "--output" => output = arguments.remove(0).into(),
            "--cpus" => {
                let list = arguments.remove(0);
                harvest.home_cpus = Some(list.split(',').map(|cpu| cpu.parse().expect("a number")).collect());
            }
            other => panic!("unknown: {other}"),
        }
    }
    let mut programs = arguments.split(|argument| argument == "--");
    harvest.primary = program(programs.next().expect("a primary"));
    for argv in programs {
        let mut scavenger = Scavenger::new(program(argv));
        scavenger.stdout = Stream::Append(output.clone());
        scavenger.stderr = Stream::Append(output.clone());
        harvest.scavengers.push(scavenger);
    }
    let running = launch(&harvest).expect("a start");
    let look = |snapshot: &_| {
        if show {
            eprintln!("{snapshot:?}");
        }
    };
    let outcome = running.wait(look).expect("an end");
    look(&outcome.last);
    let mut text = String::new();
    if let Some(why) = &outcome.refused {
        let _ = writeln!(text, "refused: {why}");
    }
    for scavenger in &outcome.scavengers {
        let end = match &scavenger.exit {
            Ok(_) if scavenger.killed_at_end => "killed at end".to_owned(),
            Ok(_) if scavenger.lost => "lost".to_owned(),
            Ok(status) => words(*status),
            Err(why) => why.clone(),
        };
        let figures = &scavenger.figures;
        let _ = writeln!(text, "{end}; {} boardings, trips {:?}", figures.boardings, figures.trips);
    }
    match report {
        Some(path) => std::fs::write(path, text).expect("a report"),
        None => eprint!("{text}"),
    }
    let status = outcome.primary;
    ExitCode::from(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8)
}
