//! The run record: what became of a plan and its programs.

mod gained;
mod leaves;
pub mod next_step;
mod paces;
pub(crate) mod site_outcomes;
pub mod turns;

use crate::decide::Against;
use crate::find::program::Program;
use crate::launch::{Life, Outcome, Paces, Processor, ScavengerNow, ScavengerOutcome};
use crate::session::{Participants, Prepared, WantedScavenger};
use records::plan::{Counts, Role};
use records::run::{
    Absences, Bucket, Ended, HomeTrip, Process, Proof, Refused, Run, Scavenger, SiteRun, Slowdown,
    SwitchedOff, Times, TwinUsed, Yields,
};
use runtime_abi::control::trip;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// What a run record says of a primary that could not be run; its process has told that itself, in
/// one line.
pub const NOT_RUN: &str = "harvesting: the primary was not run";

/// The run record of a harvest that ended.
pub fn record(prepared: &Prepared, outcome: &Outcome) -> Run {
    let participants = prepared.participants();
    let scavengers: Vec<Scavenger> = participants
        .scavengers
        .iter()
        .zip(&outcome.scavengers)
        .map(|(wanted, ended)| scavenger(prepared, wanted, ended))
        .collect();
    let alone = outcome.refused.iter().map(|why| Refused {
        what: if outcome.not_run { NOT_RUN } else { "harvesting: the primary ran alone" }.to_owned(),
        why: why.clone(),
        would_help: None,
    });
    let busy = outcome.not_idle.iter().map(|why| Refused {
        what: "SCHED_IDLE for scavengers off the primary".to_owned(),
        why: why.clone(),
        would_help: Some("--home-cpus keeps them off the primary's CPU".to_owned()),
    });
    let off = outcome.not_switched.iter().map(|why| Refused {
        what: "switching the primary's yields on while it runs".to_owned(),
        why: format!("its code cannot be changed: {why}"),
        would_help: Some(
            "the process must be able to write to its own memory (/proc/self/mem), or to make code writable"
                .to_owned(),
        ),
    });
    let lost = outcome.supervisor_lost.then(|| Refused {
        what: "harvesting to the end".to_owned(),
        why: format!(
            "the supervisor process ({}) was killed",
            runtime_abi::control::SUPERVISOR_NAME.to_string_lossy()
        ),
        would_help: None,
    });
    let no_sites = no_sites(prepared);
    let (sites, switched_off) = sites(prepared, outcome);
    let slowdown = slowdown(&outcome.last.paces);
    let lives =
        outcome.scavengers.iter().map(|it| it.life.map_or(1.0, |life| life.share_of(outcome.elapsed)));
    let paces = scavengers.iter().map(|it| &it.progress).zip(lives);
    Run {
        work: gained::together(&slowdown.share, paces),
        // Older records have these.
        together: false,
        apart: None,
        beside: prepared.beside.as_ref().map(ToString::to_string),
        primary: Process {
            command: texts(&participants.primary.command),
            file: records::text_of(&participants.primary.file),
            pid: Some(outcome.primary_pid),
            ended: ended(outcome.primary),
            twin: twin(prepared, &participants.primary.file, Role::Primary),
        },
        scavengers,
        siblings: None,
        bounds: prepared.plan.bounds.clone(),
        without: prepared.plan.without.clone(),
        wall: time(outcome.elapsed),
        // Older records have more.
        cycles: None,
        yields: Yields {
            primary: None,
            guests: count(outcome.scavengers.iter().map(|it| it.figures.turns).sum()),
            cost: None,
        },
        absences: absences(&outcome.last.paces),
        slowdown,
        sites,
        switched_off,
        refusals: alone
            .chain(busy)
            .chain(off)
            .chain(lost)
            .chain(no_sites)
            .chain(left_alone(prepared, outcome))
            .chain(prepared.left_for_later.clone())
            .chain(as_they_are(prepared))
            .chain(executed(participants, outcome))
            .chain(threadless(participants, outcome))
            .collect(),
    }
}

/// A primary without yields, and why.
fn no_sites(prepared: &Prepared) -> Option<Refused> {
    let participants = prepared.participants();
    let is_known = matches!(prepared.beside, Some(Against::Known(_)));
    if participants.scavengers.is_empty() || is_known || prepared.primary_has_yields() {
        return None;
    }
    let file = &participants.primary.file;
    let looked_at = !participants.primary.linked.rewritten.is_empty() || !prepared.left_alone.is_empty();
    let (nor, libraries, would_help) = if looked_at {
        (", nor have its libraries", String::new(), None)
    } else {
        let (libraries, help) = not_looked_at(file);
        ("", libraries, help)
    };
    let why = format!("{} has no yield sites{nor}, so scavengers never run in it{libraries}", file.display());
    Some(Refused { what: "guests of the primary".to_owned(), why, would_help })
}

