//! `gleaner harvest`: runs a program as it is, and others in the time it waits for memory.

mod args;
mod ended;
mod explain;
mod live;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::threads;
use ::harvest::find::linked::Wanted;
use ::harvest::find::program::ProgramError;
use ::harvest::launch::{self, Inherited, LaunchError};
use ::harvest::plan::prices;
use ::harvest::plan::{Asked, Priors, Wishes};
use ::harvest::rewrite::TwinsError;
use ::harvest::rewrite::cache::Cache;
use ::harvest::session::{self, Cast, Original, Prepared, Rewriters, SessionError};
pub(crate) use args::HarvestArgs;
use records::machine::Machine;
use records::plan::{Plan, Prices};
use records::{Document, ReadError};
use std::path::Path;

pub(crate) fn run(args: &HarvestArgs, console: &Console) -> anyhow::Result<Exit> {
    refuse_what_is_not_there(args, console)?;
    crate::room::look_for_harvest()?;
    let (mut cast, _outputs) = args.cast()?;
    cast.check().map_err(|e| refused(&e.into()))?;
    let wanted = args.libraries();
    let left_alone = cast.with_libraries(&wanted).map_err(|e| refused(&e))?;
    let home: Option<Vec<u32>> = args.home_cpus.as_ref().map(|cpus| cpus.iter().collect());
    launch::check_home(home.as_deref().unwrap_or_default()).map_err(|e| refused(&e.into()))?;
    if !args.dry_run {
        launch::check_host().map_err(|e| refused(&e.into()))?;
    }
    let (mut prepared, cache) = threads::shared(|| prepare(args, cast, console))?;
    prepared.left_alone.splice(..0, left_alone);
    // Who wants as many as can be need not hear each time which cannot.
    if wanted == Wanted::All && !args.dry_run {
        prepared.left_alone.retain(|left| left.is_news);
    }
    if args.dry_run {
        let document = Document::now(prepared.plan.clone());
        if let Some(path) = &args.record {
            crate::save::record(path, &document)?;
        }
        console.text(&explain::plan(&document.body, &prepared.left_alone))?;
        console.document(&document)?;
        return Ok(Exit::Done);
    }
    let mut live = live::Live::open(args.live);
    let begin = lab::inherited::at_start();
    let inherited = Inherited { ignored: begin.ignored, blocked: begin.blocked, closed: begin.closed };
    let (run, outcome) =
        prepared.run(home, inherited, |snapshot| live.show(snapshot)).map_err(|e| refused(&e))?;
    live.close();
    let document = Document::now(run);
    for line in ended::troubles(&document.body) {
        console.remark(&format!("gleaner: {line}"));
    }
    if args.live {
        console.remark(ended::summary(&document.body).trim_end());
    }
    // What is sent from now on is meant for nobody else: a record may have to wait for whoever reads it.
    lab::stop::Stop::on_signals();
    // The primary's end counts, whatever becomes of the record.
    let kept = args.record.as_deref().map_or(Ok(()), |path| crate::save::record(path, &document));
    if let Err(refusal) = kept {
        crate::failure::tell(&refusal.to_string());
    }
    drop((prepared, cache));
    std::process::exit(::harvest::end_like(outcome.primary))
}

fn prepare(args: &HarvestArgs, cast: Cast, console: &Console) -> anyhow::Result<(Prepared, Cache)> {
    let cache = cache(args, console)?;
    let originals;
    let (plan, mut rewriters) = if let Some(path) = &args.plan {
        let plan = records::read::<Plan>(path)?.body;
        session::check_plan(&plan, &cast).map_err(|e| refused(&e))?;
        (plan, Rewriters::default())
    } else {
        originals = session::read(&cast).map_err(|e| refused(&e))?;
        make_plan(args, &cast, &originals, &cache)?
    };
    // What cannot be kept can still be run.
    let (made, cache) = match session::make(&plan, &cast, &cache, &mut rewriters) {
        Err(SessionError::Twins(TwinsError::Cache(why))) if is_the_folders(&why) && !cache.is_temporary() => {
            let cache = for_this_run(&why, console)?;
            (session::make(&plan, &cast, &cache, &mut rewriters), cache)
        }
        made => (made, cache),
    };
    Ok((Prepared::of(plan, cast, made.map_err(|e| refused(&e))?), cache))
}

