//! The runtime at work: real processes, with yields that are written by hand
//! (crates/runtime/tests/programs/yields.h), so that nothing of the rewriter is needed.
//!
//! Whatever scavengers do, the primary prints what it prints alone and ends as it ends alone; so
//! does each scavenger. The test program is its own launcher, since a primary has its launcher's
//! standard output.
//!
//! To add a case: a mode in crates/runtime/tests/programs/guest.c or
//! crates/runtime/tests/programs/host.c, its name in the list here.

mod launcher;
mod places;
mod world;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::OnceLock;
use world::{Ended, World};

type Check = dyn Fn(&World) -> Result<(), Failed> + Send;

/// What scavengers do, each in front of a primary that chases on.
const GUESTS: &[&str] = &[
    "segv",
    "bus",
    "fpe",
    "ill",
    "abort",
    "exit",
    "kill",
    "recover",
    "raise",
    "alarm",
    "fork",
    "exec",
    "pipe",
    "alloc",
    "spin",
    "threads",
    "vectors",
    "nothing",
    "many",
    "main-ends",
    "locks",
    "robust",
    "endless",
    "vfork",
    "stop",
    "exec-threads",
    "exit-threads",
    "cancels",
    "timers",
    "called",
    "once",
    "throw",
    "uncaught",
    "kicks",
];

/// What the primary does, each with the same crowd of scavengers.
const HOSTS: &[&[&str]] = &[
    &["signals"],
    &["faults"],
    &["threads"],
    &["running"],
    &["forks"],
    &["sleeps"],
    &["work"],
    &["exit"],
    &["crash"],
    &["killed"],
    &["abort"],
    &["term"],
    &["exec"],
    &["vforks"],
    &["jumps"],
    &["daemons"],
    &["main-ends"],
    &["daemon"],
    &["exec-threads"],
    &["cancels"],
    &["identities"],
    &["timers"],
    &["frames"],
    &["clones"],
    &["kicks"],
    &["turns"],
];

/// More that the primary does, not for random orders.
const HOSTS_ONCE: &[&[&str]] = &[
    &["sandboxed"],
    &["signals", "forks", "threads", "faults", "signals", "exec"],
    // What one mode leaves behind, another meets: threads, handlers, a thread on its quiet context.
    &["running", "signals"],
    &["running", "turns"],
    &["faults", "signals", "crash"],
];

const CROWD: &[&[&str]] = &[
    &["forever"],
    &["segv", "100000"],
    &["raise", "100000"],
    &["vectors", "1000"],
    &["forever"],
    &["alloc", "100"],
    &["narrow"],
    &["holds"],
];

/// A scavenger ends as it does alone, and the primary does not notice.
fn guest(world: &World, mode: &str) -> Result<(), Failed> {
    // The same for all of them.
    static PRIMARY: OnceLock<Ended> = OnceLock::new();
    let alone = world.alone("guest", &[mode]);
    let primary = PRIMARY.get_or_init(|| world.alone("host", &["work", "work"]));
    let harvest = world.harvest(&["--finish"], &["work", "work"], &[vec![mode]]);
    world::same("the primary", &harvest.primary, primary)?;
    world::same("the scavenger's output", &harvest.output, &alone.output)?;
    world::same("the scavenger's end", &harvest.ends, &vec![alone.end_in_words()])
}

/// A primary that works as long as its scavenger does has it aboard: also one that may be cancelled
/// anywhere, or sleeps often.
fn company(world: &World, modes: &[&str]) -> Result<(), Failed> {
    // On a machine with an idle CPU it may have done little work before the primary's first yield.
    for work in ["3000000", "30000000", "300000000"] {
        let harvest = world.harvest(&["--finish"], modes, &[vec!["nothing", work]]);
        world::same("the scavenger's end", &harvest.ends, &vec!["exit 3".to_owned()])?;
        if harvest.boardings > 0 {
            return Ok(());
        }
    }
    Err("it was never aboard".into())
}

