//! Memory-level parallelism: how many misses overlap, as the experiment was first published.

use super::{plot, refused_pages};
use crate::figure::axis::{Numbers, Scale};
use crate::figure::plot::{Mark, Plot, Series};
use crate::parts::{Cell, Out, Table};
use crate::text::{escape, number, quantity};
use records::machine::{Mlp, MlpOfPages, Shot};
use units::Quantity;

fn shots(name: String, shots: &[Shot]) -> Series {
    let points = shots.iter().filter_map(|s| Some((f64::from(s.accesses), s.time.ns.estimate()?)));
    Series { name, points: points.collect() }
}

fn called(kind: &MlpOfPages) -> String {
    format!("{} pages ({})", kind.pages.asked, kind.combination)
}

pub(super) fn figures(mlp: &Mlp, out: &mut Out) {
    let sentences: Vec<_> = mlp.kinds.iter().map(sentence).collect();
    out.list(&sentences);
    let Some(first) = mlp.kinds.first() else {
        out.missing("No kind of pages could be measured.");
        refused_pages(&mlp.pages_refused, out);
        return;
    };
    bursts(mlp, first, out);
    gaps(mlp, out);
    curves(first, out);
    areas(first, out);
    chains(mlp, out);
    line(mlp, out);
    table(mlp, out);
    refused_pages(&mlp.pages_refused, out);
}

fn sentence(kind: &MlpOfPages) -> String {
    let effective = match kind.effective.value() {
        Some(n) => format!("up to {} independent loads take less time than two in sequence", number(n)),
        None => format!("the number of loads that overlap is {}", quantity(&kind.effective)),
    };
    format!(
        "<strong>{}</strong>: {effective}; chains side by side keep {} under way on average, and more than {} of \
         them bring nothing.",
        escape(&called(kind)),
        quantity(&kind.sustained),
        quantity(&kind.saturation)
    )
}

fn bursts(mlp: &Mlp, first: &MlpOfPages, out: &mut Out) {
    let mut series: Vec<_> = mlp.kinds.iter().map(|k| shots(called(k), &k.bursts)).collect();
    let translated = mlp.kinds.iter().filter_map(|k| {
        Some(shots(format!("{} without page walks", called(k)), &k.translated.as_ref()?.bursts))
    });
    series.extend(translated);
    let title = match first.effective.value() {
        Some(n) => format!("{} misses cost less than two in sequence: they overlap", number(n)),
        None => "The time of N independent misses: where it is flat, they overlap".to_owned(),
    };
    let level = first.in_sequence.ns.value();
    let mark = level.map(|y| Mark::level(y, format!("two in sequence, {} pages", first.pages.asked)));
    let figure = Plot {
        title,
        x: ("independent accesses".to_owned(), Scale::Linear, Numbers::Whole),
        y: ("time of all of them (ns)".to_owned(), Scale::Linear),
        series,
        marks: mark.into_iter().collect(),
    };
    let differs = "times include reading the clock; small pages add a page walk to most misses, and few walks run at \
                   once; a guest walks twice.";
    plot(out, "mlp-bursts", figure, differs);
}

/// As many lines as a figure tells apart.
const SHOWN: [u32; 8] = [1, 2, 3, 4, 6, 8, 10, 11];

fn curves(kind: &MlpOfPages, out: &mut Out) {
    let shown = kind.curves.iter().filter(|curve| SHOWN.contains(&curve.accesses));
    let series: Vec<Series> = shown
        .map(|curve| Series {
            name: format!("N = {}", curve.accesses),
            points: curve
                .points
                .iter()
                .filter_map(|p| Some((f64::from(p.gap), p.time.ns.estimate()?)))
                .collect(),
        })
        .collect();
    if series.is_empty() {
        return;
    }
    let figure = Plot {
        title: "N misses, the last one behind fillers: beyond the cliff it waits".to_owned(),
        x: ("fillers before the last access".to_owned(), Scale::Log, Numbers::Whole),
        y: ("time of all of them (ns)".to_owned(), Scale::Linear),
        series,
        marks: Vec::new(),
    };
    let differs = "a core that holds more instructions has its cliff further to the right.";
    plot(out, "mlp-curves", figure, differs);
}

