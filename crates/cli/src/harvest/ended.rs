//! What there is to say after a harvest: troubles in any case, a summary for those who watched.

use ::harvest::report::NOT_RUN;
use records::run::{Ended, Run, Scavenger, Times};
use std::fmt::Write;
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
            // What ends the primary from the terminal (hang-up, interrupt, quit) ends everybody.
            ended @ Ended::Killed { signal: 1..=3, .. } if *ended == run.primary.ended => return None,
            Ended::Killed { signal, .. } => format!("killed by signal {signal}"),
            Ended::NotStarted { why } | Ended::Unknown { why } => format!("not started: {why}"),
            Ended::Exited { code } if *code != 0 => format!("exit code {code}"),
            _ => return None,
        };
        Some(format!("scavenger {}: {how}", told(s)))
    });
    refused.chain(scavengers).map(|line| crate::failure::one_line(&line)).collect()
}

pub(super) fn summary(run: &Run) -> String {
    let mut text = format!("harvest: {} with a ring of {}\n", run.wall, run.bounds.ring);
    if !run.without.is_empty() {
        let _ = writeln!(text, "  without {}", records::plan::told(&run.without));
    }
    if let Some(siblings) = &run.siblings {
        let trips: u64 = siblings.trips_home.iter().map(|trip| trip.count).sum();
        let _ = writeln!(
            text,
            "  {} threads as each other's guests: {} boardings, home {trips} times; nobody's pace was watched",
            siblings.threads, siblings.boardings
        );
    } else {
        let _ = writeln!(
            text,
            "  the primary slower by {} (asked: at most {})",
            percent(&run.slowdown.share),
            percent(&run.bounds.max_slowdown)
        );
        let _ = writeln!(
            text,
            "  away for p50 {}, p99 {}, at most {} (asked: at most {})",
            run.absences.p50, run.absences.p99, run.absences.max, run.bounds.max_absence
        );
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
        let _ = writeln!(
            text,
            "  {}: aboard {}, home {} times,{} {}",
            told(scavenger),
            scavenger.times.aboard,
            trips,
            queued(&scavenger.times),
            how(&scavenger.process.ended)
        );
    }
    text
}

/// Shares as people say them. What was measured has its interval; what was asked for is exact.
fn percent(share: &Quantity) -> String {
    match share {
        Quantity::Resolved { value, lo, hi, .. } if lo == hi => format!("{}%", (1e6 * value).round() / 1e4),
        Quantity::Resolved { value, lo, hi, .. } => {
            let decimals = if hi - lo < 2e-3 { 2 } else { 1 };
            let [value, lo, hi] = [value, lo, hi].map(|share| format!("{:.decimals$}", 100.0 * share));
            format!("{value}% [{lo}, {hi}]")
        }
        unresolved @ Quantity::Unresolved { .. } => unresolved.to_string(),
    }
}

fn told(scavenger: &Scavenger) -> String {
    crate::failure::one_line(&format!("{} ({})", scavenger.process.command.join(" "), scavenger.copy))
}

/// Where nobody else wants it little is waited; who waited for longer than it got anywhere wants to know why.
fn queued(times: &Times) -> String {
    let got = times.aboard.value().unwrap_or(0.0) + times.running.value().unwrap_or(0.0);
    match times.waiting.value() {
        Some(waited) if waited > got => format!(" waited {} for a processor,", times.waiting),
        _ => String::new(),
    }
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

    #[test]
    fn shares_are_said_in_percent() {
        let measured =
            |value, lo, hi| percent(&Quantity::measured(Estimate::new(value, lo, hi), Unit::Ratio));
        assert_eq!(measured(0.0214, 0.015, 0.0273), "2.1% [1.5, 2.7]");
        assert_eq!(measured(0.0018, 0.0017, 0.0019), "0.18% [0.17, 0.19]");
        assert_eq!(measured(0.07, 0.07, 0.07), "7%");
        assert_eq!(percent(&Quantity::unresolved("it slept")), "not resolved: it slept");
    }

    #[test]
    fn who_mostly_waits_is_told() {
        let times = |aboard, running, waiting| {
            let seconds = |value| Quantity::measured(Estimate::exact(value), Unit::Seconds);
            queued(&Times {
                aboard: seconds(aboard),
                at_home: seconds(running + waiting),
                running: seconds(running),
                waiting: seconds(waiting),
            })
        };
        assert_eq!(times(2.0, 0.1, 4.5), " waited 4.5 s measured for a processor,");
        assert_eq!(times(2.0, 3.0, 4.5), "");
        assert_eq!(times(0.0, 0.0, 0.0), "");
    }
}
