//! What the model makes of the measured points: levels with sizes and costs, and how far off it is.

use super::shown;
use crate::figure::axis::{Numbers, Scale};
use crate::figure::plot::{Plot, Series};
use crate::parts::{Cell, Out, Table};
use crate::text::{escape, number, quantity, size};
use model::{Bend, Curve, Fit, FitWithCurves, FittedCurve, Of, fits_with_curves};
use records::machine::Machine;
use units::{Bytes, Estimate};

/// Points of the curve of loads: its figure above has them all.
const MOST_LOADS: usize = 32;
/// Points of one curve whose residuals are shown: enough to see where the model is off.
const MOST_RESIDUALS: usize = 12;
/// Curves whose residuals are shown, of the fits in turn: more are hard to tell apart.
const MOST_CURVES: usize = 6;

pub(super) fn section(machine: &Machine, out: &mut Out) {
    let (fits, bends) = (fits_with_curves(machine), model::bends(machine));
    if fits.is_empty() && bends.is_empty() {
        // The sections of latency and of windows say what is missing, and why.
        return;
    }
    out.section("model", "Levels, fitted");
    if fits.is_empty() {
        out.missing("Levels are not fitted: there are too few points of loads at random, and of windows.");
        lines(&bends, out);
        return;
    }
    out.say(
        "A model of levels that follow one another, each with a size and a cost, is fitted to the times of loads at \
         random and of windows. It knows nothing of what the host claims. A size stands only where both halves of \
         the areas show it.",
    );
    let sentences: Vec<String> = fits.iter().map(|found| sentence(&found.fit)).collect();
    out.list(&sentences);
    levels(&fits, out);
    loads(&fits, out);
    off(&fits, out);
    lines(&bends, out);
}

fn called(fit: &Fit) -> String {
    let what = match fit.of {
        Of::Windows => "windows",
        Of::Latency => "loads",
    };
    let vector = if fit.vectorised { ", vectors" } else { "" };
    format!("{what}, {} pages{vector}", fit.pages)
}

fn sentence(fit: &Fit) -> String {
    let judged = if fit.is_good() {
        ""
    } else {
        " These levels do not describe the curve well: do not predict by them."
    };
    let walks = fit.walks.as_ref().map_or_else(String::new, |walks| {
        format!(" Walks of the page tables add {} in the largest area.", quantity(&walks.cost))
    });
    format!(
        "<strong>{}</strong>: {} levels; off by {}% in the median and {}% at the 90th percentile, of areas that the \
         fit had not seen by {}% and {}%.{walks}{judged}",
        escape(&called(fit)),
        fit.levels.len(),
        percent(fit.residual.median),
        percent(fit.residual.p90),
        percent(fit.held_back.median),
        percent(fit.held_back.p90),
    )
}

fn levels(fits: &[FitWithCurves], out: &mut Out) {
    let head = ["fitted to", "level", "ends at", "a load, or a line", "and a window besides"];
    let mut table = Table::with_head("Levels of the model", &head);
    for found in fits {
        for (n, level) in found.fit.levels.iter().enumerate() {
            table.row(vec![
                Cell::text(&called(&found.fit)),
                Cell::count(n as u64 + 1),
                Cell::quantity(&level.size),
                Cell::quantity(&level.cost),
                level.per_window.as_ref().map_or_else(|| Cell::text(""), Cell::quantity),
            ]);
        }
    }
    out.table(&table);
}

/// Curves that are no levels: straight, with a bend or without.
fn lines(bends: &[Bend], out: &mut Out) {
    let head = ["curve", "start", "slope", "bend", "slope behind", "off by, median", "90%"];
    let mut table = Table::with_head("Straight lines, some with a bend", &head);
    "Slopes are nanoseconds for each access, each chain, or each GB/s of traffic."
        .clone_into(&mut table.note);
    for bend in bends {
        let curve = match bend.curve {
            Curve::Sequence => "accesses in sequence",
            Curve::Chains => "a step of chains side by side",
            Curve::Loaded => "latency beside traffic",
        };
        table.row(vec![
            Cell::text(&format!("{curve}, {}", bend.on)),
            Cell::quantity(&bend.start),
            Cell::quantity(&bend.slope),
            Cell::quantity(&bend.bend),
            Cell::quantity(&bend.slope_behind),
            Cell::sorted(format!("{}%", percent(bend.residual.median)), bend.residual.median),
            Cell::sorted(format!("{}%", percent(bend.residual.p90)), bend.residual.p90),
        ]);
    }
    out.table(&table);
}

fn percent(share: f64) -> String {
    number((1000.0 * share).round() / 10.0)
}

/// Loads as they were measured, and as the model has them.
fn loads(fits: &[FitWithCurves], out: &mut Out) {
    let of = |found: &FitWithCurves, name: &str, value: fn(&model::FittedPoint) -> Estimate| {
        let curve = found.curves.iter().flat_map(|curve| &curve.points);
        let points = curve.map(|point| (point.area.0 as f64, value(point))).collect();
        Series { name: format!("{name}, {} pages", found.fit.pages), points }
    };
    // The first kind of pages is that of ordinary programs; the other curves are told by residuals.
    let of_loads = fits.iter().filter(|found| found.fit.of == Of::Latency).take(1);
    let series = of_loads.flat_map(|found| {
        [of(found, "measured", |point| point.measured), of(found, "model", |point| point.modelled)]
    });
    let figure = Plot {
        title: "Loads at random, as measured and by the model".to_owned(),
        x: ("memory that is read".to_owned(), Scale::Log, Numbers::Bytes),
        y: ("time of a load (ns)".to_owned(), Scale::Log),
        series: series.collect(),
        marks: Vec::new(),
    };
    let differs = "a cache that others use has no sharp end, which steps cannot show.";
    if !figure.series.is_empty() {
        shown(out, "model", &figure.prepared_up_to(MOST_LOADS), differs);
    }
}

/// How far the points lie from the model.
fn off(fits: &[FitWithCurves], out: &mut Out) {
    // One curve of each fit, then another one of each, so that none is left out.
    let most = fits.iter().map(|found| found.curves.len()).max().unwrap_or(0);
    let of_each =
        (0..most).flat_map(|n| fits.iter().filter_map(move |found| Some((found, found.curves.get(n)?))));
    let series = of_each.map(|(found, curve)| Series {
        name: format!("{}{}", called(&found.fit), window(curve.window)),
        points: residuals(curve),
    });
    let figure = Plot {
        title: "How far each point lies from the model".to_owned(),
        x: ("area".to_owned(), Scale::Log, Numbers::Bytes),
        y: ("longer than the model says (%)".to_owned(), Scale::Linear),
        series: series.take(MOST_CURVES).collect(),
        marks: Vec::new(),
    };
    let differs = "bands are those of measured points; what stays outside them in one place is something that the \
                   model lacks.";
    shown(out, "model-residuals", &figure.prepared_up_to(MOST_RESIDUALS), differs);
}

fn window(window: Option<Bytes>) -> String {
    window.map_or_else(String::new, |window| format!(" of {}", size(window.0 as f64)))
}

fn residuals(curve: &FittedCurve) -> Vec<(f64, Estimate)> {
    let modelled = curve.points.iter().filter(|point| point.modelled.value > 0.0);
    let longer = |point: &model::FittedPoint| {
        let percent = |ns: f64| 100.0 * (ns / point.modelled.value - 1.0);
        let Estimate { value, lo, hi } = point.measured;
        (point.area.0 as f64, Estimate::new(percent(value), percent(lo), percent(hi)))
    };
    modelled.map(longer).collect()
}
