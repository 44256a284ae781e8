//! The harvests of `msh`: a pointer chase as the primary, chases and scans as scavengers, all of
//! them on one CPU. A scavenger tells its steps in a file.

use super::programs::{Source, Workshop};
use ::reproduce::Evidence;
use ::reproduce::Missing;
use ::reproduce::programs::{
    CHASE, CONTRACT, LOADS_LOOSE, LOADS_OF_EIGHT, LOADS_OF_ONE, LOADS_TIGHT, SCAN, THROUGHPUT,
};
use lab::pin::Pinned;
use lab::rng::Rng;
use lab::stop::Stop;
use records::run::Run;
use units::{Quantity, Unit};

const SOURCES: &[Source] = &[
    ("common.h", include_str!("../../../../bench/programs/common.h")),
    ("chase.c", include_str!("../../../../bench/programs/chase.c")),
    ("scan.c", include_str!("../../../../bench/programs/scan.c")),
];

/// Of the primary and of each scavenger, in MiB: beyond the caches that a core has for itself. The
/// scavengers' is the document's own; they make their chains in the little time that is left to
/// them.
const AREA: &str = "64";
const SCAVENGER_AREA: &str = "16";

pub(super) fn gather(evidence: &mut Evidence<'_>, quick: bool, stop: Stop, at: &mut dyn FnMut(&str, f64)) {
    if let Err(missing) = gathered(evidence, quick, stop, at) {
        evidence.without = Some(missing);
    }
}

fn gathered(
    evidence: &mut Evidence<'_>,
    quick: bool,
    stop: Stop,
    at: &mut dyn FnMut(&str, f64),
) -> Result<(), Missing> {
    at("compiling", 0.0);
    let workshop = Workshop::new(SOURCES, stop)?;
    workshop.compile("chase.c", &["-O2"], "chase")?;
    workshop.compile("scan.c", &["-O2"], "scan")?;
    let loads = if quick { "40000000" } else { "100000000" };
    let rounds: u32 = if quick { 2 } else { 5 };
    let harvest = Harvest { workshop: &workshop, loads };

    at("profile of the chase", 0.02);
    let verb = ["profile", "-q", "-o", "profile.json", "--", "./chase", AREA, loads];
    evidence.profiles.push((CHASE, workshop.record(&verb, "profile.json")?));

    // The scavengers' own threads get the CPU only while the primary sleeps.
    let cpu = experiments::choices::cpu(None).map_err(|refused| Missing::NotRun(refused.why))?;
    let _pinned = Pinned::to(cpu.cpu).map_err(|error| Missing::NotRun(error.to_string()))?;
    at("a scan as scavenger", 0.1);
    let scan = format!("./scan 4 0 {}", workshop.at("steps-0").display());
    evidence.runs.push((SCAN, harvest.run("5%", &[scan])?));
    at("eight chases under the contract", 0.15);
    evidence.runs.push((CONTRACT, harvest.run("5%", &harvest.chases(8))?));

    let settings = [(LOADS_OF_ONE, 1, "50%"), (LOADS_OF_EIGHT, 8, "50%"), (LOADS_TIGHT, 8, "2%")];
    let mut found: Vec<Vec<f64>> = vec![Vec::new(); settings.len()];
    let mut throughput = Vec::new();
    for round in 0..rounds {
        for (number, &(name, scavengers, slowdown)) in settings.iter().enumerate() {
            let part = f64::from(round) + number as f64 / settings.len() as f64;
            at(name, 0.2 + 0.8 * part / f64::from(rounds));
            let run = harvest.run(slowdown, &harvest.chases(scavengers))?;
            let ratio = harvest.steps(scavengers) / harvest.loads();
            if name == LOADS_OF_EIGHT {
                let wall = run.wall.value().unwrap_or(f64::NAN);
                let alone = workshop.seconds("chase", &[AREA, loads])?;
                throughput.push((1.0 + ratio) * alone / wall);
            }
            found[number].push(ratio);
        }
    }
    let figure = |values: &[f64]| {
        if values.contains(&0.0) {
            return Quantity::unresolved("no scavenger came to its loop before the primary ended");
        }
        Quantity::measured(lab::stats::median_interval(values, &mut Rng::new(1)), Unit::Ratio)
    };
    for (&(name, ..), values) in settings.iter().zip(&found) {
        evidence.figures.push((name, figure(values)));
    }
    // The loosest bound of these runs is that of the eight.
    evidence.figures.push((LOADS_LOOSE, figure(&found[1])));
    evidence.figures.push((THROUGHPUT, figure(&throughput)));
    Ok(())
}

struct Harvest<'a> {
    workshop: &'a Workshop,
    /// Of the primary.
    loads: &'a str,
}

impl Harvest<'_> {
    fn chases(&self, count: u32) -> Vec<String> {
        let steps = |number| self.workshop.at(&format!("steps-{number}")).display().to_string();
        (0..count).map(|number| format!("./chase {SCAVENGER_AREA} 0 {}", steps(number))).collect()
    }

    fn run(&self, slowdown: &str, scavengers: &[String]) -> Result<Run, Missing> {
        for number in 0..scavengers.len() {
            let _ = std::fs::remove_file(self.workshop.at(&format!("steps-{number}"))); // none is there at first
        }
        let mut verb = vec!["harvest", "-q", "--max-slowdown", slowdown, "--record", "run.json"];
        for scavenger in scavengers {
            verb.extend(["--scavenger", scavenger]);
        }
        verb.extend(["--", "./chase", AREA, self.loads]);
        self.workshop.record(&verb, "run.json")
    }

    fn loads(&self) -> f64 {
        self.loads.parse().unwrap_or(f64::NAN)
    }

    /// Steps that the scavengers of the last run have taken: the first word of each one's file.
    fn steps(&self, scavengers: u32) -> f64 {
        let steps = |number| {
            let bytes = std::fs::read(self.workshop.at(&format!("steps-{number}"))).ok()?;
            Some(u64::from_le_bytes(*bytes.first_chunk::<8>()?) as f64)
        };
        // One that has not come to its loop has no file.
        (0..scavengers).filter_map(steps).sum()
    }
}
