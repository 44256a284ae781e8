//! `gleaner measure`: runs experiments and writes what they found.

mod dry_run;
pub(crate) mod repeat;

use crate::console::Console;
use crate::failure::{self, Exit, OutputError, Refusal};
use crate::results::lat_mem_rd;
use crate::{cpu, csv, live, save, summary};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use experiments::choices::{self, CpuChoice, LEAST_MEMORY, MemoryRefused};
use experiments::stride_choice::StrideChoice;
use experiments::{Refused, Request, catalogue};
use lab::stop::Stop;
use records::Document;
use records::host::Host;
use records::machine::{Effort, Ending, Machine, Status};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use store::machine_record::{self, Kept};
use units::Bytes;

/// The experiments by name, in the order in which they run, each with a line on what it finds.
fn experiment_values() -> Vec<PossibleValue> {
    let help = |entry: &catalogue::Entry| match entry.needs {
        Some(needs) => format!("{} (needs {needs})", entry.about),
        None => entry.about.to_owned(),
    };
    catalogue::ALL.iter().map(|entry| PossibleValue::new(entry.name).help(help(entry))).collect()
}

/// Measure this machine: latency and size of each cache level, TLBs, memory-level parallelism,
/// bandwidth and more
///
/// Without -o or --json the record goes to ~/.cache/gleaner/machine.json, where
/// 'gleaner harvest' looks for it, if it has levels of caches and memory. It replaces an older
/// record there, unless this run was stopped or lacks figures that 'gleaner harvest' needs and the
/// older record has.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// What to measure [default: everything]
    #[arg(value_name = "EXPERIMENT", value_parser = PossibleValuesParser::new(experiment_values()))]
    pub(crate) experiments: Vec<String>,

    /// Measure fewer points, and each less often: everything takes a minute
    #[arg(long, conflicts_with = "thorough")]
    pub(crate) quick: bool,

    /// Measure more points, and each more often, for narrower intervals: everything takes twenty
    /// minutes
    #[arg(long)]
    pub(crate) thorough: bool,

    /// Measure on this CPU [default: the last one that no other 'gleaner measure' uses]
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<usize>,

    /// Seed of the random choices, to repeat those of an earlier run (its record has the seed)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Also write each experiment's points as CSV into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) csv: Option<PathBuf>,

    /// Write the record to this file ('-' for standard output); a run that is stopped does not
    /// replace the record of a complete run, but writes NAME.interrupted.json beside it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Measure this number of times, for 'gleaner compare': -o names a directory, which gets a
    /// record for each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    /// Use no more memory than this, for example 512M
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_memory: Option<Bytes>,

    /// Strides of the stride experiment, as in 64,128,256: these, ascending, and no others
    #[arg(long = "stride", value_name = "BYTES", value_delimiter = ',')]
    pub(crate) strides: Vec<Bytes>,

    /// Sizes of the stride experiment's areas: one is the largest, and those that lat_mem_rd has
    /// below it are measured, too; of several, as in 1M,64M, these and no others
    #[arg(long = "size", value_name = "SIZE", value_delimiter = ',')]
    pub(crate) sizes: Vec<Bytes>,

    /// Say what would be measured, where, how long it takes and how much memory it may use, and
    /// measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl MeasureArgs {
    /// These experiments, and no choice beyond that.
    pub(crate) fn only(experiments: &[&str]) -> Self {
        let known = |name: &&str| catalogue::ALL.iter().any(|entry| entry.name == *name);
        debug_assert!(experiments.iter().all(known), "{experiments:?}");
        Self {
            experiments: experiments.iter().map(|&name| name.to_owned()).collect(),
            quick: false,
            thorough: false,
            cpu: None,
            seed: None,
            format: Format::Text,
            csv: None,
            repeat: 1,
            output: None,
            max_memory: None,
            strides: Vec::new(),
            sizes: Vec::new(),
            dry_run: false,
        }
    }

    fn measures(&self, experiment: &str) -> bool {
        self.experiments.is_empty() || self.experiments.iter().any(|asked| asked == experiment)
    }

    fn chooses_strides(&self) -> bool {
        !(self.strides.is_empty() && self.sizes.is_empty())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A summary
    Text,
    /// Two columns, as lmbench's lat_mem_rd prints them: size in MB and latency in ns; of the
    /// stride experiment for each stride, if latency is not measured or strides or sizes are chosen
    #[value(name = "lat_mem_rd")]
    LatMemRd,
    /// Every point of every experiment
    Csv,
}

