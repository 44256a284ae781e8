//! `harvest primary|scavenger FILE…`: rewrites each file with every load a site, checks the result,
//! and says how long that took. `REACH=usual` leaves out loads that hardly ever miss, `WIDTH` is
//! sse, avx or avx512, `KEEP` a folder to leave results in, `KNOWLEDGE=cautious` saves more,
//! `OPTIMISATIONS=none` everything.

use image::liveness::Knowledge;
use std::time::Instant;
use twin::{Bounds, LoadReach, Mode, Optimisations, SiteChoice, Sites, VectorWidth};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((mode, files)) = arguments.split_first() else {
        eprintln!("usage: harvest primary|scavenger FILE...");
        std::process::exit(2);
    };
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let reach = if is("REACH", "usual") { LoadReach::Usual } else { LoadReach::All };
    let width = match std::env::var("WIDTH").as_deref() {
        Ok("sse") => VectorWidth::Sse,
        Ok("avx") => VectorWidth::Avx,
        _ => VectorWidth::Avx512,
    };
    let knowledge = if is("KNOWLEDGE", "cautious") { Knowledge::Cautious } else { Knowledge::OfCallers };
    let sites = Sites {
        which: SiteChoice::EveryLoad(reach),
        width,
        knowledge,
        save_all_at: std::collections::BTreeSet::new(),
        optimisations: Optimisations { live_registers: !is("OPTIMISATIONS", "none"), ..Optimisations::ALL },
    };
    for file in files {
        let original = std::fs::read(file).expect("the file can be read");
        let mode = if mode == "primary" {
            Mode::Primary(&sites)
        } else {
            Mode::Scavenger(&sites, Bounds::default())
        };
        let begin = Instant::now();
        let rewritten = match twin::rewrite(&original, None, mode) {
            Ok(rewritten) => rewritten.bytes,
            Err(error) => {
                println!("{file}: {error}");
                continue;
            }
        };
        let written = begin.elapsed().as_secs_f64();
        if let Ok(folder) = std::env::var("KEEP") {
            let name = std::path::Path::new(file).file_name().unwrap_or_default();
            std::fs::write(std::path::Path::new(&folder).join(name), &rewritten).expect("a folder");
        }
        let begin = Instant::now();
        let found = gleaner_proof::check(&original, &rewritten);
        println!("{file}: {written:.3} s written, {:.3} s checked", begin.elapsed().as_secs_f64());
        match found {
            Ok(counts) => println!("{counts:?}"),
            Err(gleaner_proof::Refusal::Wrong { violations, total }) => {
                for violation in violations.iter().take(4000) {
                    let origin = violation.origin.map_or(0, |origin| origin.0);
                    println!("{origin:#x}: {violation}");
                }
                println!("{total} violations");
            }
            Err(refusal) => println!("{refusal}"),
        }
    }
}
