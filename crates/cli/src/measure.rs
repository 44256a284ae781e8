//! `gleaner measure`: runs experiments and writes what they found.

use crate::console::Console;
use crate::failure::{self, Exit, OutputError, Refusal};
use crate::{cpu, csv, live, save};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use experiments::{Refused, Request, catalogue};
use lab::stop::Stop;
use records::Document;
use records::host::Host;
use records::machine::{Effort, Ending, Machine, Status};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use units::Bytes;

/// Below this, areas beyond the caches cannot be measured at all.
const LEAST_MEMORY: Bytes = Bytes::mib(16);

/// Addresses that this program takes itself, threads' stacks and heaps among them: 64 MiB for the heap of each thread but
/// the first that allocates, and few allocate.
const ADDRESSES: Bytes = Bytes::mib(128);

/// Memory that this program takes itself, tables and results among it: 4 MiB were too few.
const BESIDE_AREAS: Bytes = Bytes::mib(16);

/// The experiments by name, in the order in which they are told.
pub(crate) const EXPERIMENTS: [&str; 13] = [
    "clock",
    "latency",
    "tlb",
    "mlp",
    "rob",
    "stride",
    "prefetch",
    "numa",
    "threads",
    "bandwidth",
    "windows",
    "c2c",
    "yield",
];

/// Measure this machine: latencies and sizes of each level, TLBs, parallelism, bandwidth and more
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// What to measure; all of it if none is named
    #[arg(value_name = "EXPERIMENT", value_parser = PossibleValuesParser::new(EXPERIMENTS))]
    pub(crate) experiments: Vec<String>,

    /// Fewer points and blocks: everything within a minute
    #[arg(long, conflicts_with = "thorough")]
    pub(crate) quick: bool,

    /// More points and blocks, for narrower intervals
    #[arg(long)]
    pub(crate) thorough: bool,

    /// Measure on this CPU
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<usize>,

    /// Repeat the random choices of an earlier run, whose record names its seed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How to tell the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Also write each experiment's points as CSV into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) csv: Option<PathBuf>,

    /// Write the record to this file ('-' for standard output); a run that is stopped replaces no finished one's: it
    /// writes NAME.interrupted.json beside it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Use no more memory than this, for example 512M
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_memory: Option<Bytes>,
}

