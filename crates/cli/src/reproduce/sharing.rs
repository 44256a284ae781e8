//! The two problems of `vtune`: profiles before and after, and how much the change gains.

use super::programs::{Source, Workshop};
use ::reproduce::Evidence;
use ::reproduce::Missing;
use ::reproduce::programs::{PADDED, PADDED_FASTER, SHARED, TRIAD};
use ::reproduce::rounds::times_as_fast;
use lab::stop::Stop;
use units::Progress;

const SOURCES: &[Source] = &[
    ("pin.h", include_str!("../../../../programs/sharing/pin.h")),
    ("linear_regression.c", include_str!("../../../../programs/sharing/linear_regression.c")),
    ("triad.c", include_str!("../../../../programs/sharing/triad.c")),
];

/// Adds all that the claims need, or as much as can be had: then it says why no more.
pub(super) fn gather(
    evidence: &mut Evidence<'_>,
    quick: bool,
    stop: Stop,
    progress: &mut dyn Progress,
) -> Result<(), Missing> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err(Missing::Hardware("a second CPU: threads must run at the same time".to_owned()));
    }
    progress.at("compiling", 0.0);
    let workshop = Workshop::new(SOURCES, stop)?;
    workshop.compile("linear_regression.c", &["-O1", "-g"], SHARED)?;
    workshop.compile("linear_regression.c", &["-O1", "-g", "-DPAD=128"], PADDED)?;
    workshop.compile("triad.c", &["-O1", "-g"], TRIAD)?;
    for (part, name) in [SHARED, PADDED, TRIAD].into_iter().enumerate() {
        progress.at(&format!("profile of {name}"), 0.05 + 0.15 * part as f64);
        let program = format!("./{name}");
        let verb =
            ["profile", "-q", "--frequency", "4000", "--no-stacks", "-o", "profile.json", "--", &program];
        evidence.profiles.push((name, workshop.record(&verb, "profile.json")?));
    }
    let rounds = if quick { 3 } else { 9 };
    let mut pairs = Vec::new();
    for round in 0..rounds {
        progress.at("elapsed times", 0.5 + 0.5 * f64::from(round) / f64::from(rounds));
        // In turn first and second, so that whatever drifts meets both.
        let mut pair = [0.0; 2];
        for turn in [round % 2, 1 - round % 2] {
            let side = usize::from(turn == 1);
            pair[side] = workshop.seconds([SHARED, PADDED][side], &[])?;
        }
        pairs.push(pair);
    }
    evidence.figures.push((PADDED_FASTER, times_as_fast(&pairs)));
    Ok(())
}
