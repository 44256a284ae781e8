//! What is said after a harvest: what went otherwise than asked, and a summary.

use crate::figures::{figure, percent};
use ::harvest::report::NOT_RUN;
use ::harvest::report::next_step::{has_failed, is_starved, next_step};
use ::harvest::session::NO_OUTPUT;
use records::plan::{Place, Prices, Source};
use records::run::{Ended, Run, Scavenger};
use std::fmt::Write;
use std::path::Path;
use units::Quantity;

/// What went otherwise than asked, a line each.
pub(super) fn troubles(run: &Run) -> Vec<String> {
    if run.refusals.iter().any(|refused| refused.what == NOT_RUN) {
        return Vec::new(); // that was said, and the rest follows from it
    }
    let refused = run.refusals.iter().map(|r| {
        let help = r.would_help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        format!("{}: {}{help}", r.what, r.why)
    });
    let scavengers = run.scavengers.iter().filter_map(|s| {
        let how = match &s.process.ended {
            // What ends the primary from the terminal (hang-up, interrupt, quit) ends everything.
            ended @ Ended::Killed { signal: 1..=3, .. } if *ended == run.primary.ended => return None,
            Ended::Killed { signal, .. } => format!("killed by signal {signal}"),
            Ended::NotStarted { why } | Ended::Unknown { why } => format!("not started: {why}"),
            Ended::Exited { code } if *code != 0 => format!("exit code {code}"),
            _ => return None,
        };
        Some(format!("scavenger {}: {how}{}", told(s), its_output(s)))
    });
    refused.chain(scavengers).map(|line| crate::failure::one_line(&line)).collect()
}

/// Where a scavenger that failed may have said why.
fn its_output(scavenger: &Scavenger) -> String {
    match scavenger.output.as_str() {
        _ if !has_failed(scavenger) => String::new(),
        NO_OUTPUT => "; its output was discarded, --scavenger-out keeps it".to_owned(),
        file => format!("; its output is in {file}"),
    }
}

