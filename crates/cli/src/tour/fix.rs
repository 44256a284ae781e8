//! The fix, timed in pairs with the program as it is; and what helps without touching it.

use super::machine::figure;
use super::{Found, NotRun, Told, Tour};
use lab::stop::Stop;
use records::profile::{FindingKind, Trial, TrialOutcome};
use std::ffi::OsString;
use trials::{Change, HugePages, Program};

const ORDERS: &str = "2000000";
/// The fewest pairs in which a difference can be told from chance at all.
const PAIRS: usize = 8;

pub(super) fn command() -> String {
    format!(
        "time ./join {ORDERS}; time ./join {ORDERS} grown    # {PAIRS} pairs; gleaner profile --try does the same with huge pages"
    )
}

pub(super) fn tried(tour: &mut Tour<'_>) -> Found {
    let program = Program::of(vec![tour.place.at("join").into(), OsString::from(ORDERS)]);
    let grown = Change::Variant {
        kind: FindingKind::Pad,
        says: "a table that has grown with the customers".to_owned(),
        arguments: vec!["grown".into()],
    };
    let huge = Change::HugePages(HugePages::of(&crate::live::host_without_trying()));
    let changes = [grown, huge];
    let mut progress = tour.console.progress();
    let mut trials = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let mut told = |says: &str, round: usize| {
            let done = number as f64 + round as f64 / PAIRS as f64;
            progress.at(&format!("{says}, in pairs of runs"), done / changes.len() as f64);
        };
        trials.extend(one(&program, change, tour.stop, &mut told)?);
    }
    progress.finish();
    let [grown, huge] = &trials[..] else { return Err(NotRun::because("it was stopped")) };
    if let TrialOutcome::NotTried { why } | TrialOutcome::Failed { why } = &grown.outcome {
        return Err(NotRun::because(why.clone()));
    }
    tour.faster = huge.faster.value().filter(|_| huge.outcome == TrialOutcome::Faster);
    let says = vec![
        "Its table still has the slots it began with, and eight customers share one. So each look-up goes from customer to \
         customer, and each of them says where the next one is. The fix lets the table grow with the customers."
            .to_owned(),
        format!("{} The answer is {}.", judged(grown, "With it the program was"), same(grown)),
        format!(
            "Without touching the program: {} 'gleaner speed -- PROGRAM' searches for such changes, and keeps what gains.",
            judged(huge, "with huge pages for its memory it was")
        ),
    ];
    let mut figures = vec![figure("as it is", &grown.without), figure("grown table", &grown.with)];
    if huge.with.value().is_some() {
        figures.push(figure("huge pages", &huge.with));
    }
    Ok(Told { says, figures, figures_show: "Time of a whole run".to_owned(), record: None })
}

fn one(
    program: &Program,
    change: &Change,
    stop: Stop,
    told: &mut dyn FnMut(&str, usize),
) -> Result<Vec<Trial>, NotRun> {
    trials::run(program, std::slice::from_ref(change), PAIRS, stop, told)
        .map_err(|error| NotRun::because(error.to_string()))
}

fn judged(trial: &Trial, subject: &str) -> String {
    let times = |faster: &units::Quantity| {
        format!("{subject} {} times as fast, in {} pairs of runs.", faster.brief(), trial.rounds)
    };
    match &trial.outcome {
        TrialOutcome::Faster | TrialOutcome::Slower => times(&trial.faster),
        // With so few pairs, chance is excluded only if all of them agree.
        TrialOutcome::NoDifference => {
            format!(
                "{subject} not faster beyond doubt: {} times as fast in the median of {} pairs of runs, which do not agree.",
                trial.faster.brief(),
                trial.rounds
            )
        }
        TrialOutcome::Failed { why } | TrialOutcome::NotTried { why } => format!("not tried: {why}."),
    }
}

fn same(trial: &Trial) -> &'static str {
    match trial.same_output {
        Some(true) => "the same to the last digit",
        Some(false) => "another one",
        None => "not the same in each run, with it and without",
    }
}
