//! `gleaner compare`: sides of records against each other; how they are judged is the room of that
//! name.

mod alternate;
mod sides;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::plain::escaped_lines;
use crate::wrap;
use ::compare::{Comparison, GateOutcome, Options, Side};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

/// Compare records: what became slower, what became faster, what is the same
///
/// A side is one run or several of the same thing: a record, a directory of records, or records
/// with commas between them. Each further side is compared with the first. With one run a side,
/// nothing is known of how runs differ, and nothing is called regressed; five runs a side are a
/// good number, taken in turns.
///
/// A figure regressed if the median of its runs is worse by more than --min-effect and by more than
/// two runs of BASE differ, and if chance is an unlikely cause (5%, all headline figures together).
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What to compare with: a record, a directory of records, or records with commas between them
    #[arg(value_name = "BASE", required_unless_present = "ab", conflicts_with = "ab")]
    base: Option<String>,

    /// What to compare, in the same form
    #[arg(value_name = "NEW", required_unless_present = "ab")]
    new: Vec<String>,

    /// Measure two settings in turns, and compare them: each is text with arguments of
    /// 'gleaner measure', variables as NAME=VALUE, and thp=never for small pages alone
    #[arg(long, num_args = 2, value_names = ["A", "B"], allow_hyphen_values = true)]
    ab: Vec<String>,

    /// With --ab: runs of each setting
    #[arg(long, value_name = "N", default_value_t = 5, requires = "ab", value_parser = clap::value_parser!(u32).range(2..=1000))]
    repeat: u32,

    /// With --ab: keep the records in this directory, below 'a' and 'b'
    #[arg(short, long, value_name = "DIR", requires = "ab")]
    output: Option<PathBuf>,

    /// The smallest effect that matters
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    min_effect: Percent,

    /// Exit with 4 if a headline figure regressed, with 5 if of one it is not known whether it did
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    fail_on: Vec<FailOn>,

    /// With --fail-on regression: whether what is not known fails, too
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Unknown::Fail, requires = "fail_on")]
    inconclusive: Unknown,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Seed of the random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A headline figure became worse, or that is not known
    Regression,
    /// It is not known of a headline figure, or a side has one run
    Inconclusive,
}

/// What a gate does where nothing regressed, but not all headline figures are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unknown {
    /// Exit with 5
    Fail,
    /// Exit with 0
    Ok,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables
    Text,
    /// Markdown, for a pull request or a ticket
    Md,
    /// One HTML page that needs no network
    Html,
    /// Everything, for scripts (the same as --json)
    Json,
}

/// A share, written `5%` or `0.05`.
#[derive(Clone, Copy, Debug)]
struct Percent(f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, divisor) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        match number.trim().parse::<f64>() {
            Ok(number) if number > 0.0 && number / divisor <= 1.0 => Ok(Self(number / divisor)),
            Ok(_) => Err("more than 0% and at most 100% are needed".to_owned()),
            Err(_) => Err("not a percentage, as in 5%".to_owned()),
        }
    }
}

pub(crate) fn run(args: &CompareArgs, console: &Console) -> anyhow::Result<Exit> {
    if args.inconclusive == Unknown::Ok && args.fail_on.contains(&FailOn::Inconclusive) {
        let why = "it contradicts --fail-on inconclusive";
        return Err(Refusal::wrong_use("--inconclusive ok", why).into());
    }
    let sides = sides(args, console)?;
    let options = Options { min_effect: args.min_effect.0, seed: args.seed };
    let comparison =
        ::compare::compare(&sides, &options).map_err(|why| Refusal::wrong_use("compare", why.to_string()))?;
    let format = if console.json() { Format::Json } else { args.format };
    match format {
        Format::Json => console.value(&serde_json::to_value(&comparison)?)?,
        Format::Md => console.stdout(&escaped_lines(&::compare::markdown(&comparison)))?,
        Format::Html => console.stdout(&::compare::html(&comparison))?,
        Format::Text => {
            let text = escaped_lines(&::compare::text(&comparison));
            console.text(&wrap::lines(&text, console.width()))?;
        }
    }
    let outcomes: Vec<GateOutcome> = comparison.against.iter().map(|against| against.gate.outcome).collect();
    if outcomes.contains(&GateOutcome::Insufficient) {
        let several = several(&comparison.kind);
        console.remark(&format!("one run a side is insufficient for a gate; {several}"));
    }
    Ok(exit(&comparison, args))
}

/// How several records of this kind come about.
fn several(kind: &str) -> &'static str {
    match kind {
        "profile" => {
            "profile the program five times a side: 'gleaner profile -o before/1.json -- CMD', then before/2.json, …; \
             and compare the directories"
        }
        "run" => {
            "repeat the harvest five times a side: 'gleaner harvest -o before/1.json … -- CMD', then before/2.json, …; \
             and compare the directories"
        }
        _ => "'gleaner measure --repeat 5 -o DIRECTORY' makes several",
    }
}

fn sides(args: &CompareArgs, console: &Console) -> anyhow::Result<Vec<Side>> {
    if args.ab.is_empty() {
        return sides::read(args.base.iter().chain(&args.new));
    }
    if let Some(directory) = &args.output {
        return alternate::measure(&args.ab, args.repeat, directory, console);
    }
    let directory = tempfile::tempdir()?;
    alternate::measure(&args.ab, args.repeat, directory.path(), console)
}

/// A regression weighs more than what is not known; and a gate that could not have found one has
/// not passed.
fn exit(comparison: &Comparison, args: &CompareArgs) -> Exit {
    let gates = || comparison.against.iter().map(|against| &against.gate);
    let regression = args.fail_on.contains(&FailOn::Regression);
    if regression && gates().any(|gate| gate.outcome == GateOutcome::Regressed) {
        return Exit::Regressed;
    }
    let open = |outcome| matches!(outcome, GateOutcome::Inconclusive | GateOutcome::Insufficient);
    let unknown = gates().any(|gate| open(gate.outcome) || gate.counts.inconclusive > 0);
    let fails =
        args.fail_on.contains(&FailOn::Inconclusive) || (regression && args.inconclusive == Unknown::Fail);
    if fails && unknown { Exit::Inconclusive } else { Exit::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_in_both_forms() {
        let read = |text: &str| text.parse::<Percent>().map(|share| share.0);
        assert_eq!(read("5%"), Ok(0.05));
        assert_eq!(read("0.02"), Ok(0.02));
        for wrong in ["0", "-3%", "200%", "5", "x", "", "NaN"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