/// Libraries that were to be rewritten, and are not; and such as were, but others were found in
/// their places.
fn left_alone(prepared: &Prepared, outcome: &Outcome) -> Vec<Refused> {
    let refused = |what: String, why: String| Refused { what, why, would_help: None };
    let left = prepared.left_alone.iter();
    let left = left.map(|left| refused(records::text_of(&left.file), left.why.clone()));
    // If its own file is not there, nothing began.
    let began = outcome.site_outcomes.first().is_some_and(Option::is_some);
    let of =
        prepared.primarys().zip(&outcome.site_outcomes).filter(|(_, outcomes)| began && outcomes.is_none());
    let not_found: Vec<&str> = of.map(|((module, _), _)| module.path.as_str()).collect();
    let other = (!not_found.is_empty()).then(|| {
        let why =
            "rewritten, but the program's loader loaded another file of that name, found through DT_RPATH";
        refused(not_found.join(", "), why.to_owned())
    });
    left.chain(other).collect()
}

/// Many programs are a few lines in front of a library: which libraries these are.
fn not_looked_at(file: &Path) -> (String, Option<String>) {
    const NAMED: usize = 3;
    let names = std::fs::read(file)
        .ok()
        .and_then(|data| image::Image::parse(&data).ok().map(|image| image::libraries::needed(&image)))
        .unwrap_or_default();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let help = "--libraries all rewrites them, too".to_owned();
    match &names[..names.len().min(NAMED)] {
        [] => (String::new(), None),
        named => (format!("; its libraries ({}{more}) are not rewritten", named.join(", ")), Some(help)),
    }
}

/// Processes that executed another program, of which no copy was made; or their own file once more,
/// as a program does that wants another memory layout (`personality`).
fn executed(participants: &Participants, outcome: &Outcome) -> Vec<Refused> {
    let what = |subject: &str, role: &str, program: &Program, path: &Path, then: &str| {
        if identity(path).is_some_and(|it| identity(&program.file) == Some(it)) {
            return (format!("{subject} executed itself again (exec), which {then}"), None);
        }
        let why = format!("{subject} replaced itself with {} (exec), which {then}", path.display());
        (why, Some(format!("give that program as the {role}")))
    };
    let primary = outcome.last.executed.as_ref().map(|path| {
        let (why, would_help) = what("the primary", "primary", &participants.primary, path, "ran alone");
        Refused { what: "harvesting to the end".to_owned(), why, would_help }
    });
    let scavengers = participants.scavengers.iter().zip(&outcome.scavengers).filter_map(|(wanted, ended)| {
        let path = ended.executed.as_ref()?;
        let (why, would_help) = what("it", "scavenger", &wanted.program, path, "stayed at home");
        Some(Refused { what: told(wanted), why, would_help })
    });
    primary.into_iter().chain(scavengers).collect()
}

/// Scavengers that could not be guests.
fn as_they_are(prepared: &Prepared) -> impl Iterator<Item = Refused> {
    let each = prepared.participants().scavengers.iter();
    let each = each.filter_map(|wanted| Some((wanted, wanted.program.as_it_is.as_ref()?)));
    each.map(|(wanted, why)| Refused {
        what: format!("{} in the primary's stalls", told(wanted)),
        why: format!("it ran beside the primary, as it is: {why}"),
        would_help: None,
    })
}

fn told(wanted: &WantedScavenger) -> String {
    format!("scavenger {} ({})", texts(&wanted.program.command).join(" "), wanted.copy)
}