/// All lines but the first are indented.
pub(super) fn summary(run: &Run, prices: &Prices, record: Option<&Path>) -> String {
    if let Some(why) = &run.beside {
        return beside(run, why, prices, record);
    }
    let mut text = format!("harvest: {} with a ring of {}\n", run.wall.brief(), run.bounds.ring);
    if !run.without.is_empty() {
        let _ = writeln!(text, "  without {}", records::plan::told(&run.without));
    }
    if !run.scavengers.is_empty() {
        let _ = writeln!(
            text,
            "  slowdown of the primary: {} (asked: at most {})",
            percent(&run.slowdown.share),
            percent(&run.bounds.max_slowdown)
        );
        let absences = &run.absences;
        let figures = if absences.max.value().is_none() {
            absences.max.brief()
        } else {
            let [p50, p99, max] = [&absences.p50, &absences.p99, &absences.max].map(Quantity::brief);
            format!("median {p50}, 99th percentile {p99}, longest {max}")
        };
        let _ = writeln!(
            text,
            "  absences of the primary: {figures} (asked: at most {})",
            run.bounds.max_absence.brief()
        );
    }
    match &prices.source {
        Source::Defaults { why } => {
            let _ = writeln!(text, "  costs of misses and yields: assumed, not measured: {why}");
        }
        Source::Machine { path, .. } if !prices.knows_misses() => {
            let _ = writeln!(text, "  costs of misses: assumed, not measured: {path} has no levels");
        }
        Source::Machine { .. } => {}
    }
    for site in &run.switched_off {
        let function = site.place.function.as_deref().unwrap_or("?");
        let _ = writeln!(text, "  {function} at {:#x} was switched off: {}", site.place.address, site.why);
    }
    for site in &run.sites {
        let function = site.place.function.as_deref().unwrap_or("?");
        let address = site.place.address;
        let told = run.switched_off.iter().any(|off| off.place == site.place);
        if let Some(why) = site.why_not.as_ref().filter(|_| !told) {
            let _ =
                writeln!(text, "  {function} at {address:#x}: {why} (--exclude {address:#x} leaves it out)");
        }
    }
    for scavenger in &run.scavengers {
        let trips: u64 = scavenger.trips_home.iter().map(|trip| trip.count).sum();
        let came = match pace(&scavenger.progress) {
            Some(pace) => format!("{pace}; aboard {}", scavenger.times.aboard.brief()),
            None => known(scavenger),
        };
        let _ = writeln!(
            text,
            "  {}: {came}, {trips} trips home{}, {}{}",
            told(scavenger),
            visits(scavenger),
            how(&scavenger.process.ended),
            starved(scavenger)
        );
        if let Some(line) = went_home_for(scavenger) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text.push_str(&paces_not_resolved(run));
    if let Some(work) = run.work.estimate().filter(|_| !run.scavengers.is_empty()) {
        let verdict = if work.lo > 1.0 {
            ""
        } else if work.hi < 1.0 {
            "; nothing was gained"
        } else {
            "; no gain is resolved"
        };
        let all = figure(&run.work);
        let _ = writeln!(text, "  all together did {all} times the work of one CPU{verdict}");
    }
    let _ = writeln!(text, "  next: {}", next_step(run, prices, record));
    // Causes of failures may have several lines.
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Of programs that all ran as they are.
fn beside(run: &Run, why: &str, prices: &Prices, record: Option<&Path>) -> String {
    let mut text = format!(
        "harvest: {}; all programs ran as they are, and scavengers where a CPU was idle: {why} (--stay-aboard \
         harvests all the same)\n",
        run.wall.brief()
    );
    for scavenger in &run.scavengers {
        let (told, how) = (told(scavenger), how(&scavenger.process.ended));
        let came = pace(&scavenger.progress).unwrap_or_else(|| time_at_home(scavenger));
        let _ = writeln!(text, "  {told}: {came}; {how}{}", starved(scavenger));
    }
    text.push_str(&paces_not_resolved(run));
    let _ = writeln!(text, "  next: {}", next_step(run, prices, record));
    text
}

/// A scavenger's pace, as a share of its pace alone; none where it is not resolved.
fn pace(progress: &Quantity) -> Option<String> {
    progress.value().map(|_| format!("advanced at {} of its pace alone", figure(progress)))
}

/// Why paces are not resolved, a line for each reason.
fn paces_not_resolved(run: &Run) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for scavenger in &run.scavengers {
        let Quantity::Unresolved { unresolved } = &scavenger.progress else { continue };
        match reasons.iter_mut().find(|(why, _)| why == unresolved) {
            Some((_, whose)) => whose.push(told(scavenger)),
            None => reasons.push((unresolved, vec![told(scavenger)])),
        }
    }
    let line = |(why, whose): (&str, Vec<String>)| {
        let of = match (whose.len(), run.scavengers.len()) {
            (1, 1) => String::new(),
            (some, all) if some == all => " of all scavengers".to_owned(),
            _ => format!(" of {}", whose.join(", ")),
        };
        format!("  pace{of} not resolved: {why}\n")
    };
    reasons.into_iter().map(line).collect()
}

/// What is known of a scavenger whose pace is not.
fn known(scavenger: &Scavenger) -> String {
    let aboard = scavenger.times.aboard.brief();
    let aboard = match scavenger.turns.value() {
        Some(_) => format!("{} turns aboard in {aboard}", scavenger.turns.brief()),
        None => format!("aboard {aboard}"),
    };
    format!("{}, {aboard}", time_at_home(scavenger))
}

fn time_at_home(scavenger: &Scavenger) -> String {
    let times = &scavenger.times;
    // The time of all threads together is not in the record.
    let whose = if times.at_home.value().is_some() { "" } else { " of its first thread" };
    match times.running.value() {
        Some(_) => format!("{} of CPU time at home{whose}", times.running.brief()),
        None => "CPU time at home not known".to_owned(),
    }
}

/// Fewer than this are no hindrance.
const MANY_LEAVES: u64 = 1000;

/// What a scavenger goes home for most, where it does so often: two places at most.
fn went_home_for(scavenger: &Scavenger) -> Option<String> {
    let trips: u64 = scavenger.trips_home.iter().map(|trip| trip.count).sum();
    let all = trips + scavenger.visits_home.value().unwrap_or(0.0) as u64;
    let most = scavenger.leaves.iter().take(2).filter(|leave| leave.count * 5 >= all);
    let places: Vec<String> = most
        .map(|leave| {
            let Place { function, address, instruction, offset, .. } = &leave.place;
            let module = Path::new(&leave.file).file_name().unwrap_or_default().to_string_lossy();
            let place =
                function.as_ref().map_or(format!("{address:#x}"), |name| format!("{name}+{offset:#x}"));
            let share = (100 * leave.count / all.max(1)).min(100);
            format!("{instruction} in {place} of {module} ({share}%)")
        })
        .collect();
    (all >= MANY_LEAVES && !places.is_empty()).then(|| format!("went home most for {}", places.join(", ")))
}

/// Visits home for which the primary lent its CPU.
fn visits(scavenger: &Scavenger) -> String {
    match scavenger.visits_home.value() {
        Some(visits) if visits > 0.0 => {
            format!(" and {visits} visits ({} of the primary's CPU)", scavenger.times.lent.brief())
        }
        _ => String::new(),
    }
}

fn told(scavenger: &Scavenger) -> String {
    crate::failure::one_line(&format!("{} ({})", scavenger.process.command.join(" "), scavenger.copy))
}

/// A scavenger off the primary that waited for a processor for longer than it ran anywhere.
fn starved(scavenger: &Scavenger) -> String {
    if !is_starved(scavenger) {
        return String::new();
    }
    let times = &scavenger.times;
    let ran = match times.running.value() {
        Some(ran) if ran >= 0.01 => format!("only {} of", times.running.brief()),
        _ => "no".to_owned(),
    };
    format!(
        "; starved: off the primary for {} with {ran} CPU time; give it a CPU with --home-cpus",
        times.at_home.brief()
    )
}

fn how(ended: &Ended) -> String {
    match ended {
        Ended::Exited { code } => format!("exit code {code}"),
        Ended::Killed { signal, .. } => format!("killed by signal {signal}"),
        Ended::WithThePrimary => "ended with the primary".to_owned(),
        Ended::NotStarted { why } | Ended::Unknown { why } => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Unit};

    fn scavenger(ended: Ended, output: &str, [aboard, running, waiting]: [f64; 3]) -> Scavenger {
        let seconds = |value| Quantity::measured(Estimate::exact(value), Unit::Seconds);
        let none = || Quantity::unresolved("not counted");
        Scavenger {
            process: records::run::Process {
                command: vec!["./a".to_owned()],
                file: "/a".to_owned(),
                pid: None,
                ended,
                twin: records::run::TwinUsed {
                    counts: records::plan::Counts::default(),
                    cached: true,
                    proof: records::run::Proof::Proven { by: String::new() },
                    remark: None,
                },
            },
            copy: 1,
            output: output.to_owned(),
            times: records::run::Times {
                aboard: seconds(aboard),
                at_home: seconds(running + waiting),
                running: seconds(running),
                waiting: seconds(waiting),
                lent: none(),
            },
            progress: none(),
            turns: none(),
            turn_alone: None,
            turns_with_sites_off: None,
            site_turn_alone: None,
            faults_aboard: none(),
            trips_home: Vec::new(),
            leaves: Vec::new(),
            visits_home: none(),
        }
    }

    #[test]
    fn a_scavenger_that_mostly_waits_is_starved() {
        let times = |times| starved(&scavenger(Ended::WithThePrimary, NO_OUTPUT, times));
        let none = "; starved: off the primary for 3.97 s with no CPU time; give it a CPU with --home-cpus";
        assert_eq!(times([0.0, 0.0, 3.97]), none);
        let some = "; starved: off the primary for 4.6 s with only 100 ms of CPU time; give it a CPU with --home-cpus";
        assert_eq!(times([2.0, 0.1, 4.5]), some);
        assert_eq!(times([2.0, 3.0, 4.5]), "");
        assert_eq!(times([0.0, 0.0, 0.4]), "", "it has only begun");
        assert_eq!(times([0.0, 0.0, 0.0]), "");
    }

    #[test]
    fn without_a_pace_it_says_what_is_known() {
        let mut guest = scavenger(Ended::WithThePrimary, NO_OUTPUT, [0.744, 1.09, 4.9]);
        assert_eq!(pace(&guest.progress), None);
        assert_eq!(known(&guest), "1.09 s of CPU time at home, aboard 744 ms");
        guest.turns = Quantity::measured(Estimate::exact(24_374_823.0), Unit::Count);
        assert_eq!(known(&guest), "1.09 s of CPU time at home, 24374823 turns aboard in 744 ms");
        guest.times.at_home = Quantity::unresolved("several threads");
        assert_eq!(time_at_home(&guest), "1.09 s of CPU time at home of its first thread");
        guest.progress = Quantity::measured(Estimate::new(0.2, 0.1, 0.3), Unit::Ratio);
        assert!(pace(&guest.progress).is_some_and(|it| it.ends_with(" of its pace alone")));
    }

    #[test]
    fn why_paces_are_not_resolved_is_said_once() {
        let fixture = include_bytes!("../../../records/fixtures/run.v1.one-scavenger.json");
        let mut run = records::parse::<Run>(fixture).expect("a fixture").body;
        let guest = |copy| Scavenger { copy, ..scavenger(Ended::WithThePrimary, NO_OUTPUT, [0.0; 3]) };
        run.scavengers = vec![guest(1)];
        assert_eq!(paces_not_resolved(&run), "  pace not resolved: not counted\n");
        run.scavengers = vec![guest(1), guest(2), guest(3)];
        assert_eq!(paces_not_resolved(&run), "  pace of all scavengers not resolved: not counted\n");
        run.scavengers[1].progress = Quantity::measured(Estimate::exact(0.2), Unit::Ratio);
        assert_eq!(paces_not_resolved(&run), "  pace of ./a (1), ./a (3) not resolved: not counted\n");
    }

    #[test]
    fn a_failed_scavenger_says_where_its_words_are() {
        let output = |code, output: &str| its_output(&scavenger(Ended::Exited { code }, output, [0.0; 3]));
        assert_eq!(output(1, NO_OUTPUT), "; its output was discarded, --scavenger-out keeps it");
        assert_eq!(output(1, "out/1-a.out"), "; its output is in out/1-a.out");
        assert_eq!(output(0, NO_OUTPUT), "");
    }
}
