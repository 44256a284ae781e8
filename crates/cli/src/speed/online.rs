//! `gleaner speed --online` and `--pid`: prefetches that are switched in a program that runs.

use super::{SpeedArgs, file_of, keep, recipe, summary};
use crate::console::Console;
use crate::failure::{Exit, Refusal};
use ::harvest::find::program::Program as Found;
use lab::starter::{self, Terms};
use lab::stop::Stop;
use records::Document;
use records::profile::Profile;
use records::recipe::{Recipe, Setting, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use store::{kept_records, recipes};
use trials::{Counted, Program, Running, Switchable};

const BUDGET: Duration = Duration::from_secs(10);
/// Between two looks whether what is kept still pays.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
const LOOK_WHETHER_IT_ENDED: Duration = Duration::from_millis(100);

/// Starts the program with prefetches that can be switched, finds those to keep while it runs, and
/// ends with it.
pub(super) fn online(args: &SpeedArgs, console: &Console) -> anyhow::Result<Exit> {
    output_of_its_own(args)?;
    let program = Program::of(args.command.clone());
    let file = file_of(&program)?;
    let host = host::read(Path::new("/"));
    let profile = profile_of(args)?;
    let candidates = trials::candidates(&profile, &host);
    let name = || file.path.clone();
    let switchable = match Switchable::of(&program, &candidates) {
        Ok(switchable) => switchable,
        Err(why) => {
            return Err(Refusal::wrong_use(name(), format!("there is no prefetch to switch: {why}"))
                .would_help("gleaner speed tries what else there is, by whole runs")
                .into());
        }
    };
    let stop = Stop::on_signals();
    let began = Instant::now();
    let child =
        start(&program, switchable.start()).map_err(|why| Refusal::failed(name(), records::plain(&why)))?;
    let mut running = Started(child);
    let mut tuned = match switchable.begun(running.0.id(), counted(args), stop) {
        Ok(tuned) => tuned,
        Err(why) => {
            console.remark(&format!("it runs as it is: {why}"));
            return Ok(end_like(running.wait(stop, || {})?));
        }
    };
    let found = match tuned.search(args.budget.unwrap_or(BUDGET), &mut |what| console.remark(what)) {
        Ok(found) => found,
        Err(why) => {
            console.remark(&format!("it runs as it is: {why}"));
            return Ok(end_like(running.wait(stop, || {})?));
        }
    };
    let mut document = Document::now(recipe(&program, file.clone(), &host, found, began.elapsed()));
    document.body.program.counted = Some(tuned.counted());
    // What cannot be written is no reason for the program to end.
    for failed in
        [told(args, &document, console), keep(&document, console)].into_iter().filter_map(Result::err)
    {
        console.remark(&failed.to_string());
    }
    let settings = document.body.settings;
    let (mut is_on, mut looked) = (!settings.is_empty(), Instant::now());
    let status = running.wait(stop, || {
        if is_on && looked.elapsed() > LOOK_AGAIN {
            is_on = tuned.still_pays(&settings).unwrap_or(true);
            looked = Instant::now();
            if !is_on {
                console.remark("what was kept makes it slower now: it is switched off");
            }
        }
    })?;
    drop(tuned);
    Ok(end_like(status))
}

/// Ends as the program has.
fn end_like(status: ExitStatus) -> Exit {
    std::process::exit(::harvest::end_like(status))
}

/// Switches what a process that `gleaner run` started has of prefetches, and leaves on what pays.
pub(super) fn attach(args: &SpeedArgs, process: u32, console: &Console) -> anyhow::Result<Exit> {
    output_of_its_own(args)?;
    let (document, directory) = recipe_of(process)?;
    let stop = Stop::on_signals();
    let began = Instant::now();
    let settings: &[Setting] = &document.body.settings;
    let refused = |why: String| Refusal::wrong_use(format!("process {process}"), why);
    let mut running = Running::attach(process, settings, &directory, counted(args), stop).map_err(refused)?;
    let found = running
        .search(args.budget.unwrap_or(BUDGET), &mut |what| console.remark(what))
        .map_err(|why| Refusal::failed(format!("process {process}"), why.to_string()))?;
    let program = &document.body.program;
    let tried = Program::of(program.command.iter().map(OsString::from).collect());
    let host = host::read(Path::new("/"));
    let mut document = Document::now(recipe(&tried, program.file.clone(), &host, found, began.elapsed()));
    document.body.program.counted = Some(running.counted());
    told(args, &document, console)?;
    let says = match document.body.verdict {
        Verdict::Faster => "they stay on in this process",
        _ => {
            "they are off in this process; the kept recipe is as it was ('gleaner speed --forget -- CMD' takes it away)"
        }
    };
    console.remark(says);
    Ok(super::exit_code(&document.body))
}

fn output_of_its_own(args: &SpeedArgs) -> anyhow::Result<()> {
    match args.output.as_deref() {
        Some(path) if path.as_os_str() == "-" => {
            Err(Refusal::wrong_use("-o -", "standard output is the program's own; give the record a name")
                .into())
        }
        Some(path) => Ok(crate::save::check(path)?),
        None => Ok(()),
    }
}

fn told(args: &SpeedArgs, document: &Document<Recipe>, console: &Console) -> anyhow::Result<()> {
    // The program's standard output is its own.
    console.remark(summary::text(&document.body, console.width()).trim_end());
    if let Some(path) = args.output.as_deref() {
        crate::save::record(path, document)?;
    }
    Ok(())
}

fn counted(args: &SpeedArgs) -> Counted {
    args.work
        .clone()
        .filter(|words| !words.0.is_empty())
        .map_or(Counted::ReadsAndWrites, |words| Counted::Command(words.0))
}

/// The profile that the user names, or the one that was kept of the same program and arguments.
fn profile_of(args: &SpeedArgs) -> anyhow::Result<Profile> {
    if let Some(path) = &args.profile {
        return Ok(records::read::<Profile>(path)?.body);
    }
    let program = Found::find(&args.command, std::env::var_os("PATH").as_deref());
    let kept = program.ok().and_then(|program| kept_records::find::<Profile>(&program.key()?));
    let words: Vec<String> = args.command.iter().map(|word| records::text_of(word.as_ref())).collect();
    kept.map(|kept| kept.body).ok_or_else(|| {
        Refusal::wrong_use(words[0].clone(), "no profile of it with these arguments is kept")
            .would_help(format!(
                "'gleaner profile -- {0}' keeps one; or 'gleaner profile --pid PID --duration 10s -o profile.json' of one that \
                 runs, and --profile profile.json here",
                words.join(" ")
            ))
            .into()
    })
}

/// The recipe by which a process was started: by the file that it executes, or that it has mapped.
fn recipe_of(process: u32) -> anyhow::Result<(Document<Recipe>, PathBuf)> {
    let name = format!("process {process}");
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))
        .map_err(|why| Refusal::wrong_use(name.clone(), records::plain(&why)))?;
    let mut paths =
        maps.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| Path::new("/").join(path));
    let kept = paths.find_map(|path| recipes::of_file(&path));
    kept.map(|kept| (kept.document, kept.directory)).ok_or_else(|| {
        Refusal::wrong_use(name, "gleaner run did not start it with a prefetch, so nothing in it can be switched")
            .would_help(
                "'gleaner profile --pid' shows what it waits for; 'gleaner speed --online -- CMD' starts it so that prefetches can \
                 be switched, 'gleaner speed --load' tries all changes by starting it several times",
            )
            .into()
    })
}

fn start(program: &Program, start: &trials::Start) -> std::io::Result<Child> {
    let file = start.program.clone().or_else(|| program.file()).unwrap_or_default();
    let terms = Terms { inherited: lab::inherited::at_start(), is_beside: false, cpus: None };
    starter::command(&file, &program.command, &terms)
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .spawn()
}

/// A program that was started.
struct Started(Child);

impl Started {
    /// Until it has ended: passes on what this process is asked to, and looks at what goes on.
    fn wait(&mut self, stop: Stop, mut look: impl FnMut()) -> anyhow::Result<ExitStatus> {
        let mut is_told = false;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if stop.asked() && !is_told {
                let signal = stop.signal().and_then(Signal::from_named_raw).unwrap_or(Signal::TERM);
                let _ = kill_process(Pid::from_child(&self.0), signal);
                is_told = true;
            }
            if !is_told {
                look();
            }
            std::thread::sleep(LOOK_WHETHER_IT_ENDED);
        }
    }
}
