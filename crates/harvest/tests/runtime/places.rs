//! Where a harvest is run: what a container forbids, limits, and a launcher that is killed. Each is
//! told in one line or makes no difference. And a long time: `GLEANER_SOAK` is how many seconds
//! (default 3).
//!
//! To add a place: a function and its line in [`TESTS`].

use crate::world::{LAUNCH, PATIENCE, World, same};
use libtest_mimic::Failed;
use std::process::{Command, Stdio};
use std::time::Duration;

type Test = fn(&World) -> Result<(), Failed>;

pub(crate) const TESTS: [(&str, Test); 9] = [
    ("forbidden_to_all", forbidden_to_all),
    ("forbidden_to_the_supervisor", forbidden_to_the_supervisor),
    ("forbidden_to_scavengers", forbidden_to_scavengers),
    ("forbidden_without_harm", forbidden_without_harm),
    ("little_address_space", little_address_space),
    ("few_descriptors", few_descriptors),
    ("launcher_killed", launcher_killed),
    ("supervisor_killed", supervisor_killed),
    ("soak", soak),
];

/// Numbers of system calls, `:` and a first argument.
const CLONE: &str = "56";
const PRCTL_SECCOMP: &str = "157:22";
const SET_SCHEDULER: &str = "144";
const KCMP: &str = "312";
const MEMFD_CREATE: &str = "319";
const PIDFD_OPEN: &str = "434";
/// By which it is waited, slept and woken. (Without `poll` the standard library does not come as
/// far as `main`.)
const WAITING: [(&str, &str); 4] =
    [("35", "nanosleep"), ("61", "wait4"), ("202", "futex"), ("230", "clock_nanosleep")];

fn deny(world: &World, call: &str) -> World {
    let before = vec![World::program("deny_ALONE"), call.to_owned()];
    World { before, ..world.clone() }
}

fn refused(world: &World, line: &str) -> Result<(), Failed> {
    let harvest = world.harvest(&[], &["work"], &[vec!["nothing"]]);
    same("the primary", &(harvest.primary.code, harvest.primary.output.as_str()), &(3, ""))?;
    same("the line", &world.errors(), &format!("gleaner: {line}\n"))
}

/// Nobody is started.
fn forbidden_to_all(world: &World) -> Result<(), Failed> {
    refused(
        &deny(world, MEMFD_CREATE),
        "cannot create a memory file for the runtime (memfd_create): Operation not permitted (os error 1)",
    )?;
    refused(
        &deny(world, PIDFD_OPEN),
        "cannot open a process descriptor (pidfd_open): Operation not permitted (os error 1); it needs Linux 5.3 or later, and a container that allows it",
    )?;
    WAITING.into_iter().try_for_each(|(call, name)| {
        let why = "Operation not permitted (os error 1); a harvest needs this system call: the container must allow it";
        refused(&deny(world, call), &format!("{name}: {why}"))
    })
}

/// The primary is started, and cannot have company.
fn forbidden_to_the_supervisor(world: &World) -> Result<(), Failed> {
    let line = "gleaner: the primary cannot be harvested: no process can be made for the supervisor (clone with CLONE_VM: do a container's rules forbid it?)";
    let world = deny(world, CLONE);
    let harvest = world.harvest(&[], &["work"], &[vec!["nothing"]]);
    same("the primary", &(harvest.primary.code, harvest.primary.output.as_str()), &(3, ""))?;
    same("its line", &world.errors().lines().next(), &Some(line))
}

fn forbidden_to_scavengers(world: &World) -> Result<(), Failed> {
    let alone = world.alone("host", &["work"]);
    let harvest = deny(world, PRCTL_SECCOMP).harvest(&[], &["work"], &[vec!["nothing"]]);
    same("the primary", &harvest.primary, &alone)?;
    let why = "system call filters (seccomp) are not available here: Operation not permitted (os error 1)";
    same("the scavenger", &harvest.ends, &vec![why.to_owned()])
}

fn forbidden_without_harm(world: &World) -> Result<(), Failed> {
    let alone = world.alone("host", &["threads", "exec"]);
    for call in [SET_SCHEDULER, KCMP] {
        let world = deny(world, call);
        let harvest = world.harvest(&["--finish"], &["threads", "exec"], &[vec!["threads"], vec!["exec"]]);
        same("the primary", &harvest.primary, &alone)?;
        same("the scavengers", &harvest.ends, &vec!["exit 3".to_owned(), "exit 0".to_owned()])?;
    }
    Ok(())
}

fn little_address_space(world: &World) -> Result<(), Failed> {
    let limited = ["/bin/sh", "-c", "ulimit -v 200000; exec \"$@\"", "sh"];
    let world = World { before: limited.map(str::to_owned).to_vec(), ..world.clone() };
    let harvest = world.harvest(&[], &["work"], &[vec!["nothing"]]);
    same("the primary", &(harvest.primary.code, harvest.primary.output.as_str()), &(3, ""))?;
    let line = "gleaner: the primary cannot be harvested: no memory for the areas of its threads (is there a limit on address space?)";
    same("its line", &world.errors().lines().next(), &Some(line))
}