impl MeasureArgs {
    /// Everything, quickly, into this file.
    pub(crate) fn quickly(output: &Path) -> Self {
        Self {
            experiments: Vec::new(),
            quick: true,
            thorough: false,
            cpu: None,
            seed: None,
            format: Format::Text,
            csv: None,
            output: Some(output.to_owned()),
            max_memory: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A summary for people
    Text,
    /// Two columns, as the tool of that name prints them: size in MB and latency in ns
    #[value(name = "lat_mem_rd")]
    LatMemRd,
    /// Every point of every experiment
    Csv,
}

pub(crate) fn run(args: &MeasureArgs, console: &Console) -> anyhow::Result<Exit> {
    let console = &console.with_output(args.output.as_deref());
    if let Some(cpu) = args.cpu {
        cpu::check(cpu)?;
    }
    if let Some(output) = &args.output {
        save::check(output)?;
    }
    if let Some(directory) = &args.csv {
        csv::check(directory)?;
    }
    if args.format == Format::LatMemRd
        && !(args.experiments.is_empty() || args.experiments.iter().any(|e| e == "latency"))
    {
        return Err(Refusal::wrong_use("--format lat_mem_rd", "needs the latency experiment").into());
    }
    let host = live::host();
    let request = request(args, &host, console)?;
    let mut progress = console.progress();
    let machine = experiments::measure(&request, &host, &mut Adapter(progress.as_mut()))
        .map_err(|refused| refusal("measure", refused))?;
    progress.finish();
    let interrupted = machine.run.interrupted;
    if interrupted && machine.run.blocks.valid == 0 {
        // A record of nothing would take the place of an earlier one of something.
        return Err(
            Refusal::failed("measure", "stopped before anything was measured; nothing is written").into()
        );
    }
    let document = Document::now(machine);
    let output = args
        .output
        .as_deref()
        .map(|path| if interrupted { save::beside_finished(path) } else { path.into() });
    // Files first, for the reader of the text may leave; the text even if they fail, for it may be all that remains.
    let kept = keep(args, output.as_deref(), console, &document);
    let told = tell(args, console, &document);
    kept?;
    told.map_err(|error| rescued(args, error, &document))?;
    if let (Some(asked), Some(path)) = (&args.output, &output) {
        let other = if path == asked { String::new() } else { format!("; {} is as it was", asked.display()) };
        console.remark(&format!("wrote {}{other}", path.display()));
    }
    let exit = ended(&catalogue::endings(&document.body.experiments), interrupted)?;
    Ok(if interrupted { Exit::Failed } else { exit })
}

/// Writes the record and the tables; where one of them cannot be written, the other still is.
fn keep(
    args: &MeasureArgs,
    output: Option<&Path>,
    console: &Console,
    document: &Document<Machine>,
) -> Result<(), Refusal> {
    let record = output.map_or(Ok(()), |path| save::record(path, document));
    let Some(directory) = &args.csv else { return record };
    let kept_elsewhere = console.json() || output.is_some();
    let tables = csv::save(&document.body, directory)
        .map_err(|refusal| if kept_elsewhere { refusal } else { save::rescued(refusal, document) });
    record.and(tables)
}

/// Puts on standard output what was asked for.
fn tell(args: &MeasureArgs, console: &Console, document: &Document<Machine>) -> anyhow::Result<()> {
    match args.format {
        Format::Text => {
            console.text(&crate::summary::of(&document.body, console.colour(), console.width()))?;
        }
        Format::LatMemRd => match csv::lat_mem_rd(&document.body) {
            Some(columns) => console.text(&columns)?,
            None => return Err(no_curve(&document.body).into()),
        },
        Format::Csv => {
            for (name, table) in csv::of(&document.body) {
                console.text(&format!("# {name}\n{table}"))?;
            }
        }
    }
    Ok(console.document(document)?)
}

/// What nobody got to see and no file holds is kept, unless its reader left of his own will.
fn rescued(args: &MeasureArgs, error: anyhow::Error, document: &Document<Machine>) -> anyhow::Error {
    let in_a_file = args.output.as_ref().is_some_and(|path| path.as_os_str() != "-");
    match error.downcast_ref::<OutputError>() {
        Some(OutputError(why)) if !in_a_file && why.kind() != ErrorKind::BrokenPipe => {
            save::rescued(Refusal::failed("cannot write to standard output", records::plain(why)), document)
                .into()
        }
        _ => error,
    }
}

/// The record tells what went wrong; scripts read the exit code, and people who look at neither read a line.
fn ended(endings: &[Ending<'_>], interrupted: bool) -> anyhow::Result<Exit> {
    let mut refusals: Vec<Refusal> =
        endings.iter().filter(|e| e.status == Status::Failed).map(|e| because(e, Refusal::failed)).collect();
    if !interrupted && refusals.is_empty() && endings.iter().all(|e| e.status == Status::NotPossible) {
        refusals = endings.iter().map(|e| because(e, Refusal::not_possible_here)).collect();
    }
    let Some(last) = refusals.pop() else { return Ok(Exit::Done) };
    for refusal in refusals {
        failure::tell(&refusal.to_string());
    }
    Err(last.into())
}

fn because(ending: &Ending<'_>, refuse: fn(String, String) -> Refusal) -> Refusal {
    let refusal = refuse(ending.name.to_owned(), ending.why.unwrap_or("no reason given").to_owned());
    match ending.would_help {
        Some(help) => refusal.would_help(help),
        None => refusal,
    }
}

fn request(args: &MeasureArgs, host: &Host, console: &Console) -> anyhow::Result<Request> {
    let experiments: Vec<_> = if args.experiments.is_empty() {
        catalogue::ALL.iter().collect()
    } else {
        catalogue::ALL.iter().filter(|e| args.experiments.iter().any(|n| n == e.name)).collect()
    };
    let cpu = match args.cpu {
        Some(cpu) => cpu,
        None => default_cpu()?,
    };
    let usable = usable(host);
    if let Some(asked) = args.max_memory.filter(|&m| m < LEAST_MEMORY) {
        return Err(Refusal::wrong_use(
            format!("--max-memory {asked}"),
            format!("at least {LEAST_MEMORY} are needed"),
        )
        .into());
    }
    if usable < LEAST_MEMORY {
        return Err(Refusal::not_possible_here("measure", format!("only {usable} of memory can be had"))
            .would_help(format!(
                "free some, or raise the limit of the control group or the shell (ulimit -v), to {LEAST_MEMORY} at least"
            ))
            .into());
    }
    let most = most_of(usable);
    if let Some(asked) = args.max_memory.filter(|&m| m > most) {
        console.remark(&format!(
            "--max-memory {asked}: {usable} can be had here, of which at most {most} are used"
        ));
    }
    let max_memory = args.max_memory.unwrap_or(Bytes(usable.0 / 2)).min(most);
    Ok(Request {
        experiments,
        effort: match (args.quick, args.thorough) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Thorough,
            _ => Effort::Normal,
        },
        cpu,
        seed: args.seed.unwrap_or_else(fresh_seed),
        max_memory,
        stop: Stop::on_signals(),
    })
}

/// What areas may take of it at most: a control group would kill us for what this program takes beside them.
fn most_of(usable: Bytes) -> Bytes {
    let beside = Bytes(usable.0.saturating_sub(BESIDE_AREAS.0));
    Bytes(usable.0 / 10 * 9).min(beside).max(Bytes(usable.0 / 2))
}

/// What areas may take: free memory, and no more addresses than the shell allows this process.
fn usable(host: &Host) -> Bytes {
    let memory = host.memory.usable().unwrap_or(Bytes::gib(1));
    match host.limits.address_space.value().flatten() {
        Some(limit) => memory.min(Bytes(limit.0.saturating_sub(ADDRESSES.0))),
        None => memory,
    }
}

/// Why `--format lat_mem_rd` has nothing to print.
fn no_curve(machine: &Machine) -> Refusal {
    let what = "--format lat_mem_rd";
    match &machine.experiments.latency {
        Some(outcome) => {
            Refusal::failed(what, outcome.why.clone().unwrap_or_else(|| "no point was resolved".to_owned()))
        }
        None => Refusal::failed(what, "stopped before the latency experiment"),
    }
}

/// The last CPU that may be used: the first one often serves interrupts.
fn default_cpu() -> anyhow::Result<usize> {
    let allowed = lab::pin::allowed().map_err(|error| refusal("measure", error.into()))?;
    allowed.last().copied().ok_or_else(|| anyhow::anyhow!("no CPU may be used"))
}

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed again.
    (now.as_nanos() as u64 ^ u64::from(std::process::id())) % 1_000_000_000
}

fn refusal(what: &str, refused: Refused) -> Refusal {
    let refusal = if refused.not_possible {
        Refusal::not_possible_here(what, refused.why)
    } else {
        Refusal::failed(what, refused.why)
    };
    match refused.would_help {
        Some(help) => refusal.would_help(help),
        None => refusal,
    }
}

/// The experiments' progress on this program's console.
struct Adapter<'a>(&'a mut dyn crate::progress::Progress);

