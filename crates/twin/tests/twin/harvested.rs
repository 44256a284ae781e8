//! Harvest twins do what their originals do: alone in a ring, beside a context that leaves garbage
//! in everything a switch may change, and as guests that go home at every leave (to where they
//! are).

use crate::common::{compile, programs, switched_on, write_program};
use gleaner_twin::{
    Bounds, Knowledge, LoadReach, Mode, Optimisations, SiteChoice, Sites, VectorWidth, rewrite,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles what stands in for the runtime.
fn stand_in(directory: &Path) -> PathBuf {
    use runtime_abi::{area, context};
    let numbers = [
        ("SELF", i64::from(area::SELF)),
        ("CUR", area::CUR.into()),
        ("S0", area::SCRATCH[0].into()),
        ("S1", area::SCRATCH[1].into()),
        ("S2", area::SCRATCH[2].into()),
        ("BUDGET", area::BUDGET.into()),
        ("GUEST", area::GUEST.into()),
        ("LEAVE", area::LEAVE.into()),
        ("OWN", area::OWN.into()),
        ("NEXT", context::NEXT.into()),
        ("RIP", context::RIP.into()),
        ("FS", context::FS.into()),
    ];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twin/common/area.c");
    let library = directory.join("area.so");
    let status = Command::new("gcc")
        .args(numbers.map(|(name, number)| format!("-DABI_{name}={number}")))
        .args(["-O1", "-shared", "-fPIC", "-mno-avx", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status()
        .expect("a compiler is needed for this test");
    assert!(status.success());
    library
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Company {
    garbage: bool,
    guest: bool,
}

const COMPANIES: [Company; 3] = [
    Company { garbage: false, guest: false },
    Company { garbage: true, guest: false },
    Company { garbage: true, guest: true },
];

type Outcome = (String, Option<i32>);

fn outcome(program: &Path, library: &Path, company: Option<Company>) -> (Outcome, u64) {
    let counts = program.with_extension("yields");
    let _ = std::fs::remove_file(&counts);
    let mut command = Command::new("timeout");
    command.arg("60").arg("env").arg(format!("LD_PRELOAD={}", library.display()));
    if let Some(company) = company {
        command.arg(format!("YIELDS_TO={}", counts.display()));
        command.args(company.garbage.then_some("GARBAGE=1"));
        command.args(company.guest.then_some("GUEST=1"));
    }
    let output = command.arg(program).output().expect("the program can be started");
    let yields =
        std::fs::read(&counts).ok().and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
    let yields = yields.unwrap_or(0);
    ((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code()), yields)
}

fn compare(program: &Path, library: &Path, name: &str) {
    let (expected, _) = outcome(program, library, None);
    let original = std::fs::read(program).unwrap();
    let sites = Sites {
        which: SiteChoice::EveryLoad(LoadReach::All),
        width: VectorWidth::of_this_machine(),
        knowledge: Knowledge::OfCallers,
        save_all_at: std::collections::BTreeSet::new(),
        optimisations: Optimisations::ALL,
    };
    let bounds = Bounds { quantum: 20, ..Bounds::default() };
    for mode in [Mode::Primary(&sites), Mode::Scavenger(&sites, bounds)] {
        let rewritten = rewrite(&original, None, mode).unwrap_or_else(|error| panic!("{name}: {error}"));
        let harvest = rewritten.coverage.harvest.as_ref().expect("a report");
        let any = harvest.sites + harvest.bounds > 0;
        assert!(any || matches!(mode, Mode::Primary(_)), "{name}: {harvest:?}");
        let path = program.with_extension("twin");
        for on in [true, false] {
            let bytes = if on { switched_on(&rewritten.bytes) } else { rewritten.bytes.clone() };
            if !on && bytes == switched_on(&rewritten.bytes) {
                continue;
            }
            write_program(&path, &bytes);
            for company in COMPANIES {
                if matches!(mode, Mode::Primary(_)) && company.guest {
                    continue;
                }
                let (found, yields) = outcome(&path, library, Some(company));
                let what = format!("{name} {} {company:?}, on: {on}: {yields}", mode.number());
                assert_eq!(found, expected, "{what}");
                // Those that have no switch are always on.
                assert!(!on || (yields > 0) == (company.garbage && any), "{what}");
            }
        }
    }
}

/// Programs that cannot be tried like this: resolvers of indirect functions run before any context
/// is made, where the stack overflows there may be no site on the way, and the C library cancels a
/// thread by a handler that the stand-in does not see: where it interrupts garbage it has garbage's
/// stack to unwind.
fn left_out(source: &Path) -> bool {
    ["ifunc.c", "signal_altstack.c", "thread_exit.c"].iter().any(|name| source.ends_with(name))
}

/// How many ways to build there are, of those that take all programs.
const BUILDS: usize = 4;

/// All programs, this being one of [`BUILDS`]. Each program is built in one of them, its neighbours
/// in others; in all of them with `GLEANER_MATRIX=all`.
fn try_all(build: usize, compiler: &str, options: &[&[&str]]) {
    let whole = std::env::var("GLEANER_MATRIX").is_ok_and(|breadth| breadth == "all");
    let all = programs();
    let position = |source: &Path| all.iter().position(|other| other == source).expect("it is one of them");
    try_some(compiler, options, |source| whole || (position(source) + build) % BUILDS == 0);
}

fn try_some(compiler: &str, options: &[&[&str]], chosen: impl Fn(&Path) -> bool) {
    let directory = tempfile::tempdir().unwrap();
    let library = stand_in(directory.path());
    let mut tried = 0;
    for source in programs().into_iter().filter(|source| !left_out(source) && chosen(source)) {
        for options in options {
            let path = directory.path().join("program");
            if compile(&source, compiler, options, &path).is_some() {
                compare(&path, &library, &format!("{} {compiler} {options:?}", source.display()));
                tried += 1;
            }
        }
    }
    assert!(tried > 0 || compiler != "gcc", "a compiler is needed for this test");
}

#[test]
fn optimised() {
    try_all(0, "gcc", &[&["-O2", "-pie", "-fPIE"]]);
}

#[test]
fn plain() {
    try_all(1, "gcc", &[&["-O0", "-no-pie", "-fstack-protector-all"]]);
}

#[test]
fn with_vectors() {
    try_all(2, "gcc", &[&["-O3", "-march=native"]]);
}

#[test]
fn by_clang() {
    try_all(3, "clang", &[&["-O2", "-pie", "-fPIE"]]);
}

/// `preserve_none` is younger than the clang that others are compiled by: where this one is
/// missing, it is not tried.
#[test]
fn conventions_by_a_later_clang() {
    let names = ["preserving.c", "regcall.c", "regcall_results.c", "other_conventions.c"];
    let chosen = |source: &Path| names.iter().any(|name| source.ends_with(name));
    try_some("clang-19", &[&["-O2", "-pie", "-fPIE"], &["-O1", "-mavx2"]], chosen);
}