/// A primary that busy-waits for its scavenger, and comes to no yield, does not hold it up: watched
/// or not, it is taken home.
fn waits(world: &World) -> Result<(), Failed> {
    for options in [&["--finish"][..], &["--finish", "--promise", "10"]] {
        let harvest = world.harvest(options, &["waits"], &[vec!["nothing", "3000000"]]);
        world::same("the scavenger's end", &harvest.ends, &vec!["exit 3".to_owned()])?;
    }
    Ok(())
}

/// A guest is fetched for a signal that it has a handler for, though no thread polls whether one
/// waits.
fn called(world: &World) -> Result<(), Failed> {
    let crowd = [vec!["called"], vec!["forever"]];
    // It works until the first of them is done.
    let harvest = world.harvest(&["--recall", "0"], &["company"], &crowd);
    world::same("the primary's end", &harvest.primary.code, &4)
}

/// Nothing of what they had mapped is left when they have ended, whatever they did.
fn cleanup(world: &World) -> Result<(), Failed> {
    const AT_ONCE: usize = 8;
    for some in GUESTS.chunks(AT_ONCE) {
        let crowd: Vec<Vec<&str>> = some.iter().map(|mode| vec![*mode, "2000"]).collect();
        let harvest = world.harvest(&["--finish"], &["left"], &crowd);
        let said = harvest.primary.output.lines().last().unwrap_or_default().to_owned();
        let behind = format!("behind {some:?}, {}", harvest.story);
        world::same(&behind, &said, &"some were there, none is left".to_owned())?;
    }
    Ok(())
}

/// A primary is what it is alone, without and with scavengers.
fn host(world: &World, modes: &[&str]) -> Result<(), Failed> {
    let alone = world.alone("host", modes);
    let nobody = world.harvest(&[], modes, &[]);
    world::same("without scavengers", &nobody.primary, &alone)?;
    let crowd: Vec<Vec<&str>> = CROWD.iter().map(|argv| argv.to_vec()).collect();
    let harvest = world.harvest(&["--ring", "4"], modes, &crowd);
    world::same("with scavengers", &harvest.primary, &alone)?;
    let watched = world.harvest(&["--ring", "4", "--promise", "10"], modes, &crowd);
    world::same("with scavengers, watched", &watched.primary, &alone)
}

/// What becomes of a primary's threads does not hurt their guests.
fn unhurt(world: &World) -> Result<(), Failed> {
    let crowd = ["forever", "narrow", "forever", "forever"].map(|mode| vec![mode]);
    for mode in ["cancels", "identities", "threads"] {
        let harvest = world.harvest(&["--ring", "4"], &[mode], &crowd);
        world::same("the primary's end", &harvest.primary.code, &4)?;
        // On a busy machine nobody may have come aboard: then nobody was hurt, either.
        world::same(
            &format!("the scavengers, {mode}"),
            &harvest.ends,
            &vec!["killed at end".to_owned(); crowd.len()],
        )?;
    }
    Ok(())
}

/// Programs that were never rewritten run as scavengers, too; what cannot is refused, and nobody
/// else is hurt.
fn any_program(world: &World) -> Result<(), Failed> {
    let alone = world.alone("host", &["work"]);
    let harvest = world.harvest_programs(
        &["--finish"],
        &["work"],
        &[
            vec!["/bin/sh", "-c", "echo shell; exit 5"],
            vec!["/bin/sh", "-c", "kill -SEGV $$"],
            vec!["/no/such"],
            vec!["/etc/passwd"],
        ],
    );
    world::same("the primary", &harvest.primary, &alone)?;
    world::same("the output", &harvest.output, &"shell\n".to_owned())?;
    let ends = [
        "exit 5",
        "signal 11",
        "its file could not be read: No such file or directory (os error 2)",
        "its file is not an x86-64 ELF executable",
    ];
    world::same("the ends", &harvest.ends, &ends.map(str::to_owned).to_vec())
}

/// The environment of primary and scavengers is that of the launcher, in its order.
fn environment(world: &World) -> Result<(), Failed> {
    let alone = world.run("/usr/bin/env", &[]);
    let harvest = world.harvest_of("/usr/bin/env", &["--finish"], &[], &[vec!["/usr/bin/env"]]);
    world::same("the primary", &harvest.primary, &alone)?;
    world::same("the scavenger", &harvest.output, &alone.output)
}