pub(crate) fn run(args: &MeasureArgs, console: &Console) -> anyhow::Result<Exit> {
    if args.dry_run {
        return dry_run::run(args, console);
    }
    if args.repeat > 1 {
        return repeat::run(args, console);
    }
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
    if args.format == Format::LatMemRd && !(args.measures("latency") || args.measures("stride")) {
        let why = "needs the latency or the stride experiment";
        return Err(Refusal::wrong_use("--format lat_mem_rd", why).into());
    }
    let machine = measured(args, 0, console)?;
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
    // Files first, for the reader of the text may leave; the text even if they fail, for it may be
    // all that remains.
    let kept = keep(args, output.as_deref(), console, &document);
    let told = tell(args, console, &document);
    kept?;
    told.map_err(|error| rescued(args, error, &document))?;
    if let (Some(asked), Some(path)) = (&args.output, &output) {
        let other = if path == asked { String::new() } else { format!("; {} is unchanged", asked.display()) };
        console.remark(&format!("wrote {}{other}", path.display()));
    }
    if args.output.is_none() && !console.json() {
        for_harvest(&document, console);
    }
    let exit = ended(&catalogue::endings(&document.body.experiments), interrupted)?;
    Ok(if interrupted { Exit::Failed } else { exit })
}

/// Runs the experiments, and shows how far they are. Of several runs the `nth`, from 0, has other
/// random choices: those that repeat would hide what they change.
pub(crate) fn measured(args: &MeasureArgs, nth: u32, console: &Console) -> anyhow::Result<Machine> {
    let host = live::host();
    let (mut request, _claim) = request(args, &host, console)?;
    request.seed = request.seed.wrapping_add(u64::from(nth));
    let mut progress = console.progress();
    let machine = experiments::measure(&request, &host, progress.as_mut())
        .map_err(|refused| refusal("measure", &refused))?;
    progress.finish();
    Ok(machine)
}

/// Leaves the record where a harvest looks for it, and says so. A run does not fail because that
/// place is not to be had.
fn for_harvest(document: &Document<Machine>, console: &Console) {
    console.remark(&match machine_record::keep(document) {
        Kept::Written(path) => format!("wrote {}, which gleaner harvest uses", path.display()),
        Kept::Older(path, why) => {
            format!("{} is unchanged, as {why}; -o FILE writes this record elsewhere", path.display())
        }
        Kept::Useless(why) => {
            format!("no record is left for gleaner harvest: {why}; -o FILE writes this record")
        }
        Kept::Nowhere(why) => format!("no record is left for gleaner harvest: {why}; -o FILE writes one"),
    });
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
            console.text(&summary::of(&document.body, console.colour(), console.width()))?;
        }
        Format::LatMemRd => {
            let machine = &document.body;
            let of_strides = args.chooses_strides() || !args.measures("latency");
            let columns =
                if of_strides { lat_mem_rd::of_strides(machine) } else { lat_mem_rd::of_latency(machine) };
            console.text(&columns.ok_or_else(|| no_curve(machine, of_strides))?)?;
        }
        Format::Csv => {
            for (name, table) in csv::of(&document.body) {
                console.text(&format!("# {name}\n{table}"))?;
            }
        }
    }
    Ok(console.document(document)?)
}