/// Guests are not left with threads that sleep where not all of these can be watched by a
/// descriptor that is kept, be there space for more above the primary's limit or not.
fn few_descriptors(world: &World) -> Result<(), Failed> {
    for limit in ["ulimit -n 40", "ulimit -Sn 40"] {
        let limited = ["/bin/sh", "-c", &format!("rm -f done; {limit}; exec \"$@\""), "sh"];
        let world = World { before: limited.map(str::to_owned).to_vec(), ..world.clone() };
        let mut crowd = vec![vec!["forever"]; 6];
        crowd.push(vec!["nothing", "3000000"]);
        // Which works until the last of these is done.
        let harvest = world.harvest(&[], &["sleepers", "company"], &crowd);
        same("the primary's end", &harvest.primary.code, &4)?;
    }
    Ok(())
}

/// The primary goes on as it would if the process that started it were killed; all others end.
fn launcher_killed(world: &World) -> Result<(), Failed> {
    let alone = world.alone("host", &["work"]);
    for round in 0..4 {
        let output = world.directory.join("goes-on");
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(LAUNCH).args(["--output", "out"]).arg(World::program("host_PRIMARY"));
        command.arg("work");
        for mode in ["forever", "nothing", "exit-threads", "spin"] {
            command.arg("--").arg(World::program("guest_SCAVENGER")).arg(mode);
        }
        let output_file = std::fs::File::create(&output)?;
        command.current_dir(&world.directory).stdin(Stdio::null()).stdout(output_file);
        let mut launcher = command.stderr(Stdio::null()).spawn()?;
        std::thread::sleep(Duration::from_millis(40 * round));
        launcher.kill()?;
        launcher.wait()?;
        // Before the primary is started it is not there, and says nothing.
        let _ = (0..10).find(|_| world.nobody_left().is_ok());
        let said = std::fs::read_to_string(&output)?;
        if !said.is_empty() {
            same("the primary", &said, &alone.output)?;
        }
        world.nobody_left()?;
    }
    Ok(())
}

/// A thread that cancels threads of a primary waits for their guests, not for a supervisor that was
/// killed.
fn supervisor_killed(world: &World) -> Result<(), Failed> {
    let modes = ["cancels", "cancels", "cancels"];
    let alone = world.alone("host", &modes);
    let crowd = ["forever", "forever", "narrow", "forever"].map(|mode| vec![mode]);
    let harvest = world.harvest(&["--ring", "4", "--kill-supervisor"], &modes, &crowd);
    same("the primary", &harvest.primary, &alone)
}

/// Threads of primary and scavengers come and go, and guests are stolen from those that sleep. What
/// the address space holds does not grow with time.
fn soak(world: &World) -> Result<(), Failed> {
    let seconds = std::env::var("GLEANER_SOAK").unwrap_or_else(|_| "3".to_owned());
    let patience = PATIENCE + Duration::from_secs(seconds.parse()?);
    // On a busy machine it takes long until a guest comes aboard.
    let awaited = format!("SOAK_FOR={}", world.directory.join("watched.both").display());
    let world = World {
        before: vec!["/usr/bin/env".to_owned(), format!("SOAK={seconds}"), awaited],
        patience,
        ..world.clone()
    };
    let alone = world.alone("host", &["soak"]);
    let watched = world.directory.join("watched").to_string_lossy().into_owned();
    let crowd = ["churn", "forever", "churn", "forever", "forever", "churn"].map(|mode| vec![mode]);
    let harvest = world.harvest(&["--ring", "3", "--watch", &watched], &["soak"], &crowd);
    same("the primary", &harvest.primary, &alone)?;
    same("the scavengers", &harvest.ends, &vec!["killed at end".to_owned(); crowd.len()])?;
    let seen: Vec<Vec<u64>> = std::fs::read_to_string(&watched)?
        .lines()
        .map(|line| line.split(' ').map(|number| number.parse().unwrap_or_default()).collect())
        .filter(|numbers: &Vec<u64>| numbers.len() == 3 && numbers[2] > 0)
        .collect();
    let stolen = seen.last().map_or(0, |last| last[1]);
    let most = |part: &[Vec<u64>]| part.iter().map(|numbers| numbers[2]).max().unwrap_or_default();
    let (before, after) = seen.split_at(seen.len() / 2);
    println!(
        "soaked {seconds} s: {} boardings, {stolen} stolen, at most {} mappings in the first half and {} in the second",
        harvest.boardings,
        most(before),
        most(after)
    );
    if stolen == 0 || harvest.boardings == 0 {
        return Err(format!("{} boardings, {stolen} stolen", harvest.boardings).into());
    }
    // Caches of thread stacks fill at first, and the number of threads at a moment differs.
    if most(after) > most(before) * 3 / 2 + 50 {
        return Err(format!("mappings grow from {} to {}", most(before), most(after)).into());
    }
    Ok(())
}
