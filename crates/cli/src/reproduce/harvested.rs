//! The harvests of `msh`: a pointer chase as the primary, chases and scans as scavengers.
//!
//! Each program shares a file of five words: the steps it has taken, whether it works already, two
//! that are not used here, and whether it has to pause. The primary pauses until all scavengers
//! have made their data and work; what counts is what they do from then on.

use super::programs::{Source, Workshop};
use ::reproduce::Evidence;
use ::reproduce::Missing;
use ::reproduce::programs::{CHASE, CONTRACT, LOADS_OF_EIGHT, LOADS_OF_ONE, LOADS_TIGHT, SCAN};
use ::reproduce::rounds::{ChaseRounds, ChaseRun};
use lab::pin::Pinned;
use lab::stop::Stop;
use records::run::Run;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::Progress;

const SOURCES: &[Source] = &[
    ("common.h", include_str!("../../../../bench/programs/common.h")),
    ("chase.c", include_str!("../../../../bench/programs/chase.c")),
    ("scan.c", include_str!("../../../../bench/programs/scan.c")),
];

/// Of each chase, in MiB, as in the document: beyond the caches that a core has for itself.
const AREA: &str = "16";

pub(super) fn gather(
    evidence: &mut Evidence<'_>,
    quick: bool,
    stop: Stop,
    progress: &mut dyn Progress,
) -> Result<(), Missing> {
    progress.at("compiling", 0.0);
    let workshop = Workshop::new(SOURCES, stop)?;
    workshop.compile("chase.c", &["-O2"], "chase")?;
    workshop.compile("scan.c", &["-O2"], "scan")?;
    let loads = if quick { "40000000" } else { "100000000" };
    let rounds: u32 = if quick { 3 } else { 5 };
    let harvest = Harvest { workshop: &workshop, loads };

    progress.at("profile of the chase", 0.02);
    let verb = ["profile", "-q", "-o", "profile.json", "--", "./chase", AREA, loads];
    evidence.profiles.push((CHASE, workshop.record(&verb, "profile.json")?));

    progress.at("a scan as scavenger", 0.1);
    let scan = format!("./scan 4 0 {}", workshop.at("steps-0").display());
    evidence.runs.push((SCAN, harvest.run("5%", &[scan])?.record));
    progress.at("eight chases under the contract", 0.15);
    evidence.runs.push((CONTRACT, harvest.run("5%", &harvest.chases(8))?.record));

    // On one CPU: the scavengers' own threads run only while the primary sleeps or lends it, so
    // that steps are steps aboard.
    let cpu = experiments::choices::cpu(None).map_err(|refused| Missing::NotRun(refused.why))?;
    let _pinned = Pinned::to(cpu.cpu).map_err(|error| Missing::NotRun(error.to_string()))?;
    let mut found = ChaseRounds::default();
    let ChaseRounds { one, eight, tight } = &mut found;
    let mut settings =
        [(LOADS_OF_ONE, 1, "50%", one), (LOADS_OF_EIGHT, 8, "50%", eight), (LOADS_TIGHT, 8, "10%", tight)];
    let count = settings.len() as f64;
    for round in 0..rounds {
        for (number, (name, scavengers, slowdown, runs)) in settings.iter_mut().enumerate() {
            let part = f64::from(round) + number as f64 / count;
            progress.at(name, 0.2 + 0.8 * part / f64::from(rounds));
            let run = harvest.run(slowdown, &harvest.chases(*scavengers))?;
            let is_paired = *name == LOADS_OF_EIGHT;
            let alone = is_paired.then(|| workshop.seconds("chase", &[AREA, loads])).transpose()?;
            runs.push(ChaseRun {
                loads: harvest.loads(),
                scavengers_loads: run.steps,
                seconds: run.seconds,
                alone_seconds: alone,
            });
        }
    }
    evidence.figures.extend(found.figures());
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
        (0..count).map(|number| format!("./chase {AREA} 0 {}", steps(number))).collect()
    }

    fn run(&self, slowdown: &str, scavengers: &[String]) -> Result<Harvested, Missing> {
        let files: Vec<PathBuf> =
            (0..scavengers.len()).map(|number| self.workshop.at(&format!("steps-{number}"))).collect();
        for file in &files {
            let _ = std::fs::remove_file(file); // none is there at first
        }
        let primary = self.workshop.at("primary");
        let paused: Vec<u8> = [0, 0, 0, 0, 1_u64].iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&primary, &paused).map_err(|error| Missing::NotRun(records::plain(&error)))?;
        let shared = primary.display().to_string();
        let mut verb = vec!["harvest", "-q", "--max-slowdown", slowdown, "--record", "run.json"];
        for scavenger in scavengers {
            verb.extend(["--scavenger", scavenger]);
        }
        verb.extend(["--", "./chase", AREA, self.loads, &shared]);

        let began = Instant::now();
        let mut released: Option<(Instant, f64)> = None;
        let mut release = || {
            let ready = files.iter().all(|file| word(file, WORKS) == Some(1));
            if released.is_none() && (ready || began.elapsed() > PATIENCE) {
                released = Some((Instant::now(), steps(&files)));
                let file = File::options().write(true).open(&primary);
                let _ = file.and_then(|file| file.write_all_at(&0_u64.to_le_bytes(), 8 * PAUSES as u64));
            }
        };
        let record = self.workshop.record_watched(&verb, "run.json", &mut release)?;
        let Some((since, before)) = released else {
            return Err(Missing::NotRun("the primary ended while it paused".to_owned()));
        };
        Ok(Harvested { record, steps: steps(&files) - before, seconds: since.elapsed().as_secs_f64() })
    }

    fn loads(&self) -> f64 {
        self.loads.parse().unwrap_or(f64::NAN)
    }
}

struct Harvested {
    record: Run,
    /// Of all scavengers, while the primary worked.
    steps: f64,
    seconds: f64,
}

/// Words of a program's file.
const STEPS: usize = 0;
const WORKS: usize = 1;
const PAUSES: usize = 4;
/// For scavengers to make their data.
const PATIENCE: Duration = Duration::from_secs(30);

/// `None` until the program has made its file.
fn word(file: &Path, number: usize) -> Option<u64> {
    let bytes = std::fs::read(file).ok()?;
    Some(u64::from_le_bytes(*bytes.get(8 * number..)?.first_chunk::<8>()?))
}

fn steps(files: &[PathBuf]) -> f64 {
    files.iter().filter_map(|file| word(file, STEPS)).map(|steps| steps as f64).sum()
}