impl experiments::Progress for Adapter<'_> {
    fn at(&mut self, what: &str, fraction: f64) {
        self.0.at(what, fraction);
    }

    fn line(&mut self, text: &str) {
        self.0.line(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_leave_room_for_the_program() {
        assert_eq!(most_of(Bytes::mib(1000)), Bytes::mib(900));
        assert_eq!(most_of(Bytes::mib(40)), Bytes::mib(24));
        assert_eq!(most_of(Bytes::mib(18)), Bytes::mib(9));
    }

    fn code(statuses: &[Status], interrupted: bool) -> (Exit, String) {
        let endings: Vec<Ending<'_>> = statuses
            .iter()
            .map(|&status| Ending { name: "rob", status, why: Some("no memory"), would_help: Some("more") })
            .collect();
        match ended(&endings, interrupted) {
            Ok(exit) => (exit, String::new()),
            Err(error) => (error.downcast_ref::<Refusal>().unwrap().code, error.to_string()),
        }
    }

    #[test]
    fn the_exit_code_tells_what_became_of_the_experiments() {
        use Status::{Done, Failed, NotPossible};
        for interrupted in [false, true] {
            assert_eq!(code(&[Done, NotPossible], interrupted).0, Exit::Done);
            let told = (Exit::Failed, "rob: no memory; more".to_owned());
            assert_eq!(code(&[Done, Failed, NotPossible], interrupted), told);
        }
        assert_eq!(code(&[NotPossible, NotPossible], false).0, Exit::NotPossibleHere);
        assert_eq!(code(&[NotPossible], true).0, Exit::Done, "others might have been possible");
    }
}
