//! Other programs in the waits of the program as it is: what they get done, and what it pays. All
//! on one CPU, so that their work is done in its waits; alone and together in turns.

use super::machine::share;
use super::place::{MACHINE, PROFILE, RUN};
use super::{Found, NotRun, Told, Tour};
use crate::figures::percent;
use ::tour::harvested::{Gain, HarvestFigures, Round};
use lab::pin::Pinned;
use records::run::{Ended, Run};

const ORDERS: &str = "2000000";
/// Rounds that count, and one before them, in which neither programs nor files are in any cache.
const ROUNDS: usize = 4;
/// What the others' counts are called.
const COUNTS: [&str; 3] = ["others-1", "others-2", "others-3"];

pub(super) fn command() -> String {
    format!(
        "gleaner harvest --profile {PROFILE} --scavenger './join endless {}' … -- ./join {ORDERS} beside {} …",
        COUNTS[0], COUNTS[0]
    )
}

pub(super) fn harvested(tour: &mut Tour<'_>) -> Found {
    let cpu = experiments::choices::cpu(None).map_err(|refused| NotRun::because(refused.why))?;
    let _pinned = Pinned::to(cpu.cpu).map_err(|error| NotRun::because(error.to_string()))?;
    let mut progress = tour.console.progress();
    let mut rounds = Vec::new();
    let mut record = None;
    for round in 0..=ROUNDS {
        let what = if round == 0 {
            "rewriting the program".to_owned()
        } else {
            format!("alone, and with others in its waits: round {round} of {ROUNDS}")
        };
        progress.at(&what, round as f64 / (ROUNDS + 1) as f64);
        let (of_round, run) = one(tour)?;
        if round > 0 {
            rounds.push(of_round);
        }
        record = Some(run);
    }
    progress.finish();
    let Some(run) = record else { return Err(NotRun::because("it was stopped")) };
    let found = HarvestFigures::of(&rounds);
    tour.harvested = found.pace.value().filter(|_| matches!(found.gain(), Gain::Pays));
    let says = vec![
        "Then its waits can be used. Gleaner rewrites a copy of the program: before a load that misses, the copy asks memory for \
         the data and switches to another program, which does the same. Here three others are joins of other shops; any \
         program will do."
            .to_owned(),
        format!(
            "On one CPU, the look-ups took {} longer than alone, and meanwhile the others looked up {} as many customers, in its \
             waits.",
            percent(&found.slowdown),
            percent(&found.others)
        ),
        format!("{} ({ROUNDS} rounds in turns: alone, together).", verdict(&found)),
        format!(
            "It may lose {} at most, as was asked: while it runs, Gleaner compares its pace with others and without, and sends \
             them home where it must. {}",
            percent(&run.bounds.max_slowdown),
            away(&run)
        ),
        "An independent checker proved before that the copy is the program, with these switches and nothing else.".to_owned(),
    ];
    let figures = vec![
        share("alone", &found.alone),
        share("with others in its waits", &found.own_pace),
        share("the others, in its waits", &found.others_pace),
    ];
    let figures_show = "Look-ups a second on one CPU, by those of the program alone".to_owned();
    Ok(Told { says, figures, figures_show, record: Some(RUN) })
}

fn away(run: &Run) -> String {
    match run.absences.p50.estimate() {
        Some(_) => format!("Each time it was away for {} in the median.", run.absences.p50.brief()),
        None => "For how long it was away each time is not resolved.".to_owned(),
    }
}

fn verdict(found: &HarvestFigures) -> String {
    let all = percent(&found.pace);
    let together = format!("Together the CPU did {all} of the look-ups that it does alone");
    match found.gain() {
        Gain::Pays => format!("{together}: waiting had cost it the difference"),
        Gain::DoesNotPay => format!("{together}: it did not pay here"),
        Gain::NotResolved => {
            "Whether it pays is not resolved: runs alone and together differ by chance as much as the \
             others did"
                .to_owned()
        }
    }
}

