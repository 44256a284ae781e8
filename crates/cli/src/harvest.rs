//! `gleaner harvest`: runs a program, and others in its memory stalls.

mod args;
mod costs;
mod ended;
mod explain;
mod live;
mod turns;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::plain::escaped_lines;
use crate::threads;
use ::harvest::launch;
use ::harvest::report;
use ::harvest::session::{self, FailureKind, SessionError};
pub(crate) use args::HarvestArgs;
use records::Document;

pub(crate) fn run(args: &HarvestArgs, console: &Console) -> anyhow::Result<Exit> {
    refuse_parked(args)?;
    refuse_contradictions(args, console)?;
    crate::limits::look_for_harvest()?;
    if let Some(line) = crate::limits::little_memory(&host::memory(std::path::Path::new("/"))) {
        console.remark(&line);
    }
    let participants = args.participants().map_err(|e| refused(&e))?;
    participants.check().map_err(|e| refused(&e.into()))?;
    let homes = args.homes();
    launch::check_home(homes.cpus.as_deref().unwrap_or_default()).map_err(|e| refused(&e.into()))?;
    if !args.dry_run {
        launch::check_host().map_err(|e| refused(&e.into()))?;
    }
    let request = args.request(&participants);
    let mut progress = console.progress();
    let prepared = threads::shared(|| {
        let mut measure_costs = || costs::measure_if_missing(console);
        session::prepare(&request, participants, progress.as_mut(), &mut measure_costs)
    });
    progress.finish();
    let prepared = prepared.map_err(|e| refused(&e))?;
    if args.dry_run {
        let document = Document::now(prepared.plan);
        if let Some(path) = &args.record {
            crate::save::record(path, &document)?;
        }
        let beside = prepared.beside.as_ref();
        console.text(&escaped_lines(&explain::plan(&document.body, &prepared.left_alone, beside)))?;
        console.document(&document)?;
        // The process ends: to free a large plan, load by load, would take half a second.
        std::mem::forget(document);
        return Ok(Exit::Done);
    }
    let mut live = live::Live::open(args.live);
    let inherited = lab::inherited::at_start();
    let mut turns = turns::Turns::new(args.explain_turns);
    let watch = |snapshot: &_| {
        live.show(snapshot);
        turns.watch(snapshot);
    };
    let outcome = prepared.run(homes, inherited, watch).map_err(|e| refused(&e))?;
    live.close();
    let document = Document::now(report::record(&prepared, &outcome));
    for line in ended::troubles(&document.body) {
        console.remark(&format!("gleaner: {line}"));
    }
    if args.explain_turns {
        console.remark(turns.told(&prepared).trim_end());
    }
    if !outcome.not_run {
        let summary = ended::summary(&document.body, &prepared.plan.prices, args.record.as_deref());
        console.remark(summary.trim_end());
    }
    // Signals sent from now on are for this process: a record may have to wait until its pipe is
    // read.
    lab::stop::Stop::on_signals();
    // The primary's end counts, whatever becomes of the record.
    let kept = args.record.as_deref().map_or(Ok(()), |path| crate::save::record(path, &document));
    if let Err(refusal) = kept {
        crate::failure::tell(&refusal.to_string());
    }
    drop(prepared);
    std::process::exit(::harvest::end_like(outcome.primary))
}

/// Ways to harvest that are parked: docs/decisions/parked-siblings-and-together.md and
/// docs/decisions/parked-busy-waits.md say what was measured.
fn refuse_parked(args: &HarvestArgs) -> Result<(), Refusal> {
    let why = "parked since version 0.1.0: programs lost more by it than they gained";
    if args.siblings {
        return Err(Refusal::wrong_use("--siblings", why).would_help("run the program without it"));
    }
    if args.together {
        return Err(Refusal::wrong_use("--together", why).would_help("run the programs side by side"));
    }
    if args.no_spins {
        let why = "parked since version 0.1.0: guests have no turns in busy-waits any more";
        return Err(Refusal::wrong_use("--no-spins", why).would_help("leave it out"));
    }
    Ok(())
}

fn refuse_contradictions(args: &HarvestArgs, console: &Console) -> anyhow::Result<()> {
    if console.json() && !args.dry_run {
        return Err(Refusal::wrong_use("--json", "standard output belongs to the primary")
            .would_help("use --record FILE")
            .into());
    }
    if let Some(path) = &args.record {
        if path.as_os_str() == "-" && !args.dry_run {
            return Err(Refusal::wrong_use("--record -", "standard output belongs to the primary").into());
        }
        crate::save::check(path)?;
    }
    Ok(())
}

/// Wrong use, or not possible here, or failed.
fn refused(error: &SessionError) -> Refusal {
    if let SessionError::Output { path, why } = error {
        return crate::failure::unwritable(format!("cannot write {path}"), why);
    }
    let text = error.to_string();
    let (what, why) = text.split_once(": ").unwrap_or(("harvest", &text));
    let refusal = match error.kind() {
        FailureKind::WrongUse => Refusal::wrong_use(what, why),
        FailureKind::NotPossibleHere => Refusal::not_possible_here(what, why),
        FailureKind::Failed => Refusal::failed(what, why),
    };
    refusal.helped_by(error)
}