/// A record that was neither read nor written to a file is kept, unless its reader closed the pipe.
fn rescued(args: &MeasureArgs, error: anyhow::Error, document: &Document<Machine>) -> anyhow::Error {
    let in_a_file = args.output.as_ref().is_some_and(|path| path.as_os_str() != "-");
    match error.downcast_ref::<OutputError>() {
        Some(OutputError(why)) if !in_a_file && why.kind() != ErrorKind::BrokenPipe => {
            save::rescued(failure::unwritable("cannot write to standard output", why), document).into()
        }
        _ => error,
    }
}

/// The record tells what went wrong; scripts read the exit code, and people read a line.
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
    refuse(ending.name.to_owned(), ending.why.unwrap_or("no reason given").to_owned()).helped_by(ending)
}

/// What is to be measured; and the CPU, which stays claimed while the choice lives.
pub(crate) fn request(
    args: &MeasureArgs,
    host: &Host,
    console: &Console,
) -> anyhow::Result<(Request, CpuChoice)> {
    if args.chooses_strides() && !args.measures("stride") {
        let option = if args.strides.is_empty() { "--size" } else { "--stride" };
        return Err(Refusal::wrong_use(option, "needs the stride experiment").into());
    }
    let experiments: Vec<_> = if args.experiments.is_empty() {
        catalogue::ALL.iter().collect()
    } else {
        catalogue::ALL.iter().filter(|e| args.experiments.iter().any(|n| n == e.name)).collect()
    };
    let chosen = choices::cpu(args.cpu).map_err(|refused| refusal("measure", &refused))?;
    if chosen.claim.is_none() {
        console.remark(&format!(
            "another gleaner measures on CPU {}: blocks of both will be void; wait for its end, or choose another CPU with --cpu",
            chosen.cpu
        ));
    }
    let memory = choices::memory(args.max_memory, host).map_err(|why| match why {
        MemoryRefused::AskedForTooLittle => {
            let asked = args.max_memory.unwrap_or_default();
            Refusal::wrong_use(format!("--max-memory {asked}"), format!("at least {LEAST_MEMORY} are needed"))
        }
        MemoryRefused::TooLittleHere(usable) => {
            Refusal::not_possible_here("measure", format!("only {usable} of memory is available")).would_help(
                format!(
                    "free some, or raise the limit of the control group or the shell (ulimit -v), to {LEAST_MEMORY} at least"
                ),
            )
        }
    })?;
    if let Some(asked) = args.max_memory.filter(|&asked| asked > memory.most) {
        console.remark(&format!(
            "--max-memory {asked}: {} is available here, of which at most {} is used",
            memory.usable, memory.most
        ));
    }
    let strides = StrideChoice { strides: args.strides.clone(), sizes: args.sizes.clone() };
    strides.check(host, chosen.cpu, memory.areas).map_err(|(which, why)| {
        let option = if args.sizes.contains(&which) { "--size" } else { "--stride" };
        Refusal::wrong_use(format!("{option} {which}"), why)
    })?;
    let request = Request {
        experiments,
        effort: match (args.quick, args.thorough) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Thorough,
            _ => Effort::Normal,
        },
        seconds: None,
        cpu: chosen.cpu,
        seed: args.seed.unwrap_or_else(choices::seed),
        max_memory: memory.areas,
        strides,
        stop: Stop::on_signals(),
    };
    Ok((request, chosen))
}

/// Why `--format lat_mem_rd` has nothing to print.
fn no_curve(machine: &Machine, of_strides: bool) -> Refusal {
    let name = if of_strides { "stride" } else { "latency" };
    let endings = catalogue::endings(&machine.experiments);
    let why = match endings.iter().find(|ending| ending.name == name) {
        Some(ending) => ending.why.unwrap_or("no point was resolved").to_owned(),
        None => format!("stopped before the {name} experiment"),
    };
    Refusal::failed("--format lat_mem_rd", why)
}

pub(crate) fn refusal(what: &str, refused: &Refused) -> Refusal {
    let refuse = if refused.not_possible { Refusal::not_possible_here } else { Refusal::failed };
    refuse(what.to_owned(), refused.why.clone()).helped_by(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

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
