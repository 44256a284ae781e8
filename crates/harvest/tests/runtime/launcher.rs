//! A launcher as a program of its own: `[--ring N] [--finish] [--cpus LIST] [--disturb
//! SEED] [--watch FILE] [--report FILE] [--output FILE] PRIMARY ARG… [-- SCAVENGER ARG…]…`, with
//! files that are twins already.
//!
//! `--disturb` sends scavengers signals at random: some end by them, some stop and go on. `--watch`
//! writes, again and again, how long it ran, how many guests were stolen, and how many mappings the
//! primary has. Once a guest was aboard and one was stolen, there is a file of that name with
//! `.both` behind it. Scavengers' output is added to the file of `--output`, else to standard
//! error. The report has a line for each scavenger: how it ended, boardings, trips home by reason.

use gleaner_harvest::launch::{After, Contract, Harvest, Program, Scavenger, Snapshot, Stream, launch};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use units::Rng;

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

/// It may have ended, and its number be another's.
fn is_ours(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.is_some_and(|parent| parent.trim() == std::process::id().to_string())
}

/// Kills the supervisor once a guest was aboard. Returns whether it did.
fn kill_supervisor(snapshot: &Snapshot) -> bool {
    let aboard = snapshot.scavengers.iter().any(|scavenger| scavenger.boardings > 0);
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let supervisor = pids.filter(|_| aboard).find(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "gleaner-superv" && is_ours(*pid)
    });
    supervisor.and_then(Pid::from_raw).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

/// Now and then a signal to one of those that run.
fn disturb(random: &mut Rng, snapshot: &Snapshot) {
    const SIGNALS: [Signal; 6] =
        [Signal::STOP, Signal::CONT, Signal::CONT, Signal::CONT, Signal::TERM, Signal::KILL];
    let Some(chosen) = snapshot.scavengers.get(random.below(8) as usize) else { return };
    if let (true, Some(pid)) = (is_ours(chosen.pid), Pid::from_raw(chosen.pid)) {
        let _ = kill_process(pid, SIGNALS[random.below(SIGNALS.len() as u64) as usize]);
    }
}

/// This slowdown, and times that programs in caches stay below now and then.
fn contract(percent: &str) -> Contract {
    let percent: f64 = percent.parse().expect("a number");
    Contract {
        max_slowdown: percent / 100.0,
        max_absence: Duration::from_micros(10),
        hit_below: Duration::from_nanos(60),
    }
}

pub(crate) fn run(mut arguments: Vec<String>) -> ExitCode {
    let mut harvest = Harvest::new(Program::new("", [""; 0]));
    // What is tested are guests aboard.
    harvest.homes.stay_aboard = true;
    // All the tests can be run as watched ones.
    harvest.contract = std::env::var("GLEANER_PROMISE").ok().map(|percent| contract(&percent));
    let (mut report, mut output) = (None, PathBuf::from("/dev/stderr"));
    let (mut disturber, mut watched, mut supervisor) = (None, None, false);
    while arguments.first().is_some_and(|argument| argument.starts_with("--")) {
        let option = arguments.remove(0);
        match option.as_str() {
            "--ring" => harvest.ring = arguments.remove(0).parse().expect("a number"),
            "--promise" => harvest.contract = Some(contract(&arguments.remove(0))),
            "--finish" => harvest.after = After::Finish,
            "--watch" => watched = Some((arguments.remove(0), Instant::now())),
            "--disturb" => {
                disturber = Some(Rng::new(arguments.remove(0).parse().expect("a number")));
                harvest.watch_every = Duration::from_millis(5);
            }
            "--kill-supervisor" => {
                supervisor = true;
                harvest.watch_every = Duration::from_millis(1);
            }
            "--recall" => {
                harvest.recall = Duration::from_millis(arguments.remove(0).parse().expect("a number"));
            }
            "--report" => report = Some(arguments.remove(0)),
            "--output" => output = arguments.remove(0).into(),
            "--cpus" => {
                let list = arguments.remove(0);
                harvest.homes.cpus =
                    Some(list.split(',').map(|cpu| cpu.parse().expect("a number")).collect());
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
    let running = match launch(&harvest) {
        Ok(running) => running,
        Err(why) => {
            eprintln!("gleaner: {why}");
            return ExitCode::from(3);
        }
    };
    let primary = running.primary();
    let mut look = |snapshot: &Snapshot| {
        if let Some(random) = &mut disturber {
            disturb(random, snapshot);
        }
        supervisor = supervisor && !kill_supervisor(snapshot);
        if let Some((name, since)) = &watched {
            let maps = std::fs::read_to_string(format!("/proc/{primary}/maps")).unwrap_or_default();
            let line =
                format!("{} {} {}\n", since.elapsed().as_millis(), snapshot.stolen, maps.lines().count());
            let file = std::fs::OpenOptions::new().create(true).append(true).open(name);
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a line of what was seen");
            if snapshot.stolen > 0 && snapshot.scavengers.iter().any(|scavenger| scavenger.boardings > 0) {
                std::fs::write(format!("{name}.both"), "").expect("a sign that both were seen");
            }
        }
    };
    let outcome = running.wait(&mut look).expect("an end");
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
