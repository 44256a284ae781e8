//! Sound programs to spoil: small ones of several shapes, and what they become with twins.

use crate::anatomy::{self, Area};
use std::path::Path;
use std::process::Command;
use twin::{Bounds, Knowledge, LoadReach, Mode, Optimisations, SiteChoice, Sites, VectorWidth};

/// A file, and where in it what stands.
pub(crate) struct Specimen {
    pub(crate) data: Vec<u8>,
    pub(crate) areas: Vec<Area>,
}

impl Specimen {
    fn new(data: Vec<u8>) -> Self {
        Self { areas: anatomy::of(&data), data }
    }
}

/// A program and its rewritten forms: as they are with identity twins, with poisoned ones.
pub(crate) struct Program {
    pub(crate) original: Specimen,
    pub(crate) rewritten: Vec<Specimen>,
}

const SOURCES: &[(&str, &[&str])] = &[
    ("exception_kinds.cpp", &["-O2"]),
    ("exception_kinds.cpp", &["-O1", "-no-pie", "-s"]),
    ("switch_dense.c", &["-O2", "-no-pie"]),
    ("switch_nested.c", &["-O2", "-fPIE", "-pie", "-s"]),
    ("computed_goto.c", &["-O2"]),
    ("x87.c", &["-O2", "-fno-pie", "-no-pie"]),
];

/// Those that can be built here; else some that are there.
pub(crate) fn programs(folder: &Path) -> Vec<Program> {
    let sources = testkit::root().join("programs/rewriter");
    let to = folder.join("specimen");
    let mut originals: Vec<Vec<u8>> = SOURCES
        .iter()
        .filter_map(|(name, options)| {
            let is_c = Path::new(name).extension().is_some_and(|extension| extension == "c");
            let compiler = if is_c { "gcc" } else { "g++" };
            let built = Command::new(compiler)
                .args(*options)
                .args(["-w", "-pthread", "-o"])
                .arg(&to)
                .arg(sources.join(name))
                .arg("-lm")
                .output();
            built.is_ok_and(|done| done.status.success()).then(|| std::fs::read(&to).expect("what was built"))
        })
        .collect();
    if originals.is_empty() {
        originals =
            ["/bin/true", "/usr/bin/env"].into_iter().filter_map(|path| std::fs::read(path).ok()).collect();
    }
    originals
        .into_iter()
        .map(|data| {
            let modes = [Mode::Identity, Mode::Poison(VectorWidth::Avx512)];
            let rewritten =
                modes.map(|mode| twin::rewrite(&data, None, mode).expect("a sound program").bytes);
            Program {
                original: Specimen::new(data),
                rewritten: rewritten.into_iter().map(Specimen::new).collect(),
            }
        })
        .collect()
}

/// Calls with each mode of rewriting.
pub(crate) fn in_mode<T>(number: usize, call: impl FnOnce(Mode<'_>) -> T) -> T {
    let sites = Sites {
        which: SiteChoice::EveryLoad(if number % 2 == 0 { LoadReach::All } else { LoadReach::Usual }),
        width: VectorWidth::Avx512,
        knowledge: Knowledge::OfCallers,
        save_all_at: std::collections::BTreeSet::new(),
        optimisations: Optimisations::ALL,
    };
    call(match number % 6 {
        0 | 1 => Mode::Identity,
        2 => Mode::Poison(VectorWidth::Avx),
        3 => Mode::Poison(VectorWidth::Avx512),
        4 => Mode::Primary(&sites),
        _ => Mode::Scavenger(&sites, Bounds::default()),
    })
}
