//! Several records of one machine: how much its runs differ is part of the interval.

use super::result::{LevelPart, Part, Prediction};
use units::{Estimate, Quantity, Unit, quantile_sorted};

/// One prediction of those by several runs: the median run, and an interval that spans all of
/// theirs. `None` if there are none.
pub fn over_runs(all: &[Prediction]) -> Option<Prediction> {
    let mut first = all.first()?.clone();
    if all.len() == 1 {
        return Some(first);
    }
    first.time = spanned(all.iter().map(|one| &one.time));
    first.per_access = spanned(all.iter().map(|one| &one.per_access));
    first.levels = levels(&all.iter().map(|one| &one.levels[..]).collect::<Vec<_>>());
    for (place, part) in first.parts.iter_mut().enumerate() {
        let same: Vec<&Part> = all.iter().filter_map(|one| one.parts.get(place)).collect();
        part.time = spanned(same.iter().map(|part| &part.time));
        part.per_access = spanned(same.iter().map(|part| &part.per_access));
        part.levels = levels(&same.iter().map(|part| &part.levels[..]).collect::<Vec<_>>());
    }
    for remark in all[1..].iter().flat_map(|one| &one.remarks) {
        if !first.remarks.contains(remark) {
            first.remarks.push(remark.clone());
        }
    }
    let times: Vec<f64> = all.iter().filter_map(|one| one.time.value()).collect();
    let (least, most) =
        times.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &time| (least.min(time), most.max(time)));
    first.remarks.push(format!(
        "by {} runs, of which the slowest says {:.0}% more than the fastest; the interval spans them",
        all.len(),
        100.0 * (most / least - 1.0)
    ));
    Some(first)
}

fn spanned<'a>(all: impl Iterator<Item = &'a Quantity>) -> Quantity {
    let mut unit = Unit::Nanos;
    let resolved: Vec<Estimate> = all
        .filter_map(|quantity| {
            if let Quantity::Resolved { unit: own, .. } = quantity {
                unit = *own;
            }
            quantity.estimate()
        })
        .collect();
    if resolved.is_empty() {
        return Quantity::unresolved("no run resolved it");
    }
    Quantity::modelled(span(&resolved), unit)
}

fn span(all: &[Estimate]) -> Estimate {
    let mut values: Vec<f64> = all.iter().map(|one| one.value).collect();
    values.sort_by(f64::total_cmp);
    let lo = all.iter().map(|one| one.lo).fold(f64::INFINITY, f64::min);
    let hi = all.iter().map(|one| one.hi).fold(f64::NEG_INFINITY, f64::max);
    Estimate::new(quantile_sorted(&values, 0.5), lo, hi)
}

/// Levels by name; one that a run does not name serves nothing there.
fn levels(runs: &[&[LevelPart]]) -> Vec<LevelPart> {
    let mut names: Vec<&str> = Vec::new();
    for level in runs.iter().flat_map(|levels| levels.iter()) {
        if !names.contains(&level.level.as_str()) {
            names.push(&level.level);
        }
    }
    let of = |name: &str, part: fn(&LevelPart) -> &Quantity, unit: Unit| {
        let in_run = |levels: &&[LevelPart]| {
            let named = levels.iter().find(|level| level.level == name);
            named.and_then(|level| part(level).estimate()).unwrap_or(Estimate::exact(0.0))
        };
        Quantity::modelled(span(&runs.iter().map(in_run).collect::<Vec<_>>()), unit)
    };
    let one = |name: &&str| LevelPart {
        level: (*name).to_owned(),
        share: of(name, |level| &level.share, Unit::Ratio),
        time: of(name, |level| &level.time, Unit::Nanos),
    };
    names.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ns: f64, level: &str) -> Prediction {
        let nanos = |e: Estimate| Quantity::modelled(e, Unit::Nanos);
        let time = Estimate::new(ns, ns - 1.0, ns + 1.0);
        let share = Quantity::modelled(Estimate::exact(1.0), Unit::Ratio);
        let levels = vec![LevelPart { level: level.to_owned(), share, time: nanos(time) }];
        Prediction {
            time: nanos(time),
            accesses: 1.0,
            per_access: nanos(time),
            levels,
            parts: vec![],
            remarks: vec![],
        }
    }

    #[test]
    fn an_interval_spans_the_runs() {
        let runs = vec![run(100.0, "DRAM"), run(120.0, "DRAM"), run(105.0, "L3")];
        let all = over_runs(&runs).expect("three runs");
        let time = all.time.estimate().expect("a time");
        assert_eq!((time.lo, time.value, time.hi), (99.0, 105.0, 121.0));
        let l3 = all.levels.iter().find(|level| level.level == "L3").expect("named by one run");
        assert_eq!(l3.share.estimate(), Some(Estimate::new(0.0, 0.0, 1.0)));
        assert!(all.remarks[0].contains("20% more"), "{:?}", all.remarks);
    }
}
