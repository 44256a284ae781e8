//! What the program waits for: the line, its data, the share of its time.

use super::machine::share;
use super::place::{JOIN_SOURCE, PROFILE};
use super::{Found, NotRun, Told, Tour};
use crate::figures::percent;
use ::tour::profiled::{self, Compared, LookUp, WaitedLine};
use records::profile::{Pattern, Profile};
use units::Quantity;

/// Orders of the profiled run: longer than others, for more samples.
const ORDERS: &str = "4000000";
/// Customers that a look-up reads in the mean: half of the eight that share a slot, and itself.
const READ: f64 = 5.0;

pub(super) fn command() -> String {
    format!("gleaner profile -o {PROFILE} -- ./join {ORDERS}")
}

pub(super) fn profiled(tour: &mut Tour<'_>) -> Found {
    let mut progress = tour.console.progress();
    progress.at("profiling the program", 0.0);
    tour.place.verb(&["profile", "-o", PROFILE, "--", "./join", ORDERS], tour.stop)?;
    progress.finish();
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
    if let Some(WaitedLine { line, stall }) = profiled::lines(&profile.loads, "join.c").first() {
        let stall = percent(stall);
        says.push(format!("Most of this wait, {stall} of the CPU time, is at one line, join.c:{line}:"));
        if let Some(source) = source(*line) {
            says.push(format!("  {source}"));
        }
    }
    let first = profile.loads.first();
    if let Some(data) = first.and_then(|load| load.object.as_ref()) {
        says.push(format!("What it reads there was allocated by {data}."));
    }
    if let Some(load) = profiled::longest(&profile.loads) {
        let chain = if load.pattern == Pattern::Chain {
            "; its address comes from the load before it, so the core cannot begin it earlier"
        } else {
            ""
        };
        says.push(format!("A probe timed the load that takes longest: {}{chain}.", load.latency.brief()));
    }
    let look_up = load.and_then(|load| LookUp::of(load, READ, &summary.cpu_time, orders));
    if let Some(LookUp { loads, taken, is }) = look_up {
        let compared = match is {
            Compared::AsLoads => "The two agree to within the interval",
            Compared::Less => {
                "That is less: the core begins the next order's loads while it waits for this one's"
            }
            Compared::More => {
                "That is more: the program also builds its table, and this machine was not as in step 1"
            }
        };
        says.push(format!(
            "A look-up reads five customers in the mean. Five loads one after the other, by the model of step 2: {}. An order \
             took {} of CPU time, all of the program counted. {compared}.",
            loads.brief(),
            taken.brief()
        ));
    }
    says
}

fn source(line: u32) -> Option<&'static str> {
    JOIN_SOURCE.lines().nth(line.checked_sub(1)? as usize).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_source_are_found() {
        let line = JOIN_SOURCE.lines().position(|line| line.contains("while (c->number")).unwrap() + 1;
        assert_eq!(source(line as u32), Some("while (c->number != number)"));
        assert_eq!(source(0), None);
    }
}
