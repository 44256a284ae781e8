//! `gleaner speed`: what makes a program faster without its source, by honest trials; kept for
//! `gleaner run`.

mod online;
mod settings;
mod summary;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::profile;
use crate::save;
use crate::times::time;
use clap::{Args, ValueEnum};
use lab::stop::Stop;
use records::Document;
use records::host::Host;
use records::recipe::{BuiltFile, Recipe, TriedProgram, Verdict};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::recipes;
use trials::{Asked, Found, Program, Served};

/// Find what makes a program faster without its source, prove it, and keep it
///
/// Profiles the program, then runs it again and again as it is and with changes that the profile
/// proposes: prefetches ahead of loads, huge pages, other ways to allocate, cache lines of their
/// own for what threads use, other CPUs. What is faster together is run once more against the
/// program as it is; only these runs decide. A change stays that gains 2% and more, and with which
/// the program ends, prints and writes the same. The program's file is never changed: gleaner run
/// starts it with what was kept.
///
/// Each run begins anew with the same arguments; standard input must be a file, or is empty. What
/// the runs print is compared and not shown; files that they write stay.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a command line")]
pub(crate) struct SpeedArgs {
    /// Let all runs together take this long [default: 3min, or 15 runs where these take longer;
    /// with --online and --pid 10s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    budget: Option<Duration>,

    /// Other arguments of the program, with which it must not get slower (several times)
    #[arg(long, value_name = "ARGS", value_parser = words)]
    with: Vec<Words>,

    /// Try changes though what the program prints differs from run to run
    #[arg(long)]
    any_output: bool,

    /// The program is a server: this command puts it under load, and what counts is the server's
    /// CPU time for it; the server is asked to end (SIGTERM) after each
    #[arg(long, value_name = "CMD", value_parser = words)]
    load: Option<Words>,

    /// Start the program once and switch prefetches on and off while it runs, for a server: what
    /// does more work for its CPU time stays on; ends with the program. Goes by the last profile
    /// that was taken of it, or --profile
    #[arg(long, conflicts_with_all = ["with", "any_output", "load", "show", "forget"])]
    online: bool,

    /// The same in this process, which gleaner run has started by a recipe with prefetches
    #[arg(long, value_name = "PID", conflicts_with_all = ["with", "any_output", "load", "show", "forget", "online", "command", "profile"])]
    pid: Option<u32>,

    /// With --online: the profile of the program [default: the last one of it with these arguments]
    #[arg(long, value_name = "FILE", requires = "online")]
    profile: Option<PathBuf>,

    /// With --online or --pid: count work by a number that this command prints, which grows with
    /// it [default: calls by which the program reads and writes]
    #[arg(long, value_name = "CMD", value_parser = words)]
    work: Option<Words>,

    /// Show what is kept of this program, or of all, and try nothing
    #[arg(long)]
    show: bool,

    /// With --show: what the recipe does as settings of this kind
    #[arg(long = "as", value_enum, value_name = "KIND", requires = "show")]
    as_kind: Option<Kind>,

    /// Take away what is kept of this program
    #[arg(long, conflicts_with_all = ["show", "with", "budget"])]
    forget: bool,

    /// Write the record to this file, too ('-' for standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The program, with its arguments
    #[arg(value_name = "CMD", required_unless_present_any = ["show", "pid"], trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Settings of which kind.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// Variables, a line each
    Env,
    /// Lines of a unit's [Service]
    Systemd,
    /// Options of docker run
    Docker,
    /// A script that starts the program so
    Shell,
}

/// Words of a command line.
#[derive(Clone, Debug)]
struct Words(Vec<OsString>);

fn words(text: &str) -> Result<Words, String> {
    let words = shell_words::split(text).map_err(|e| e.to_string())?;
    Ok(Words(words.into_iter().map(OsString::from).collect()))
}

pub(crate) fn run(args: &SpeedArgs, console: &Console) -> anyhow::Result<Exit> {
    if args.show {
        return show(args, console);
    }
    if let Some(process) = args.pid {
        return online::attach(args, process, console);
    }
    if args.online {
        return online::online(args, console);
    }
    let load = args.load.clone().map(|words| words.0).filter(|words| !words.is_empty());
    let program = Program { command: args.command.clone(), load };
    let file = file_of(&program)?;
    if args.forget {
        return forget(&file, console);
    }
    let console = &console.with_output(args.output.as_deref());
    if let Some(path) = args.output.as_deref().filter(|path| path.as_os_str() != "-") {
        save::check(path)?;
    }
    crate::limits::look_for_waiting()?;
    if program.load.is_none() {
        program.can_run_again().map_err(|e| profile::not_tried(&e))?;
    }
    let began = Instant::now();
    let host = host::read(Path::new("/"));
    let stop = Stop::on_signals();
    console.remark("profiling one run");
    let profile = match &program.load {
        Some(load) => under_load(&program, load, &host, stop)?,
        None => profile::of_command(&args.command, &host, stop)?,
    };
    let found = search(args, &program, &profile, &host, stop, console)?;
    let document = Document::now(recipe(&program, file, &host, found, began.elapsed()));
    let kept = keep(&document, console);
    let written = args.output.as_deref().map_or(Ok(()), |path| save::record(path, &document));
    console.text(&summary::text(&document.body, console.width()))?;
    console.document(&document)?;
    written?;
    kept?;
    Ok(exit_code(&document.body))
}