fn refuse_what_is_not_there(args: &HarvestArgs, console: &Console) -> anyhow::Result<()> {
    if args.siblings && args.has_scavengers() {
        let why = "a program's threads are each other's guests, or others are its guests, not both";
        return Err(Refusal::wrong_use("--siblings", why)
            .would_help("leave out --siblings, or the scavengers")
            .into());
    }
    if console.json() && !args.dry_run {
        return Err(Refusal::wrong_use("--json", "standard output is the primary's")
            .would_help("use --record FILE")
            .into());
    }
    if let Some(path) = &args.record {
        if path.as_os_str() == "-" && !args.dry_run {
            return Err(Refusal::wrong_use("--record -", "standard output is the primary's").into());
        }
        crate::save::check(path)?;
    }
    Ok(())
}

fn make_plan<'f>(
    args: &HarvestArgs,
    cast: &Cast,
    originals: &'f [Original],
    cache: &Cache,
) -> anyhow::Result<(Plan, Rewriters<'f>)> {
    let wishes = Wishes {
        choice: args.choose.into(),
        coalesce: !args.no_coalescing,
        least_gain: args.least_gain,
        most_sites: args.most_sites,
        spins: !args.no_spins,
        excluded: args.exclude.iter().map(|address| address.0).collect(),
        explained: args.dry_run,
        without: args.left_out(),
        asked: Asked {
            scavengers: cast.scavengers.len() as u32,
            siblings: cast.siblings,
            ring: args.ring,
            max_slowdown: args.max_slowdown.0,
            max_absence_seconds: args.max_absence.0,
        },
    };
    let prices = prices_of(args)?;
    Ok(session::plan(originals, &prices, &Priors, &wishes, cache).map_err(|e| refused(&e))?)
}

/// By the machine record that was named, or the one in the usual place, or none.
fn prices_of(args: &HarvestArgs) -> Result<Prices, ReadError> {
    let read = |path: &Path| Ok(prices::from_machine(path, &records::read::<Machine>(path)?));
    if let Some(path) = &args.machine {
        return read(path);
    }
    Ok(match prices::usual_place().filter(|path| path.exists()) {
        Some(path) => read(&path).unwrap_or_else(|error| prices::assumed(error.to_string())),
        None => prices::assumed(match prices::usual_place() {
            Some(path) => format!("no machine record in {}", path.display()),
            None => "no place for a machine record".to_owned(),
        }),
    })
}

fn cache(args: &HarvestArgs, console: &Console) -> Result<Cache, Refusal> {
    if args.no_cache {
        return temporary_cache();
    }
    Cache::of_user().or_else(|why| for_this_run(&why, console))
}

fn temporary_cache() -> Result<Cache, Refusal> {
    Cache::temporary().map_err(|e| Refusal::not_possible_here("rewritten files", records::plain(&e)))
}

/// Whether another folder may help: not where it is this process that may have no more.
fn is_the_folders(why: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    matches!(
        why.kind(),
        Kind::StorageFull
            | Kind::QuotaExceeded
            | Kind::PermissionDenied
            | Kind::ReadOnlyFilesystem
            | Kind::IsADirectory
            | Kind::NotADirectory
    )
}

/// In place of the user's cache, which is not to be had.
fn for_this_run(why: &std::io::Error, console: &Console) -> Result<Cache, Refusal> {
    let why = records::plain(why);
    console.remark(&format!("gleaner: no cache of rewritten files: {why}; made anew for this run"));
    temporary_cache()
}

/// Wrong use, or not possible here, or failed.
fn refused(error: &SessionError) -> Refusal {
    let text = error.to_string();
    let (what, why) = text.split_once(": ").unwrap_or(("harvest", &text));
    match error {
        SessionError::Twins(TwinsError::Cache(limit)) | SessionError::Launch(LaunchError::Memfd(limit))
            if limit.kind() == std::io::ErrorKind::FileTooLarge =>
        {
            Refusal::not_possible_here(what, why).would_help("files may not be that long (ulimit -f)")
        }
        SessionError::Program(
            ProgramError::StaticPrimary(_)
            | ProgramError::OriginLibraries(_)
            | ProgramError::SetId(_)
            | ProgramError::Capabilities(_),
        )
        | SessionError::Twins(TwinsError::Refused { .. })
        | SessionError::Launch(
            LaunchError::Memfd(_)
            | LaunchError::NoProc
            | LaunchError::Forbidden(..)
            | LaunchError::NoPidfd(_)
            | LaunchError::NoDescriptor(_)
            | LaunchError::NoProcess(_),
        ) => Refusal::not_possible_here(what, why),
        SessionError::Twins(TwinsError::Unproven { .. } | TwinsError::Cache(_))
        | SessionError::Launch(LaunchError::Wait(_)) => Refusal::failed(what, why),
        _ => Refusal::wrong_use(what, why),
    }
}
