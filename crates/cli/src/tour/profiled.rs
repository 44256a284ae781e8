//! What the program waits for: the line, its data, the share of its time.

use super::machine::share;
use super::place::{JOIN_SOURCE, PROFILE};
use super::{Found, NotRun, Told, Tour};
use crate::figures::percent;
use records::profile::{Pattern, Profile, StallingLoad};
use units::{Estimate, Quantity, Unit};

/// Orders of the profiled run: longer than others, for more samples.
const ORDERS: &str = "4000000";
/// Customers whom a look-up visits in the mean: half of the eight that share a slot, and itself.
const VISITED: f64 = 5.0;

pub(super) fn command() -> String {
    format!("gleaner profile -o {PROFILE} -- ./join {ORDERS}")
}

pub(super) fn profiled(tour: &mut Tour<'_>) -> Found {
    tour.place.verb(&["profile", "-o", PROFILE, "--", "./join", ORDERS], tour.stop)?;
    let profile = records::read::<Profile>(&tour.place.at(PROFILE));
    let profile = profile.map_err(|error| NotRun::because(error.to_string()))?.body;
    let says = sentences(&profile, tour.predicted.as_ref());
    let summary = &profile.summary;
    let figures = vec![
        share("waiting for loads", &summary.memory_bound),
        share("computing", &summary.computing),
        share("in the kernel", &summary.in_kernel),
        share("waiting for stores", &summary.stores),
        share("not attributed", &summary.not_attributed),
    ];
    let figures_show = "Where the program's CPU time went".to_owned();
    Ok(Told { says, figures, figures_show, record: Some(PROFILE) })
}

fn sentences(profile: &Profile, load: Option<&Quantity>) -> Vec<String> {
    let summary = &profile.summary;
    let orders: f64 = ORDERS.parse().expect("a number");
    let mut says = vec![format!(
        "It waited for loads in {} of its CPU time, and computed in {}.",
        percent(&summary.memory_bound),
        percent(&summary.computing)
    )];
    let lines = by_line(&profile.loads);
    if let Some((line, stall)) = lines.first() {
        let stall = percent(&Quantity::measured(*stall, Unit::Ratio));
        says.push(format!("Most of this wait, {stall} of the CPU time, is at one line, join.c:{line}:"));
        if let Some(source) = source(*line) {
            says.push(format!("  {source}"));
        }
    }
    let first = profile.loads.first();
    if let Some(data) = first.and_then(|load| load.object.as_ref()) {
        says.push(format!("What it reads there was allocated by {data}."));
    }
    let longest = profile.loads.iter().filter(|load| load.latency.value().is_some());
    let longest = longest.max_by(|a, b| value(a).total_cmp(&value(b)));
    if let Some(load) = longest {
        let chain = if load.pattern == Pattern::Chain {
            "; its address comes from the load before it, so the core cannot begin it earlier"
        } else {
            ""
        };
        says.push(format!("A probe timed the load that takes longest: {}{chain}.", load.latency.brief()));
    }
    let predicted = load.and_then(Quantity::estimate);
    if let (Some(load), Some(cpu)) = (predicted, summary.cpu_time.estimate()) {
        let (five, order) = (load.scaled(VISITED), cpu.scaled(1e9 / orders));
        let compared = if order.overlaps(&five) {
            "The two agree to within the interval"
        } else if order.hi < five.lo {
            "That is less: the core begins the next order's loads while it waits for this one's"
        } else {
            "That is more: the program also builds its table, and this machine was not as in step 1"
        };
        says.push(format!(
            "A look-up visits five customers in the mean. Five loads one after the other, by the model of step 2: {}. An order \
             took {} of CPU time, all of the program counted. {compared}.",
            Quantity::modelled(five, Unit::Nanos).brief(),
            Quantity::measured(order, Unit::Nanos).brief()
        ));
    }
    says
}

fn value(load: &StallingLoad) -> f64 {
    load.latency.value().unwrap_or(0.0)
}

/// Lines of the join with the CPU time in which the core waited for their loads, most first.
fn by_line(loads: &[StallingLoad]) -> Vec<(u32, Estimate)> {
    let mut lines: Vec<(u32, Estimate)> = Vec::new();
    for load in loads {
        let (Some(file), Some(line), Some(stall)) = (&load.file, load.line, load.stall.estimate()) else {
            continue;
        };
        if !file.ends_with("join.c") {
            continue;
        }
        match lines.iter_mut().find(|(other, _)| *other == line) {
            Some((_, sum)) => *sum = both(*sum, stall),
            None => lines.push((line, stall)),
        }
    }
    lines.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    lines
}

/// The sum of two independent shares: half widths add in quadrature.
fn both(a: Estimate, b: Estimate) -> Estimate {
    let negative = Estimate { value: -b.value, lo: -b.hi, hi: -b.lo };
    a.minus(negative)
}

fn source(line: u32) -> Option<&'static str> {
    JOIN_SOURCE.lines().nth(line.checked_sub(1)? as usize).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_one_line_are_added_with_their_intervals() {
        let sum = both(Estimate::new(0.8, 0.77, 0.83), Estimate::new(0.1, 0.06, 0.14));
        assert!(
            (sum.value - 0.9).abs() < 1e-9 && (sum.lo - 0.85).abs() < 1e-9 && (sum.hi - 0.95).abs() < 1e-9
        );
    }

    #[test]
    fn lines_of_the_source_are_found() {
        let line = JOIN_SOURCE.lines().position(|line| line.contains("while (c->number")).unwrap() + 1;
        assert_eq!(source(line as u32), Some("while (c->number != number)"));
        assert_eq!(source(0), None);
    }
}