fn areas(kind: &MlpOfPages, out: &mut Out) {
    let of = |n: u32| {
        let points = kind.areas.iter().filter_map(|area| {
            let shot = area.bursts.iter().find(|shot| shot.accesses == n)?;
            Some((area.area.0 as f64, shot.time.ns.estimate()?))
        });
        Series { name: format!("N = {n}"), points: points.collect() }
    };
    let series: Vec<Series> = SHOWN.into_iter().map(of).filter(|series| !series.points.is_empty()).collect();
    if series.is_empty() {
        return;
    }
    let figure = Plot {
        title: "N accesses, by the size of the area that they are drawn from".to_owned(),
        x: ("area".to_owned(), Scale::Log, Numbers::Bytes),
        y: ("time of all of them (ns)".to_owned(), Scale::Log),
        series,
        marks: Vec::new(),
    };
    let differs = "times include reading the clock, which is most of a hit's; areas that are not walked before each \
                   block are in memory.";
    plot(out, "mlp-areas", figure, differs);
}

fn gaps(mlp: &Mlp, out: &mut Out) {
    let series = mlp.kinds.iter().map(|kind| {
        let points = kind.gaps.iter().filter_map(|g| Some((f64::from(g.gap), g.time.ns.estimate()?)));
        Series { name: called(kind), points: points.collect() }
    });
    let marks = mlp
        .kinds
        .iter()
        .take(2)
        .filter_map(|kind| Some(Mark::at(kind.cliff.value()?, format!("cliff ({})", kind.pages.asked))));
    let figure = Plot {
        title: "Two misses overlap until the no-operations between them fill the re-order buffer".to_owned(),
        x: ("no-operations between two misses".to_owned(), Scale::Linear, Numbers::Whole),
        y: ("time of the pair (ns)".to_owned(), Scale::Linear),
        series: series.collect(),
        marks: marks.collect(),
    };
    let differs = "cores that fuse no-operations put several into one entry, so the cliff lies further out than the \
                   buffer has entries; beyond it the time of the no-operations themselves shows.";
    plot(out, "mlp-gap", figure, differs);
}

fn chains(mlp: &Mlp, out: &mut Out) {
    let series = mlp.kinds.iter().map(|kind| {
        let points = kind.chains.iter().filter_map(|p| {
            let round = p.round.ns.estimate()?;
            Some((f64::from(p.chains), round.scaled(1.0 / f64::from(p.chains.max(1)))))
        });
        Series { name: called(kind), points: points.collect() }
    });
    let figure = Plot {
        title: "The cost of a miss falls with each chain beside it, until the buffers are full".to_owned(),
        x: ("chains side by side".to_owned(), Scale::Linear, Numbers::Whole),
        y: ("time per access (ns)".to_owned(), Scale::Log),
        series: series.collect(),
        marks: Vec::new(),
    };
    let differs = "the number of line fill buffers, and of page walks at once, ends it; neighbours that use the same \
                   memory end it earlier.";
    plot(out, "mlp-chains", figure, differs);
}

fn line(mlp: &Mlp, out: &mut Out) {
    let figure = Plot {
        title: "Loads in sequence: T(n) = n·M + C".to_owned(),
        x: ("dependent accesses".to_owned(), Scale::Linear, Numbers::Whole),
        y: ("time of all of them (ns)".to_owned(), Scale::Linear),
        series: mlp.kinds.iter().map(|k| shots(called(k), &k.sequence)).collect(),
        marks: Vec::new(),
    };
    plot(
        out,
        "mlp-sequence",
        figure,
        "the slope is one miss, M; the constant, C, is the clock and the fences.",
    );
}

fn table(mlp: &Mlp, out: &mut Out) {
    let head: Vec<String> = std::iter::once("what".to_owned()).chain(mlp.kinds.iter().map(called)).collect();
    let mut table = Table::new("Parallelism in figures");
    table.head = head;
    let none = Quantity::unresolved("not measured here");
    let mut row = |name: &str, of: &dyn Fn(&MlpOfPages) -> Quantity| {
        let cells = mlp.kinds.iter().map(|k| Cell::quantity(&of(k)));
        table.row(std::iter::once(Cell::text(name)).chain(cells).collect());
    };
    row("effective: fewer ns than two in sequence", &|k| k.effective.clone());
    row("the same, two made sequential by a gap", &|k| {
        k.effective_by_gap.clone().unwrap_or_else(|| none.clone())
    });
    row("the same, without page walks", &|k| {
        k.translated.as_ref().map_or_else(|| none.clone(), |t| t.effective.clone())
    });
    row("two in sequence", &|k| k.in_sequence.ns.clone());
    row("cliff of the gap", &|k| k.cliff.clone());
    row("one access in sequence, M", &|k| k.line.per_access.ns.clone());
    row("constant, C", &|k| k.line.constant.ns.clone());
    row("under way at once, on average", &|k| k.sustained.clone());
    row("per access at the highest throughput", &|k| k.per_access.ns.clone());
    out.table(&table);
}