fn exit_code(recipe: &Recipe) -> Exit {
    match recipe.verdict {
        Verdict::Faster | Verdict::LeaveIt { .. } => Exit::Done,
        Verdict::NotResolved { .. } => Exit::Inconclusive,
    }
}

/// A profile of a server while it is under load.
fn under_load(
    program: &Program,
    load: &[OsString],
    host: &Host,
    stop: Stop,
) -> anyhow::Result<records::profile::Profile> {
    let name = || records::text_of(Path::new(&program.command[0]));
    let begun = Served::begin(program, load, &trials::Start::default());
    let served = begun.map_err(|e| Refusal::failed(name(), records::plain(&e)))?;
    let began = Instant::now();
    served.load().map_err(|e| Refusal::failed(name(), records::plain(&e)))?;
    let took = began.elapsed().max(Duration::from_millis(500));
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| served.load());
        let profile = profile::of_process(served.process(), took, host, stop);
        let _ = loading.join();
        profile
    })
}

fn search(
    args: &SpeedArgs,
    program: &Program,
    profile: &records::profile::Profile,
    host: &Host,
    stop: Stop,
    console: &Console,
) -> anyhow::Result<Found> {
    const BUDGET: Duration = Duration::from_secs(180);
    let asked = Asked {
        budget: args.budget.unwrap_or(BUDGET),
        is_budget_named: args.budget.is_some(),
        others: args.with.iter().map(|words| words.0.clone()).collect(),
        any_output: args.any_output,
        memory: host.memory.usable(),
    };
    let candidates = trials::candidates(profile, host);
    let mut told = |what: &str| console.remark(what);
    trials::search(program, &candidates, &asked, stop, &mut told).map_err(|e| profile::not_tried(&e).into())
}

fn recipe(program: &Program, file: BuiltFile, host: &Host, found: Found, took: Duration) -> Recipe {
    let command = program.command.iter().map(|word| records::text_of(word.as_ref())).collect();
    let load = program.load.iter().flatten().map(|word| records::text_of(word.as_ref())).collect();
    let processor = host.processor.name.get().cloned();
    Recipe {
        program: TriedProgram { command, file, load, counted: None },
        processor: processor.unwrap_or_else(|| "an unknown processor".to_owned()),
        files: trials::files(&found.settings),
        verdict: found.verdict,
        faster: found.faster,
        without: found.without,
        with: found.with,
        memory: found.memory,
        settings: found.settings,
        tried: found.tried,
        others: found.others,
        compared: found.compared,
        runs: found.runs + 1,
        seconds: took.as_secs_f64(),
    }
}

/// Keeps the recipe, in the place of an older one of this build. What is not resolved changes
/// nothing.
fn keep(document: &Document<Recipe>, console: &Console) -> anyhow::Result<()> {
    let recipe = &document.body;
    if matches!(recipe.verdict, Verdict::NotResolved { .. }) {
        if recipes::find(&recipe.program.file.build).is_some() {
            console.remark("the recipe that was kept before stays");
        }
        return Ok(());
    }
    recipes::keep(document, &|directory| trials::write(&recipe.settings, directory))
        .map(drop)
        .map_err(|why| Refusal::failed("the recipe is not kept", why).into())
}

fn file_of(program: &Program) -> Result<BuiltFile, Refusal> {
    let name =
        || records::text_of(Path::new(program.command.first().map_or("".as_ref(), OsString::as_os_str)));
    let Some(file) = program.file() else {
        return Err(Refusal::wrong_use(name(), "there is no such program"));
    };
    let built = file.canonicalize().and_then(|file| trials::built(&file));
    built.map_err(|e| Refusal::wrong_use(name(), records::plain(&e)))
}

fn forget(file: &BuiltFile, console: &Console) -> anyhow::Result<Exit> {
    let was_there = recipes::forget(&file.build).map_err(|e| crate::failure::unwritable(&*file.path, &e))?;
    let text = if was_there { "nothing is kept any more of" } else { "nothing was kept of" };
    console.text(&format!("{text} {}\n", file.path))?;
    Ok(Exit::Done)
}

fn show(args: &SpeedArgs, console: &Console) -> anyhow::Result<Exit> {
    let program = Program::of(args.command.clone());
    let mut kept = if args.command.is_empty() {
        recipes::all()
    } else {
        let file = file_of(&program)?;
        match recipes::find(&file.build) {
            Some(kept) => vec![kept],
            None if recipes::build_at(&file.path).is_some() => {
                let why = "it was built anew since its recipe was made";
                return Err(Refusal::wrong_use(file.path, why)
                    .would_help("gleaner speed -- CMD, once more")
                    .into());
            }
            None => {
                let why = "no recipe is kept for this build of it";
                return Err(Refusal::wrong_use(file.path, why).would_help("gleaner speed -- CMD").into());
            }
        }
    };
    if kept.is_empty() {
        console.text("no recipe is kept\n")?;
    }
    if let [one] = &mut kept[..] {
        if let Ok(file) = file_of(&program) {
            one.document.body.is_at(&file.path);
        }
    }
    for one in &kept {
        match args.as_kind {
            Some(kind) => console.text(&settings::text(kind, one, &program))?,
            None => console.text(&summary::text(&one.document.body, console.width()))?,
        }
        console.document(&one.document)?;
    }
    Ok(Exit::Done)
}