/// Scavengers without a dynamic loader, which get no threads: one may fail for that without saying
/// why.
fn threadless(participants: &Participants, outcome: &Outcome) -> impl Iterator<Item = Refused> {
    participants.scavengers.iter().zip(&outcome.scavengers).filter(|(_, ended)| ended.refused_threads).map(
        |(wanted, _)| Refused {
            what: format!("threads of {}", told(wanted)),
            why: "it has no dynamic loader, so it was refused new threads".to_owned(),
            would_help: Some("link it dynamically".to_owned()),
        },
    )
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn scavenger(prepared: &Prepared, wanted: &WantedScavenger, outcome: &ScavengerOutcome) -> Scavenger {
    let figures = &outcome.figures;
    Scavenger {
        process: Process {
            command: texts(&wanted.program.command),
            file: records::text_of(&wanted.program.file),
            pid: u32::try_from(figures.pid).ok().filter(|&pid| pid != 0),
            ended: match &outcome.exit {
                Ok(_) if outcome.killed_at_end => Ended::WithThePrimary,
                Ok(status) => ended(*status),
                Err(why) => Ended::NotStarted { why: why.clone() },
            },
            twin: twin(prepared, &wanted.program.file, Role::Scavenger),
        },
        copy: wanted.copy,
        output: wanted.output.clone(),
        times: times(outcome),
        progress: gained::pace(outcome),
        turns: count(figures.turns),
        // Older records have these.
        turn_alone: None,
        turns_with_sites_off: None,
        site_turn_alone: None,
        faults_aboard: count(figures.trips[trip::FAULT]),
        trips_home: trips(figures),
        leaves: leaves::named(&outcome.leaves),
        visits_home: count(figures.visits),
    }
}

fn times(outcome: &ScavengerOutcome) -> Times {
    let aboard = outcome.figures.aboard_time;
    let life = match outcome.life {
        Some(_) if outcome.figures.threads > 1 => Err("it had several threads, and their times overlap"),
        life => life.ok_or("it was not started"),
    };
    let home = |life: Life| {
        let [least, most] = [life.least, life.most].map(|it| it.saturating_sub(aboard).as_secs_f64());
        Estimate::new(f64::midpoint(least, most), least, most)
    };
    let processor = life.and_then(|life| life.processor.ok_or("the kernel did not report it"));
    let of_processor = |what: fn(Processor) -> Duration| {
        processor.map_or_else(Quantity::unresolved, |processor| time(what(processor)))
    };
    Times {
        aboard: time(aboard),
        at_home: life.map_or_else(Quantity::unresolved, |life| Quantity::measured(home(life), Unit::Seconds)),
        running: of_processor(|processor| processor.ran),
        waiting: of_processor(|processor| processor.waited),
        lent: time(outcome.figures.visited),
    }
}

fn trips(figures: &ScavengerNow) -> Vec<HomeTrip> {
    const WHY: [(usize, &str); trip::COUNT] = [
        (trip::LEAVE, "a library, a system call, or a return into code without a twin"),
        (trip::FAULT, "a fault"),
        (trip::RECALL, "recalled to handle a signal"),
        (trip::MODES, "its floating-point modes differ from the primary's"),
        (trip::ENDED, "the primary's thread slept or ended, or its ring became smaller"),
        (trip::SLOWED, "with it aboard, the primary was slower than --max-slowdown allows"),
        (trip::STAYED, "it stayed aboard for longer than --max-absence"),
        (trip::FREE, "a CPU became idle for its own thread"),
        (trip::NO_YIELD, "the primary's thread reached no yield for too long"),
    ];
    WHY.into_iter()
        .map(|(index, because)| HomeTrip { because: because.to_owned(), count: figures.trips[index] })
        .filter(|trip| trip.count > 0)
        .collect()
}

/// The primary's sites that were seen.
fn sites(prepared: &Prepared, outcome: &Outcome) -> (Vec<SiteRun>, Vec<SwitchedOff>) {
    let (mut found, mut off) = (Vec::new(), Vec::new());
    for ((planned, entry), outcomes) in prepared.primarys().zip(&outcome.site_outcomes) {
        let (Some(outcomes), Ok(rewritten)) = (outcomes, std::fs::read(&entry.file)) else { continue };
        let (its, its_off) = crate::report::site_outcomes::sites(planned, &rewritten, outcomes);
        found.extend(its);
        off.extend(its_off);
    }
    (found, off)
}

fn slowdown(paces: &Paces) -> Slowdown {
    let seconds = |ns: f64| Quantity::measured(Estimate::exact(ns / 1e9), Unit::Seconds);
    Slowdown {
        share: match paces.slowdown() {
            Ok(share) => Quantity::measured(share, Unit::Ratio),
            Err(why) => Quantity::unresolved(why),
        },
        watched: seconds(paces.watched),
        with_guests: seconds(paces.with_guests),
        lent: seconds(paces.lent),
        samples: paces.samples,
        bounded: paces.bounded,
    }
}

/// From a histogram: a length lies somewhere in its bucket.
fn absences(paces: &Paces) -> Absences {
    let timed = paces.absences_timed();
    if timed == 0 {
        return Absences::unresolved("no absence was timed");
    }
    let share = |share: f64| match paces.absence(share) {
        // A bucket ends a fourth, a fifth, a sixth or a seventh above its beginning.
        Some(end) => Quantity::measured(Estimate::new(end * 0.9, end * 0.8, end), Unit::Nanos),
        None => Quantity::unresolved(format!("only {timed} absences were timed")),
    };
    Absences {
        count: count(timed),
        p50: share(0.5),
        p95: share(0.95),
        p99: share(0.99),
        p999: share(0.999),
        max: Quantity::measured(Estimate::exact(paces.longest_ns), Unit::Nanos),
        histogram: paces.absences.iter().map(|&(below_ns, count)| Bucket { below_ns, count }).collect(),
    }
}

fn twin(prepared: &Prepared, file: &Path, role: Role) -> TwinUsed {
    let Some(entry) = prepared.entry(file, role) else {
        let why = "the program ran as it is".to_owned();
        return TwinUsed {
            counts: Counts::default(),
            cached: false,
            proof: Proof::NotProven { why },
            remark: None,
        };
    };
    TwinUsed {
        counts: entry.note.counts,
        cached: entry.cached,
        proof: entry.note.proof.clone(),
        remark: entry.note.remark.clone(),
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited { code },
        (None, Some(signal)) => Ended::Killed { signal, core_dumped: status.core_dumped() },
        (None, None) => Ended::Unknown { why: format!("{status}") },
    }
}

fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The clock that counts these is exact to what the supervisor's rounds make of it; told as it was
/// read.
fn time(duration: Duration) -> Quantity {
    Quantity::measured(Estimate::exact(duration.as_secs_f64()), Unit::Seconds)
}

fn count(count: u64) -> Quantity {
    Quantity::measured(Estimate::exact(count as f64), Unit::Count)
}
