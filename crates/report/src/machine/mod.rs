//! The machine record on the page: the verdict first, then what each experiment shows.

mod bandwidth;
mod c2c;
mod chains;
mod fitted;
mod latency;
mod lookahead;
mod overview;
mod stride;
mod switches;
mod tlb;
mod windows;

use crate::figure::plot::Plot;
use crate::parts::{Figure, Out};
use crate::text::escape;
use records::machine::{Machine, Outcome, PagesRefused, Status};
use units::{Estimate, middle_sorted};

pub(crate) fn sections(machine: &Machine, out: &mut Out) {
    overview::section(machine, out);
    let all = &machine.experiments;
    if all.probe.is_some() {
        experiment(out, "probe", "Fleet probe", all.probe.as_ref(), overview::probe);
    }
    experiment(out, "latency", "Latency over size", all.latency.as_ref(), |result, out| {
        latency::figures(machine, result, out);
    });
    fitted::section(machine, out);
    experiment(out, "tlb", "Translation buffers (TLB)", all.tlb.as_ref(), tlb::figures);
    experiment(out, "mlp", "Misses that overlap", all.mlp.as_ref(), chains::figures);
    experiment(out, "rob", "How far the core looks ahead", all.rob.as_ref(), lookahead::figures);
    experiment(out, "stride", "Strides", all.stride.as_ref(), stride::strides);
    experiment(out, "prefetch", "Prefetchers", all.prefetch.as_ref(), stride::prefetchers);
    experiment(out, "threads", "Several threads", all.threads.as_ref(), bandwidth::threads);
    experiment(out, "smt", "Beside the core's other hyperthread", all.smt.as_ref(), bandwidth::sibling);
    experiment(out, "bandwidth", "Bandwidth and loaded latency", all.bandwidth.as_ref(), bandwidth::figures);
    experiment(out, "c2c", "From cache to cache", all.c2c.as_ref(), c2c::figures);
    experiment(out, "numa", "Memory on other nodes", all.numa.as_ref(), c2c::nodes);
    experiment(out, "windows", "Windows drawn at random", all.windows.as_ref(), windows::figures);
    experiment(out, "yield", "What a switch to other work costs", all.yields.as_ref(), switches::figures);
    experiment(out, "clock", "The clocks", all.clock.as_ref(), overview::clocks);
}

/// The section of an experiment, or why there is nothing in it.
fn experiment<T>(
    out: &mut Out,
    id: &str,
    title: &str,
    outcome: Option<&Outcome<T>>,
    figures: impl FnOnce(&T, &mut Out),
) {
    out.section(id, title);
    let Some(outcome) = outcome else {
        out.missing("Not measured in this run: it was not asked for.");
        return;
    };
    if outcome.status != Status::Done || outcome.result.is_none() {
        let begin = match outcome.status {
            Status::Done => "There is no result",
            Status::Interrupted => "Interrupted; what was measured until then is shown",
            Status::NotPossible => "Not possible on this host",
            Status::Failed => "The experiment failed",
        };
        let why = outcome.why.as_deref().map_or_else(String::new, |why| format!(": {}", escape(why)));
        let help = outcome.would_help.as_deref();
        let help = help.map_or_else(String::new, |help| format!(" What would help: {}.", escape(help)));
        out.missing(&format!("{begin}{why}.{help}"));
    }
    if let Some(result) = &outcome.result {
        figures(result, out);
    }
}

/// A plot with its words; where it has no points, that is said in its place.
fn plot(out: &mut Out, id: &'static str, plot: Plot, differs: &'static str) {
    shown(out, id, &plot.prepared(), differs);
}

fn shown(out: &mut Out, id: &'static str, plot: &Plot, differs: &'static str) {
    if plot.is_empty() {
        out.missing(&format!("{}: no point of it could be resolved.", escape(&plot.title)));
        return;
    }
    out.figure(Figure { id, title: plot.title.clone(), svg: plot.svg(), table: plot.table(), differs });
}

fn refused_pages(pages: &[PagesRefused], out: &mut Out) {
    for refused in pages {
        out.missing(&format!(
            "Pages of {}: not available: {}. What would help: {}.",
            escape(&refused.pages),
            escape(&refused.why),
            escape(&refused.would_help)
        ));
    }
}

fn notes(notes: &[String], out: &mut Out) {
    out.list(&notes.iter().map(|note| escape(note)).collect::<Vec<_>>());
}

/// The middle of several estimates of the same figure.
fn median(mut all: Vec<Estimate>) -> Option<Estimate> {
    all.sort_by(|a, b| a.value.total_cmp(&b.value));
    let middle = middle_sorted(&all)?;
    let lo = all.iter().map(|e| e.lo).fold(middle.lo, f64::min);
    let hi = all.iter().map(|e| e.hi).fold(middle.hi, f64::max);
    Some(Estimate { value: middle.value, lo, hi })
}
