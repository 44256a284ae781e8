//! `gleaner predict`: how long an access pattern takes; what is predicted, and how, is the room
//! `model`.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use ::model::pattern::{self, Options, Pattern};
use ::model::predict::{self, Prediction};
use clap::Args;
use records::machine::Machine;
use records::run::Refused;
use std::path::{Path, PathBuf};
use store::machine_record;

/// The algebra, under the options: its lines stay as they are.
const PATTERNS: &str = "\
Accesses:
  chase(AREA)         each load takes its address from the one before
  rand(AREA)          independent loads of lines drawn at random
  rmw(AREA)           the same, and each line is written, too
  seq(AREA)           line after line
  stride(STEP, AREA)  every STEP bytes, until all of the area is accessed
  window(SIZE, AREA)  runs of reads and writes, each at a random place
  tree(AREA, FANOUT, NODE)
                      from the root to a leaf drawn at random, in a tree that
                      takes AREA in all, with nodes of NODE bytes
  search(AREA)        binary search for a random key, in sorted keys of 8 bytes

Together:
  A; B                one after the other
  A || B              beside each other, each on a thread of its own
  A & B               interleaved on one thread, as in rand(64M) & seq(1G)
  10 * A              ten times; ( ) group

Options of an access, behind its sizes, as in rand(1G, mlp=4):
  n=1M                how many accesses (1 000 000); else one pass over the area,
                      an access for each line, node, STEP or window
  mlp=4               how many accesses of rand, rmw or stride are under way at
                      once; else as many as the core can have; or how many walks
                      of tree or search; else one
  lines=3             how many lines of each node chase, rand, rmw or tree read;
                      else one, or all of a tree's node
  zipf=0.99           skew of rand or rmw: the rth node is drawn as often as
                      1/r^0.99 says; else all alike
  pages=2M            4K, thp, 2M or 1G; else what ordinary programs get there
  op=write            what seq does: read, write, copy, triad, nt-write or nt-copy,
                      AREA being that of all its arrays
  remote=50%          share of memory's part that lies on another node; else 0
  work=2.5ns          what an access takes, with its computing, when all data are
                      in the nearest cache: run the same code on 16 KiB
  instructions=9      of one access of rand, rmw or stride, with its computing: how
                      many fit into the re-order buffer at once";

/// Predict how long an access pattern takes on a measured machine
///
/// Each access finds its area in caches as earlier passes over it leave it there. What it computes
/// is counted where work=TIME tells it. Where the fitted levels of 'gleaner model' describe the
/// machine well enough, they tell the time; else measured points do, interpolated.
#[derive(Debug, Args)]
#[command(after_help = PATTERNS)]
pub(crate) struct PredictArgs {
    /// What a program does with memory, for example 'chase(64M); seq(2G)'
    #[arg(value_name = "PATTERN")]
    pattern: String,

    /// A record of 'gleaner measure' ('-' for standard input) [default: the one that 'gleaner
    /// measure' left in ~/.cache/gleaner/machine.json]; given several times: runs on one machine,
    /// whose differences widen the intervals
    #[arg(long, value_name = "RECORD")]
    machine: Vec<PathBuf>,

    /// Predict for this machine, too, and compare
    #[arg(long, value_name = "RECORD")]
    on: Option<PathBuf>,

    /// Where an access says nothing itself: pages=KIND, mlp=COUNT, n=COUNT,
    /// remote=SHARE
    #[arg(long = "if", value_name = "OPTION")]
    defaults: Vec<String>,
}

pub(crate) fn run(args: &PredictArgs, console: &Console) -> anyhow::Result<Exit> {
    let pattern = pattern::parse(&args.pattern).map_err(|e| Refusal::wrong_use("pattern", e.to_string()))?;
    let mut defaults = Options::default();
    for text in &args.defaults {
        pattern::parse_setting(text, &mut defaults)
            .map_err(|e| Refusal::wrong_use(format!("--if '{text}'"), e.to_string()))?;
    }
    let here = if args.machine.is_empty() { vec![usual_record()?] } else { args.machine.clone() };
    let first = of_runs(&here, &pattern, &defaults)?;
    let second = args.on.as_deref().map(|path| of_record(path, &pattern, &defaults)).transpose()?;
    let ratio = second.as_ref().and_then(|second| predict::compared(&first, second));
    if console.json() {
        let mut value = serde_json::to_value(&first)?;
        value["pattern"] = args.pattern.as_str().into();
        value["machines"] = here.iter().map(|path| path.to_string_lossy()).collect();
        if let (Some(path), Some(second)) = (&args.on, &second) {
            let mut other = serde_json::to_value(second)?;
            other["machine"] = path.to_string_lossy().into();
            other["times_as_long"] = serde_json::to_value(&ratio)?;
            value["on"] = other;
        }
        console.value(&value)?;
        return Ok(Exit::Done);
    }
    let mut text = predict::text(&first);
    if let (Some(path), Some(second)) = (&args.on, &second) {
        text.push_str(&format!("\non {}\n{}", path.display(), predict::text(second)));
        if let Some(ratio) = &ratio {
            text.push_str(&format!("\n{} times as long there\n", ratio.brief()));
        }
    }
    text.push_str("\nnext: measure the program, and compare");
    if !first.tells_computing() {
        text.push_str("; computing besides the loads is not counted: work=TIME tells it");
    }
    text.push('\n');
    console.text(&text)?;
    Ok(Exit::Done)
}

/// Where `gleaner measure` leaves its record.
fn usual_record() -> Result<PathBuf, Refusal> {
    let place = machine_record::usual_place().filter(|path| path.exists());
    place.ok_or_else(|| {
        Refusal::wrong_use("no machine record", "there is none in the usual place")
            .would_help("'gleaner measure' makes one, or name one by --machine")
    })
}

fn of_runs(paths: &[PathBuf], pattern: &Pattern, defaults: &Options) -> anyhow::Result<Prediction> {
    let documents = paths.iter().map(|path| records::read::<Machine>(path)).collect::<Result<Vec<_>, _>>()?;
    let name = |place: usize| documents[place].body.host.processor.name.get();
    if let Some(other) = (1..documents.len()).find(|&place| name(place) != name(0)) {
        let what = format!("{} and {}", paths[0].display(), paths[other].display());
        let why = "records of different processors are no runs of one machine";
        return Err(Refusal::wrong_use(what, why).would_help("--on compares two machines").into());
    }
    let runs = documents.iter().zip(paths).map(|(document, path)| {
        predict::predict(&document.body, pattern, defaults).map_err(|refused| refusal(path, &refused))
    });
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    Ok(predict::over_runs(&runs).expect("at least one record is named"))
}

fn of_record(path: &Path, pattern: &Pattern, defaults: &Options) -> anyhow::Result<Prediction> {
    of_runs(&[path.to_owned()], pattern, defaults)
}

fn refusal(path: &Path, refused: &Refused) -> Refusal {
    let what = format!("{}: {}", path.display(), refused.what);
    Refusal::wrong_use(what, refused.why.as_str()).helped_by(refused)
}