/// One of random crowds before one of random primaries, with all that is known of it where it
/// fails.
fn round(world: &World, seed: u64) -> Result<(), Failed> {
    let mut random = units::Rng::new(seed);
    let modes: Vec<&str> =
        (0..=random.below(3)).map(|_| HOSTS[random.below(HOSTS.len() as u64) as usize][0]).collect();
    let crowd: Vec<Vec<&str>> = (0..=random.below(8))
        .map(|_| match random.below(5) {
            0 => vec!["forever"],
            1 => vec![GUESTS[random.below(GUESTS.len() as u64) as usize], "1000"],
            _ => vec![GUESTS[random.below(GUESTS.len() as u64) as usize], "50000"],
        })
        .collect();
    let ring = (1 + random.below(8)).to_string();
    let disturbance = random.below(u64::MAX >> 11).to_string();
    let mut options = vec!["--ring", &ring];
    if random.below(2) == 0 {
        options.extend(["--promise", ["1", "10", "100"][random.below(3) as usize]]);
    }
    if random.below(2) == 0 {
        options.extend(["--disturb", &disturbance]);
    }
    let alone = world.alone("host", &modes);
    let errors = world.errors();
    let harvest = world.harvest(&options, &modes, &crowd);
    let right = world::same("the primary", &harvest.primary, &alone).and_then(|()| world.nobody_left());
    right.map_err(|why| {
        // Whether it is the program's own doing that it comes out in another way, and whether it
        // does so again.
        let again = world.alone("host", &modes) == alone;
        let harvested_again = world.harvest(&options, &modes, &crowd).primary == alone;
        let told = |same: bool| if same { "the same" } else { "something else" };
        format!(
            "GLEANER_SEED={seed} GLEANER_TORTURE=1: {options:?}, {modes:?} before {crowd:?}\n{}\nalone again: {}; harvested again: {}\n{}\nalone, standard error:\n{errors}",
            why.message().unwrap_or_default(),
            told(again),
            if harvested_again { "as it should be" } else { "not as it should be" },
            harvest.story,
        )
        .into()
    })
}

/// Random crowds before random primaries. `GLEANER_TORTURE` is how many (default 4), `GLEANER_SEED`
/// the first one's seed; a failure tells its own.
fn torture(world: &World) -> Result<(), Failed> {
    let rounds = std::env::var("GLEANER_TORTURE").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let seed = std::env::var("GLEANER_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_nanos() as u64
    });
    (0..rounds).try_for_each(|number| round(world, seed + number))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(world::LAUNCH) {
        return launcher::run(arguments.collect());
    }
    let mut trials = Vec::new();
    let mut add = |name: String, test: Box<Check>| {
        trials.push(Trial::test(name.clone(), move || {
            let world = World::new(&name)?;
            test(&world)?;
            world.nobody_left()?;
            world.clear();
            Ok(())
        }));
    };
    for mode in GUESTS {
        add(format!("guest::{mode}"), Box::new(move |world| guest(world, mode)));
    }
    for modes in HOSTS.iter().chain(HOSTS_ONCE) {
        add(format!("host::{}", modes.join("_")), Box::new(move |world| host(world, modes)));
    }
    for modes in [&["company"][..], &["cancellable", "company"], &["naps"]] {
        add(format!("company::{}", modes.join("_")), Box::new(move |world| company(world, modes)));
    }
    add("waits".to_owned(), Box::new(waits));
    add("called".to_owned(), Box::new(called));
    add("unhurt".to_owned(), Box::new(unhurt));
    add("cleanup".to_owned(), Box::new(cleanup));
    add("any_program".to_owned(), Box::new(any_program));
    add("environment".to_owned(), Box::new(environment));
    for (name, test) in places::TESTS {
        add(format!("place::{name}"), Box::new(test));
    }
    add("torture".to_owned(), Box::new(torture));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// How a program ended, as a shell has it.
impl Ended {
    fn end_in_words(&self) -> String {
        match self.code {
            code if code >= 128 => format!("signal {}", code - 128),
            code => format!("exit {code}"),
        }
    }
}
