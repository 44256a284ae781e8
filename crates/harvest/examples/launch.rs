//! Launches a harvest of files that are twins already: `launch [--ring N] [--finish] [--cpus LIST] [--show] PRIMARY ARG… [-- SCAVENGER ARG…]…`.
//!
//! A scavenger's output goes to this program's standard error. How everybody ended is told there, too.

use gleaner_harvest::launch::{After, Harvest, Program, Scavenger, Stream, launch};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use std::time::Duration;

fn program(argv: &[String]) -> Program {
    Program::new(argv[0].clone(), argv.to_vec())
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut harvest = Harvest::new(Program::new("", [""; 0]));
    let mut show = false;
    while arguments.first().is_some_and(|argument| argument.starts_with("--")) {
        match arguments.remove(0).as_str() {
            "--ring" => harvest.ring = arguments.remove(0).parse().expect("a number"),
            "--finish" => harvest.after = After::Finish,
            "--show" => show = true,
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
        scavenger.stdout = Stream::Append("/dev/stderr".into());
        scavenger.stderr = Stream::Append("/dev/stderr".into());
        harvest.scavengers.push(scavenger);
    }
    harvest.watch_every = Duration::from_millis(200);
    let running = launch(&harvest).expect("a start");
    let outcome = running
        .wait(|snapshot| {
            if show {
                eprintln!("{snapshot:?}");
            }
        })
        .expect("an end");
    if show {
        eprintln!("{:?}", outcome.last);
    }
    if let Some(why) = &outcome.refused {
        eprintln!("no harvest: {why}");
    }
    for (scavenger, asked) in outcome.scavengers.iter().zip(&harvest.scavengers) {
        eprintln!(
            "{}: {:?}, killed at end {}, lost {}, {:?}",
            asked.program.file.display(),
            scavenger.exit,
            scavenger.killed_at_end,
            scavenger.lost,
            scavenger.figures
        );
    }
    let status = outcome.primary;
    ExitCode::from(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8)
}
