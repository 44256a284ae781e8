//! Programs do the same rewritten and poisoned as they do by themselves.

mod common;

use common::{compile, outcome, programs, write_program};
use gleaner_twin::{Mode, VectorWidth, rewrite};
use std::path::Path;

fn widest() -> VectorWidth {
    if std::is_x86_feature_detected!("avx512f") {
        VectorWidth::Avx512
    } else if std::is_x86_feature_detected!("avx") {
        VectorWidth::Avx
    } else {
        VectorWidth::Sse
    }
}

fn compare(program: &Path, name: &str) {
    let expected = outcome(program);
    let original = std::fs::read(program).unwrap();
    for mode in [Mode::Identity, Mode::Poison(widest()), Mode::StrictPoison(widest())] {
        let rewritten = rewrite(&original, None, mode).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(rewritten.coverage.functions_twinned >= 3, "{name}: {:?}", rewritten.coverage.refusals);
        let path = program.with_extension("twin");
        write_program(&path, &rewritten.bytes);
        assert_eq!(outcome(&path), expected, "{name} {mode:?}");
    }
}

fn try_all(compiler: &str, levels: &[&str], shapes: &[&[&str]]) {
    let directory = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for source in programs() {
        for level in levels {
            for shape in shapes {
                let path = directory.path().join("program");
                let options = [&[*level], *shape].concat();
                if compile(&source, compiler, &options, &path).is_some() {
                    compare(&path, &format!("{} {compiler} {options:?}", source.display()));
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 0 || compiler != "gcc", "a compiler is needed for this test");
}

#[test]
fn optimised_and_position_independent() {
    try_all("gcc", &["-O2"], &[&["-pie", "-fPIE"]]);
}

#[test]
fn plain_and_fixed_in_place() {
    try_all("gcc", &["-O0"], &[&["-no-pie"]]);
}

#[test]
fn by_clang() {
    try_all("clang", &["-O2"], &[&["-no-pie"]]);
}

#[test]
fn static_with_the_whole_library() {
    try_all("gcc", &["-O2"], &[&["-static"]]);
}

#[test]
#[ignore = "takes minutes: every program in every shape"]
fn every_shape() {
    let shapes: [&[&str]; 6] = [
        &["-pie", "-fPIE"],
        &["-no-pie"],
        &["-static"],
        &["-static-pie", "-fPIE"],
        &["-fcf-protection=full", "-pie", "-fPIE"],
        &["-s", "-pie", "-fPIE"],
    ];
    for compiler in ["gcc", "clang"] {
        try_all(compiler, &["-O0", "-O2", "-O3", "-Os"], &shapes);
    }
}

#[test]
#[ignore = "takes minutes: every ELF file in the system's folders"]
fn every_file_of_the_system() {
    let (mut files, mut functions, mut twinned) = (0, 0, 0);
    for folder in ["/usr/bin", "/usr/sbin", "/usr/lib/x86_64-linux-gnu"] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(data) = std::fs::read(&path) else { continue };
            if !path.is_file() || path.is_symlink() || !data.starts_with(b"\x7fELF") {
                continue;
            }
            match rewrite(&data, None, Mode::Identity) {
                Ok(rewritten) => {
                    files += 1;
                    functions += rewritten.coverage.functions_with_unwind_entry;
                    twinned += rewritten.coverage.functions_twinned;
                }
                Err(
                    gleaner_twin::TwinError::NoUnwindTable
                    | gleaner_twin::TwinError::ForeignRuntime(_)
                    | gleaner_twin::TwinError::Image(
                        image::ImageError::Not64Bit
                        | image::ImageError::NotLoadable(_)
                        | image::ImageError::WrongMachine(_),
                    ),
                ) => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }
    println!("{files} files, {twinned} of {functions} functions");
    assert!(twinned * 100 >= functions * 99);
}