/// The program alone, and with the others.
fn one(tour: &Tour<'_>) -> Result<(Round, Run), NotRun> {
    let place = &tour.place;
    let (alone, _) = told(&place.join(&[ORDERS, "beside"], tour.stop)?)?;
    let others = COUNTS.map(|count| format!("./join endless {count}"));
    let mut words = vec!["harvest", "--record", RUN];
    for other in &others {
        words.extend(["--scavenger", other]);
    }
    for (option, file) in [("--profile", PROFILE), ("--machine", MACHINE)] {
        if place.at(file).exists() {
            words.extend([option, file]);
        }
    }
    words.extend(["--", "./join", ORDERS, "beside"]);
    words.extend(COUNTS);
    for count in COUNTS {
        let _ = std::fs::remove_file(place.at(count)); // none is there at first
    }
    let _ = std::fs::remove_file(place.at(RUN)); // one of an earlier tour would tell of that
    let printed = place.verb(&words, tour.stop);
    let run = records::read::<Run>(&place.at(RUN)).map_err(|error| NotRun::because(error.to_string()));
    let printed =
        printed.map_err(|said| run.as_ref().ok().and_then(|run| failed(&run.body)).unwrap_or(said))?;
    let run = run?.body;
    let (together, done) = told(&printed)?;
    let own = ORDERS.parse::<f64>().expect("a number");
    Ok((Round { alone_seconds: alone, together_seconds: together, own, others: done }, run))
}

/// Why a harvest failed, by its record: what could not be done, else how the program ended.
fn failed(run: &Run) -> Option<NotRun> {
    if let Some(refused) = run.refusals.first() {
        let why = format!("{}: {}", refused.what, refused.why);
        return Some(NotRun { why, would_help: refused.would_help.clone() });
    }
    match &run.primary.ended {
        Ended::Killed { signal, .. } => {
            Some(NotRun::because(format!("the program was killed by signal {signal}")))
        }
        Ended::NotStarted { why } | Ended::Unknown { why } => Some(NotRun::because(why.clone())),
        // It may have said why.
        Ended::Exited { .. } | Ended::WithThePrimary => None,
    }
}

/// What the program says in its last line: `1.234 s, others did 567 orders`.
fn told(printed: &str) -> Result<(f64, f64), NotRun> {
    let line = printed.lines().last().unwrap_or_default();
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [seconds, orders] => Ok((seconds, orders)),
        _ => Err(NotRun::because("the program did not say how long it took")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_harvest_tells_its_first_cause() {
        let path = testkit::root().join("crates/records/fixtures/run.v1.one-scavenger.json");
        let mut run = records::read::<Run>(&path).unwrap().body;
        run.refusals.clear();
        assert!(failed(&run).is_none(), "it ended by itself");
        run.primary.ended = Ended::Killed { signal: 11, core_dumped: false };
        assert_eq!(failed(&run).unwrap().why, "the program was killed by signal 11");
        run.refusals.push(records::run::Refused {
            what: "harvesting".to_owned(),
            why: "no FSGSBASE".to_owned(),
            would_help: Some("Linux 5.9".to_owned()),
        });
        let found = failed(&run).unwrap();
        assert_eq!(
            (found.why.as_str(), found.would_help.as_deref()),
            ("harvesting: no FSGSBASE", Some("Linux 5.9"))
        );
    }

    #[test]
    fn what_the_program_says_is_read() {
        let printed = "2 orders of 3 customers earned 1.00\n1.234000 s, others did 567 orders\n";
        assert_eq!(told(printed).unwrap(), (1.234, 567.0));
        assert!(told("killed\n").is_err());
    }

    #[test]
    fn a_gain_is_claimed_only_where_it_is_one() {
        let verdict = |together_seconds: [f64; 2]| {
            let round =
                |seconds| Round { alone_seconds: 1.0, together_seconds: seconds, own: 1.0, others: 1.0 };
            verdict(&HarvestFigures::of(&together_seconds.map(round)))
        };
        assert!(verdict([1.4, 1.6]).contains("waiting had cost"));
        assert!(verdict([2.1, 2.5]).contains("did not pay"));
        assert!(verdict([1.8, 2.2]).contains("not resolved"));
    }

    /// The program was faster with others than alone, which did next to nothing: that is noise.
    #[test]
    fn a_gain_without_work_of_the_others_is_none() {
        let round =
            |together_seconds| Round { alone_seconds: 1.4, together_seconds, own: 1000.0, others: 3.0 };
        let told = verdict(&HarvestFigures::of(&[round(1.0), round(1.2), round(0.4), round(1.1)]));
        assert!(told.contains("not resolved") && !told.contains('%'), "{told}");
    }
}
